import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { processesOf } from './podd-leftovers.ts'
import type { PoddRig } from './podd-rig.ts'
import { slowness } from './slowness.ts'

/** How much a podd has on the host of each kind of thing that pods bring. */
export type HostCounts = Readonly<Record<string, number>>

/** Written when podd gets to it, whatever pods come and go. */
const ownFiles = ['events.json', 'image-uses.json', 'cgroups.json', 'tmpmounts']

/** Counts without asking podd. Its containerd has to run. */
export function countHost(podd: PoddRig): HostCounts {
  collectGarbage(podd)
  const places = containerdPlaces(podd.rootDir, podd.runDir)
  const { bridgeName, networkName, stateDir } = places
  const files = [podd.rootDir, podd.runDir, podd.logsDir, podd.linksDir].flatMap((path) => filesBelow(path))
  return {
    processes: processesOf(podd.places).length,
    files: files.length,
    'pod directories': entries(join(podd.rootDir, 'pods')).length,
    records: entries(join(podd.rootDir, 'records')).length,
    'log directories': entries(podd.logsDir).length,
    'log links': entries(podd.linksDir).length,
    containers: lines(podd.ctr('containers', 'list', '--quiet')).length,
    tasks: lines(podd.ctr('tasks', 'list', '--quiet')).length,
    snapshots: lines(podd.ctr('snapshots', 'list')).filter((line) => /^[0-9a-f]{64}\s/u.test(line)).length,
    leases: lines(podd.ctr('leases', 'list', '--quiet')).filter((id) => /^[0-9a-f]{64}$/u.test(id.trim()))
      .length,
    cgroups: cgroupsBelow(podd.cgroupRoot).length,
    namespaces: entries(join(stateDir, 'io.containerd.grpc.v1.cri/netns')).length,
    mounts: lines(run('cat', ['/proc/self/mounts'])).filter((line) => line.includes(` ${podd.directory}/`))
      .length,
    veths: entries(join('/sys/class/net', bridgeName, 'brif')).length,
    'firewall rules': ['iptables-save', 'ip6tables-save'].flatMap((program) =>
      lines(run(program, [])).filter((line) => line.includes(networkName) || line.includes(bridgeName)),
    ).length,
    addresses: entries(join(places.cniDataDir, networkName)).filter((name) => /^[\d.]+$/u.test(name)).length,
    'CNI results': cniResults(podd),
  }
}

/** Waits until the counts are what they were, prints both, and gives what is more than before. */
export async function awaitCounts(
  podd: PoddRig,
  before: HostCounts,
  patienceMs = 60_000,
): Promise<readonly string[]> {
  const untilMs = Date.now() + patienceMs * slowness
  let now = countHost(podd)
  // A look costs more than what is waited for.
  for (let waitMs = 500; differences(before, now).length > 0 && Date.now() < untilMs; waitMs += 500) {
    await sleep(Math.min(waitMs, 3000))
    now = countHost(podd)
  }
  console.log(`before: ${format(before)}\nafter:  ${format(now)}`)
  return differences(before, now)
}

/**
 * Has containerd remove the directories of snapshots that are gone. It does so by itself some time after the next removal,
 * and only then: one that is killed in the middle leaves a directory until another snapshot is removed. A removal that falls
 * into the end of a collection waits for another one (`plugins/gc/scheduler.go`, containerd 2.1).
 */
function collectGarbage(podd: PoddRig): void {
  const lease = 'podd-test-collects'
  podd.ctr('snapshots', 'prepare', lease)
  podd.ctr('snapshots', 'remove', lease)
  podd.ctr('leases', 'create', '--id', lease)
  podd.ctr('leases', 'delete', '--sync', lease)
}

/** What is more than before. */
export function differences(before: HostCounts, now: HostCounts): readonly string[] {
  return Object.entries(now)
    .filter(([kind, count]) => count > (before[kind] ?? 0))
    .map(([kind, count]) => `${kind} ${before[kind]} -> ${count}`)
}

function format(counts: HostCounts): string {
  return Object.entries(counts)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ')
}

/** Of its own network, and of the loopback network of its sandboxes. */
function cniResults(podd: PoddRig): number {
  const directory = '/var/lib/cni/results'
  if (!existsSync(directory)) return 0
  return lines(run('grep', ['-rlF', `${podd.runDir}/containerd/`, directory])).length
}

function filesBelow(directory: string): readonly string[] {
  if (!existsSync(directory)) return []
  // What containers see is below mounts.
  const names = lines(run('find', [directory, '-xdev', '!', '-path', '*/rootfs/*']))
  return names.filter((path) => !ownFiles.some((name) => path.includes(name)))
}

/** The cgroups of a root, in all hierarchies. */
export function cgroupsBelow(root: string): readonly string[] {
  const base = '/sys/fs/cgroup'
  return [base, ...entries(base).map((name) => join(base, name))]
    .map((hierarchy) => join(hierarchy, root))
    .filter((path) => existsSync(path))
    .flatMap((path) => lines(run('find', [path, '-type', 'd'])))
}

function entries(directory: string): readonly string[] {
  return existsSync(directory) ? readdirSync(directory) : []
}

function run(program: string, args: readonly string[]): string {
  try {
    return execFileSync(program, args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      maxBuffer: 64 * 1024 * 1024,
    })
  } catch (error) {
    // What vanishes while it is counted makes `find` fail, and no match makes `grep` fail.
    return error instanceof Error && 'stdout' in error && typeof error.stdout === 'string' ? error.stdout : ''
  }
}

function lines(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.trim() !== '')
}
