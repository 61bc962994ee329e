import { readlinkSync, watch } from 'node:fs'
import { stat, statfs } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { FSWatcher } from 'chokidar'
import { errorCode } from '../base/errors.ts'
import { describeOtherWriters, isHiddenName } from './read-manifest-file.ts'

/** An event of a watch. It is only a hint: the content is read from the directory. */
export type DirectoryHint =
  /** A file was written, truncated or its attributes changed, in place. */
  | { readonly kind: 'written'; readonly name: string }
  /** A name was added or removed, or refers to another file now. */
  | { readonly kind: 'renamed'; readonly name: string }
  /** Anything may have changed, the directory itself included. */
  | { readonly kind: 'directory' }

export interface DirectoryWatch {
  close(): Promise<void>
}

export interface DirectoryWatchHandlers {
  readonly onHint: (hint: DirectoryHint) => void
  /** The system refuses to watch (out of inotify watches, say); there may be no more hints. */
  readonly onFailure: (error: unknown) => void
}

/** Errors that mean that the system has no more watches, files or memory. */
const limitCodes: readonly string[] = ['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']

export interface DirectoryWatchOptions {
  /** Subdirectories too. */
  readonly recursive?: boolean
  /**
   * Of which names in the directory itself the watch looks at the file, to watch what a link leads to; all where it is left
   * out. Every name has its hints. chokidar lists the whole directory for each name that it doesn't know and doesn't find,
   * as for a temporary file that is renamed at once.
   */
  readonly looksAt?: (name: string) => boolean
}

/** Starts watching a directory, which need not exist. */
export type WatchDirectory = (
  path: string,
  handlers: DirectoryWatchHandlers,
  options?: DirectoryWatchOptions,
) => DirectoryWatch

/**
 * Watches by inotify, through chokidar: the directory, its subdirectories where `recursive` (names are paths then), the
 * targets of symlinks in it, and, while it is missing, the directory above it. Uses chokidar's raw events, which come
 * before its own stat of the file. inotify follows the directory, not the path: the directories of symlinks on the path
 * are watched too, and the watch restarts when one of them is replaced.
 */
export const watchDirectory: WatchDirectory = (path, handlers, { recursive = false, looksAt } = {}) => {
  const directory = resolve(path)
  let isClosed = false
  const closing: Promise<void>[] = []
  let links: readonly { close(): void }[] = []
  let watcher = open()

  function open(): FSWatcher {
    links = watchLinks()
    const opened = new FSWatcher({
      ignored: (at: string) => (recursive ? isHidden(directory, at) : isPassedOver(directory, at, looksAt)),
      ...(recursive ? {} : { depth: 0 }),
      atomic: false,
      ignoreInitial: true,
      usePolling: false,
    })
    opened.on('raw', (event, name, details) => {
      handlers.onHint(toHint(directory, { event, name, details, recursive }))
    })
    opened.on('addDir', (added) => {
      // A watch that waited for its directory reports the directory but not its content.
      if (resolve(added) === directory && watcher === opened) openAgain()
      else if (recursive) handlers.onHint({ kind: 'directory' })
    })
    opened.on('unlinkDir', () => handlers.onHint({ kind: 'directory' }))
    opened.on('ready', () => handlers.onHint({ kind: 'directory' }))
    opened.on('error', onError)
    opened.add(directory)
    return opened
  }

  function openAgain(): void {
    if (isClosed) return
    for (const link of links) link.close()
    closing.push(watcher.close())
    watcher = open()
    handlers.onHint({ kind: 'directory' })
  }

  function watchLinks(): readonly { close(): void }[] {
    return findLinks(directory).flatMap((link) => {
      try {
        const linkWatcher = watch(dirname(link), (_event, name) => {
          if (name === basename(link)) openAgain()
        })
        linkWatcher.on('error', onError)
        return [linkWatcher]
      } catch (error) {
        onError(error)
        return []
      }
    })
  }

  function onError(error: unknown): void {
    // Reading the directory reports what is wrong with one path.
    if (limitCodes.includes(errorCode(error) ?? '')) handlers.onFailure(error)
    else handlers.onHint({ kind: 'directory' })
  }

  return {
    async close() {
      isClosed = true
      for (const link of links) link.close()
      await Promise.all([...closing, watcher.close()])
    },
  }
}

/** A raw event of chokidar. */
interface RawEvent {
  readonly event: string
  readonly name: unknown
  readonly details: unknown
  readonly recursive: boolean
}

function toHint(directory: string, { event, name, details, recursive }: RawEvent): DirectoryHint {
  const watched = watchedPath(details)
  if (watched === undefined) return { kind: 'directory' }
  const isInside = watched === directory || (recursive && watched.startsWith(`${directory}/`))
  if (isInside && typeof name === 'string' && name !== basename(watched)) {
    const path = relative(directory, join(watched, name))
    if (event === 'change') return { kind: 'written', name: path }
    if (event === 'rename') return { kind: 'renamed', name: path }
  }
  // A change to the target of a symlink in the directory is a change of the link's file.
  const isFile = dirname(watched) === directory || (recursive && isInside && watched !== directory)
  return isFile ? { kind: 'written', name: relative(directory, watched) } : { kind: 'directory' }
}

function watchedPath(details: unknown): string | undefined {
  if (typeof details !== 'object' || details === null || !('watchedPath' in details)) return undefined
  return typeof details.watchedPath === 'string' ? details.watchedPath : undefined
}

function isPassedOver(directory: string, path: string, looksAt: DirectoryWatchOptions['looksAt']): boolean {
  return looksAt !== undefined && dirname(path) === directory && !looksAt(basename(path))
}

/** Hidden files and directories are ignored in a recursive watch. */
function isHidden(directory: string, path: string): boolean {
  return relative(directory, path)
    .split('/')
    .some((name) => isHiddenName(name) && name !== '..')
}

/** Linux gives up on a path after so many symlinks (path_resolution(7)). */
const maxLinks = 40

/** The paths of all symlinks on the way of an absolute path, as far as it exists. */
export function findLinks(path: string): readonly string[] {
  const links: string[] = []
  const rest = splitPath(path)
  let at = '/'
  for (let name = rest.shift(); name !== undefined && links.length < maxLinks; name = rest.shift()) {
    const next = join(at, name)
    const target = readLink(next)
    if (target === undefined) {
      at = next
      continue
    }
    links.push(next)
    rest.unshift(...splitPath(resolve(at, target)))
    at = '/'
  }
  return links
}

function splitPath(path: string): string[] {
  return path.split('/').filter((name) => name !== '')
}

/** Undefined where it is not a symlink, or doesn't exist. */
function readLink(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    // No symlink, or nothing there.
    return undefined
  }
}

/** File systems that report no changes made by other hosts, by the magic numbers of statfs(2). */
const types: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
  [0x517b, 'SMB'],
  [0x01021997, '9p'],
  [0x65735546, 'FUSE'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
  [0x0bd00bd0, 'Lustre'],
  [0x01161970, 'GFS2'],
  [0x7461636f, 'OCFS2'],
])

/** The network file system that a path is on; undefined where it is on none, or that can't be determined. */
export async function findNetworkFileSystem(path: string): Promise<string | undefined> {
  try {
    const { type } = await statfs(path)
    // A 32-bit number, which may be negative.
    return types.get(type >>> 0)
  } catch {
    // Reading the path reports what is wrong with it.
    return undefined
  }
}

export interface DirectoryIdentity {
  readonly isFile: boolean
  readonly device: bigint
  /** Changes when the directory is replaced. */
  readonly id: string
  /** Who beside root can write it, as text; for a single file, of that file. */
  readonly otherWriters: string | undefined
}

/** Throws what the system throws. */
export async function identify(directory: string): Promise<DirectoryIdentity> {
  const stats = await stat(directory, { bigint: true })
  const { dev, ino, birthtimeNs } = stats
  const isFile = stats.isFile()
  // A single file is often replaced; its directory stays the same.
  const id = isFile ? 'file' : `${dev}:${ino}:${birthtimeNs}`
  return { isFile, device: dev, id, otherWriters: isFile ? undefined : describeOtherWriters(stats) }
}
