/* What is mounted on this host, how it reaches containers, and mounts that podd makes itself. */
import { readFileSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { release } from 'node:os'
import { ifThere, PoddError } from '../base/errors.ts'
import { commandOutput, runCommand } from './run-command.ts'

/** One line of /proc/self/mountinfo (proc(5)). */
export interface MountEntry {
  readonly mountPoint: string
  /** The mounted part of the file system: `/` for all of it. */
  readonly root: string
  readonly fsType: string
  readonly superOptions: readonly string[]
}

export function readMounts(mountInfoPath = '/proc/self/mountinfo'): readonly MountEntry[] {
  return parseMountInfo(readFileSync(mountInfoPath, 'utf8'))
}

/** Parses a mountinfo text; malformed lines are skipped. */
export function parseMountInfo(text: string): readonly MountEntry[] {
  const entries: MountEntry[] = []
  for (const line of text.split('\n')) {
    const separator = line.indexOf(' - ')
    if (separator === -1) continue
    const [, , , root, mountPoint] = line.slice(0, separator).split(' ')
    const [fsType = '', , superOptions = ''] = line.slice(separator + 3).split(' ')
    if (root === undefined || mountPoint === undefined) continue
    entries.push({
      mountPoint: unescape(mountPoint),
      root: unescape(root),
      fsType,
      superOptions: superOptions.split(','),
    })
  }
  return entries
}

/** The mount points at or below a directory, the deepest and newest first: the order in which to unmount them. */
export function mountsBelow(directory: string, mounts: readonly MountEntry[]): readonly string[] {
  return mounts
    .map(({ mountPoint }) => mountPoint)
    .filter((mountPoint) => mountPoint === directory || mountPoint.startsWith(`${directory}/`))
    .reverse()
    .sort((a, b) => b.split('/').length - a.split('/').length)
}

/** The mount point of a path's file system: the longest one above it. Symlinks aren't followed. */
export function mountPointOf(path: string, mounts: readonly MountEntry[]): string {
  const above = mounts
    .map(({ mountPoint }) => mountPoint)
    .filter((point) => point === '/' || path === point || path.startsWith(`${point}/`))
  return above.reduce((longest, point) => (point.length > longest.length ? point : longest), '/')
}

/** Whether something is mounted on exactly this directory or file; false where it doesn't exist. */
export async function isMounted(path: string): Promise<boolean> {
  // Mount tables know real paths only.
  const real = await ifThere(realpath(path))
  return real !== undefined && readMounts().some(({ mountPoint }) => mountPoint === real)
}

/** Whether what is mounted below a path reaches other mount namespaces (`shared`), comes from one (`slave`), or neither. */
export type MountSharing = 'shared' | 'slave' | 'private'

/**
 * The sharing of the mount that a path is on (mount_namespaces(7)); of two at one place the newer counts.
 * @param mountInfo the text of a mountinfo file
 */
export function mountSharing(path: string, mountInfo: string): MountSharing {
  const point = mountPointOf(path, parseMountInfo(mountInfo))
  const fields = mountInfo
    .split('\n')
    .map((line) => (line.split(' - ', 1)[0] ?? '').split(' '))
    .findLast(([, , , , mountPoint]) => mountPoint !== undefined && unescape(mountPoint) === point)
  const tags = fields?.slice(6) ?? []
  if (tags.some((tag) => tag.startsWith('shared:'))) return 'shared'
  return tags.some((tag) => tag.startsWith('master:')) ? 'slave' : 'private'
}

/**
 * Throws where what is mounted below a path can't reach containers, or theirs the host (`isTwoWay`), so that the runtime
 * would refuse the mount. A path that isn't there is left to the runtime.
 * @throws PoddError MOUNT_NOT_SHARED
 */
export async function checkMountSharing(path: string, isTwoWay: boolean): Promise<void> {
  // The runtime says why a path that can't be resolved can't be mounted.
  const real = await realpath(path).catch(() => undefined)
  if (real === undefined) return
  // Containers are mounted in the namespace of the runtime, which is the first process's.
  const mountInfo = readFileSync('/proc/1/mountinfo', 'utf8')
  const sharing = mountSharing(real, mountInfo)
  if (sharing === 'shared' || (sharing === 'slave' && !isTwoWay)) return
  const point = mountPointOf(real, parseMountInfo(mountInfo))
  throw new PoddError(
    'MOUNT_NOT_SHARED',
    `mountPropagation ${isTwoWay ? 'Bidirectional' : 'HostToContainer'} needs a shared mount, and ${point} of the host, which ${path} is on, is none: run mount --make-rshared ${point} on the host, at each boot before podd`,
  )
}

/**
 * Mounts an empty tmpfs that is writable for all, with sticky bit (mode 1777, the kernel's default), and is never
 * swapped out where the kernel supports that (`pkg/volume/emptydir/empty_dir.go` setupTmpfs, 1.36).
 * @param sizeBytes its limit; undefined for the kernel's default, half of the memory
 * @param kernel its release; as uname(2) gives it
 * @throws HostCommandError
 */
export async function mountTmpfs(path: string, sizeBytes?: number, kernel = release()): Promise<void> {
  const size = sizeBytes === undefined ? '' : `,size=${sizeBytes}`
  const mount = (more: string): readonly string[] => {
    const options = `mode=1777${size}${more}`
    return ['-t', 'tmpfs', '-o', options, 'tmpfs', path]
  }
  if (hasNoSwap(kernel)) {
    const { exitCode } = await runCommand('mount', mount(',noswap'))
    if (exitCode === 0) return
  }
  // In a user namespace the kernel refuses the option.
  await commandOutput('mount', mount(''))
}

/** Linux 6.3 and later know tmpfs's `noswap`. */
export function hasNoSwap(kernel: string): boolean {
  const [, major = '0', minor = '0'] = /^(\d+)\.(\d+)/.exec(kernel) ?? []
  return Number(major) * 1000 + Number(minor) >= 6003
}

/**
 * Bind-mounts `source` on `target`, an existing directory or file. The program resolves neither path, so that a source
 * below /proc/PID/fd is exactly the file that process has open.
 * @throws HostCommandError
 */
export async function bindMount(source: string, target: string): Promise<void> {
  await commandOutput('mount', ['--no-canonicalize', '--bind', '--', source, target])
}

/**
 * Unmounts lazily: a mount in use disappears at once, and is released when its last user ends.
 * @throws HostCommandError
 */
export async function unmount(path: string): Promise<void> {
  const result = await runCommand('umount', ['--', path])
  if (result.exitCode !== 0) await commandOutput('umount', ['--lazy', '--', path])
}

/** The kernel writes space, tab, newline and backslash as `\` and three octal digits. */
function unescape(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/gu, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  )
}
