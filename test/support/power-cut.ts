import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeLeftovers } from './leftovers.ts'
import type { PoddRig } from './podd-rig.ts'

/** EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: from now on nothing reaches the disk, what was not synced included. */
const shutDown = `sysopen(D, $ARGV[0], 0) or die $!; $flags = pack("L", 2); ioctl(D, 0x8004587d, $flags) or die $!`

/**
 * Cuts the power of a rig whose root directory is an ext4 of its own (`rootDisk`), and puts a disk in its place that has
 * what was synced. All that ran is gone, with the run directory, and the next daemon is started in another boot.
 */
export async function cutPower(podd: PoddRig): Promise<void> {
  const { directory, places, rootDir, runDir } = podd
  execFileSync('perl', ['-e', shutDown, rootDir])
  await podd.stopDaemon('SIGKILL')
  await removeLeftovers(places)
  rmSync(runDir, { recursive: true, force: true })
  mkdirSync(rootDir, { recursive: true })
  // A mount namespace of somebody else's may hold the file system a little longer, and its device with it.
  const disk = join(directory, 'root.ext4')
  execFileSync('cp', ['--sparse=always', disk, `${disk}.next`])
  renameSync(`${disk}.next`, disk)
  execFileSync('mount', ['-o', 'loop', disk, rootDir])
  podd.boots = inAnotherBoot(directory)
}

/** What runs a program with another boot id than the host's. */
function inAnotherBoot(directory: string): readonly string[] {
  const path = join(directory, 'boot-id')
  writeFileSync(path, `${randomUUID()}\n`)
  const script = `mount --make-private /proc && mount --bind ${path} /proc/sys/kernel/random/boot_id && exec "$@"`
  return ['unshare', '--mount', '--propagation', 'unchanged', 'sh', '-c', script, 'sh']
}
