import {
  chmod,
  lchown,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { dirname } from 'node:path'
import { aboutFile, removeTree } from '../base/atomic-file.ts'
import { formatTime } from '../base/clock.ts'
import { errorCode, ifThere } from '../base/errors.ts'
import { newUuid } from '../base/random.ts'
import type { VolumeFiles } from '../translate/volume-files.ts'
import { VolumeError } from './open-inside.ts'

/** In the directory: leads to the current files. */
export const dataLink = '..data'
const temporaryLink = '..data_tmp'

/**
 * Makes a directory contain exactly these files, with one atomic change: they are written to `..<time>`, then a rename
 * replaces the link `..data`; readers use links through it (`pkg/volume/util/atomic_writer.go`, 1.36). The old files
 * stay for at least a second, until the next call, for readers that have just followed the link.
 *
 * @param options.group the owner of the files, for fsGroup
 * @param options.nowMs the wall clock
 * @returns whether anything changed
 */
export async function writeVolumeFiles(
  directory: string,
  files: VolumeFiles,
  options: { readonly group?: number | undefined; readonly nowMs: number },
): Promise<boolean> {
  checkPaths(files)
  const current = await ifThere(readlink(`${directory}/${dataLink}`))
  await removeStale(directory, current, options.nowMs)
  if (current !== undefined && (await holdsExactly(`${directory}/${current}`, files, options.group))) {
    // An interrupted call may have ended right after the swap (kubernetes/kubernetes#121472).
    return showFiles(directory, files)
  }
  const fresh = `..${stampOf(options.nowMs)}.${newUuid().slice(0, 8)}`
  try {
    await writeFiles(`${directory}/${fresh}`, files, options.group)
    await swapLink(directory, fresh)
  } catch (error) {
    await removeTree(`${directory}/${fresh}`)
    throw aboutFile(error, `${directory}/${fresh}`, directory)
  }
  await showFiles(directory, files)
  // The old directory is out of date from now on.
  if (current !== undefined) {
    const now = options.nowMs / 1000
    await ifThere(utimes(`${directory}/${current}`, now, now))
  }
  return true
}

/** `2026_01_31_12_00_00` */
function stampOf(wallMs: number): string {
  return formatTime(wallMs).replaceAll(/[-:T]/gu, '_').slice(0, 19)
}

/** Whether the directory was ever written. */
export async function hasVolumeFiles(directory: string): Promise<boolean> {
  return (await ifThere(readlink(`${directory}/${dataLink}`))) !== undefined
}

/** The manifest's validation rejects any other path; this is a second check. */
function checkPaths(files: VolumeFiles): void {
  for (const path of files.keys()) {
    const names = path.split('/')
    if (path.startsWith('..') || names.some((name) => name === '' || name === '.' || name === '..')) {
      throw new VolumeError(`invalid path ${JSON.stringify(path)}`)
    }
    // Keys without a path of their own may collide with paths that were given.
    const file = parentsOf(path).find((parent) => files.has(parent))
    if (file !== undefined) {
      const [below, above] = [path, file].map((name) => JSON.stringify(name))
      throw new VolumeError(`a file stands at ${above}, where ${below} needs a directory`)
    }
  }
}

/** The age at which old files are removed; sooner where there are many. */
const keptMs = 1000
const keptDirectories = 32

async function removeStale(directory: string, current: string | undefined, nowMs: number): Promise<void> {
  const names = (await readdir(directory)).filter(
    (name) => name.startsWith('..') && name !== dataLink && name !== current,
  )
  const stale = await Promise.all(
    names.map(async (name) => ({ name, sinceMs: (await lstat(`${directory}/${name}`)).mtimeMs })),
  )
  stale.sort((a, b) => b.sinceMs - a.sinceMs)
  for (const [index, { name, sinceMs }] of stale.entries()) {
    const isRecent = Math.abs(nowMs - sinceMs) < keptMs
    if (isRecent && index < keptDirectories && name !== temporaryLink) continue
    await removeTree(`${directory}/${name}`)
  }
}

async function holdsExactly(
  directory: string,
  files: VolumeFiles,
  group: number | undefined,
): Promise<boolean> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const found = entries.filter((entry) => !entry.isDirectory())
  if (found.length !== files.size) return false
  for (const [path, { data, mode }] of files) {
    try {
      const stats = await lstat(`${directory}/${path}`)
      if (!stats.isFile() || stats.size !== data.byteLength) return false
      if ((stats.mode & 0o7777) !== fileMode(mode, group)) return false
      if (group !== undefined && stats.gid !== group) return false
      if (!(await readFile(`${directory}/${path}`)).equals(data)) return false
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return false
      throw error
    }
  }
  return true
}

/** With fsGroup the group may read what the owner may (`pkg/volume/volume_linux.go`, roMask, 1.36). */
function fileMode(mode: number, group: number | undefined): number {
  return group === undefined ? mode : mode | 0o440
}

async function writeFiles(directory: string, files: VolumeFiles, group: number | undefined): Promise<void> {
  await makeDirectory(directory, group)
  const made = new Set([directory])
  for (const [path, { data, mode }] of files) {
    for (const parent of parentsOf(path)) {
      const at = `${directory}/${parent}`
      if (made.has(at)) continue
      await makeDirectory(at, group)
      made.add(at)
    }
    const file = `${directory}/${path}`
    await writeFile(file, data, { mode: 0o600, flag: 'wx' })
    if (group !== undefined) await lchown(file, 0, group)
    await chmod(file, fileMode(mode, group))
  }
}

async function makeDirectory(path: string, group: number | undefined): Promise<void> {
  await mkdir(path, { mode: 0o755 })
  if (group !== undefined) await lchown(path, 0, group)
  await chmod(path, group === undefined ? 0o755 : 0o2755)
}

/** The directories on the way to a file, the topmost first. */
function parentsOf(path: string): readonly string[] {
  const names = dirname(path) === '.' ? [] : dirname(path).split('/')
  return names.map((_, index) => names.slice(0, index + 1).join('/'))
}

async function swapLink(directory: string, target: string): Promise<void> {
  const temporary = `${directory}/${temporaryLink}`
  await rm(temporary, { force: true })
  await symlink(target, temporary)
  await rename(temporary, `${directory}/${dataLink}`)
}

/**
 * Updates the links through `..data`: adds new ones, then removes those without a file. Returns whether any was added
 * or removed.
 */
async function showFiles(directory: string, files: VolumeFiles): Promise<boolean> {
  const wanted = new Set([...files.keys()].map((path) => path.split('/')[0] ?? path))
  const entries = await readdir(directory, { withFileTypes: true })
  const shown = new Set(entries.map(({ name }) => name))
  const missing = [...wanted].filter((name) => !shown.has(name))
  // Anything other than a link is a mount point.
  const stale = entries
    .filter((entry) => entry.isSymbolicLink() && !entry.name.startsWith('..') && !wanted.has(entry.name))
    .map(({ name }) => name)
  for (const name of missing) await symlink(`${dataLink}/${name}`, `${directory}/${name}`)
  for (const name of stale) await removeTree(`${directory}/${name}`)
  return missing.length + stale.length > 0
}
