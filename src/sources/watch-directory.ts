import { watch } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { FSWatcher } from 'chokidar'
import { errorCode } from '../base/errors.ts'
import { findLinks } from './find-links.ts'
import { isHiddenName } from './manifest-name.ts'

/** What a watch saw. It is a hint: what the directory holds is read from the directory. */
export type DirectoryHint =
  /** A file was written, truncated or its attributes changed, in place. */
  | { readonly kind: 'written'; readonly name: string }
  /** A name came, went, or now means another file. */
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

/** The system has no more watches, files or memory to give. */
const limitCodes: readonly string[] = ['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM']

/** Starts watching a directory, which need not exist. */
export type WatchDirectory = (
  path: string,
  handlers: DirectoryWatchHandlers,
  options?: { readonly recursive?: boolean },
) => DirectoryWatch

/**
 * Watches by inotify, through chokidar: the directory, its subdirectories where `recursive` (names are paths then), the targets of symlinks in it, and, while it is
 * missing, what lies above it. Its raw events are used, as they come before its own look at the file.
 * inotify stays with the directory that a path led to: where symlinks lead there, what they stand in is
 * watched too, and the watch starts again when one of them is swapped.
 */
export const watchDirectory: WatchDirectory = (path, handlers, { recursive = false } = {}) => {
  const directory = resolve(path)
  let isClosed = false
  const closing: Promise<void>[] = []
  let links: readonly { close(): void }[] = []
  let watcher = open()

  function open(): FSWatcher {
    links = watchLinks()
    const opened = new FSWatcher({
      ...(recursive ? { ignored: (at: string) => isHidden(directory, at) } : { depth: 0 }),
      atomic: false,
      ignoreInitial: true,
      usePolling: false,
    })
    opened.on('raw', (event, name, details) => {
      handlers.onHint(toHint(directory, { event, name, details, recursive }))
    })
    opened.on('addDir', (added) => {
      // A watch that waited for its directory sees the directory come but not what it holds.
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
    // What is wrong with one path is seen when the directory is read.
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

/** Nothing is read of what is hidden, in a directory that is read with its subdirectories. */
function isHidden(directory: string, path: string): boolean {
  return relative(directory, path)
    .split('/')
    .some((name) => isHiddenName(name) && name !== '..')
}
