import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { errorCode } from '../../base/errors.ts'
import { isHiddenName, maxDirectoryDepth } from '../../pod/values/manifest-name.ts'
import { findLinks } from './find-links.ts'
import { NameWatches } from './name-watches.ts'
import type { NameEvent } from './name-watches.ts'

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

/** Starts watching a directory, or a single file, which need not exist. */
export type WatchDirectory = (
  path: string,
  handlers: DirectoryWatchHandlers,
  options?: { readonly recursive?: boolean },
) => DirectoryWatch

/**
 * Watches by inotify: the directory, its subdirectories where `recursive` (names are paths then), the targets of symlinks
 * in it, the symlinks that lead to it, and, while it is missing, what lies above it. The first hint comes when it is
 * watched: what changed before then is to be read.
 */
export const watchDirectory: WatchDirectory = (path, handlers, { recursive = false } = {}) => {
  const watcher = new DirectoryWatcher(path, handlers, recursive)
  watcher.open()
  return { close: async () => watcher.close() }
}

/** The system has no more watches, files or memory to give. */
const limitCodes: ReadonlySet<string | undefined> = new Set(['ENOSPC', 'EMFILE', 'ENFILE', 'ENOMEM'])

/**
 * Follows what a path leads to. inotify stays with what a path led to once: when the directory is replaced, or a symlink on
 * the way to it, all is watched from the beginning. A change costs the same however many files there are.
 */
class DirectoryWatcher {
  readonly #path: string
  readonly #handlers: DirectoryWatchHandlers
  readonly #isRecursive: boolean
  #watches = this.#makeWatches()
  /** The path without symlinks. */
  #root = ''
  /** What ends the watches of each symlink in the directory, by its name. */
  readonly #links = new Map<string, readonly (() => void)[]>()
  #isClosed = false

  constructor(path: string, handlers: DirectoryWatchHandlers, isRecursive: boolean) {
    this.#path = resolve(path)
    this.#handlers = handlers
    this.#isRecursive = isRecursive
  }

  /** Watches from the beginning. */
  open(): void {
    this.#watches.close()
    this.#watches = this.#makeWatches()
    this.#links.clear()
    const { links, end } = findLinks(this.#path)
    this.#root = end
    for (const link of links) this.#addName(link, () => this.#openAgain())
    void this.#begin(this.#watches)
  }

  async #begin(watches: NameWatches): Promise<void> {
    const type = await typeOf(this.#root)
    if (!this.#isCurrent(watches)) return
    if (type === undefined) await this.#watchAbove(watches)
    else if (type === 'directory') await this.#watchTree(this.#root)
    else this.#watchFile()
  }

  close(): void {
    this.#isClosed = true
    this.#watches.close()
  }

  #isCurrent(watches: NameWatches): boolean {
    return watches === this.#watches && !this.#isClosed
  }

  #makeWatches(): NameWatches {
    return new NameWatches((error) => this.#onError(error))
  }

  #openAgain(): void {
    if (this.#isClosed) return
    this.open()
    this.#hint({ kind: 'directory' })
  }

  #hint(hint: DirectoryHint): void {
    if (!this.#isClosed) this.#handlers.onHint(hint)
  }

  #watchFile(): void {
    this.#addName(this.#root, (event) => {
      // A directory may stand there now.
      if (event === 'rename') this.#openAgain()
      else this.#hint({ kind: 'directory' })
    })
    this.#hint({ kind: 'directory' })
  }

  /** Until the path exists: the next step of it that is missing. */
  async #watchAbove(watches: NameWatches): Promise<void> {
    for (let missing = this.#root; dirname(missing) !== missing; missing = dirname(missing)) {
      const step = basename(missing)
      try {
        watches.addAll(dirname(missing), (_event, name) => {
          if (name === undefined || name === step) this.#openAgain()
        })
      } catch (error) {
        if (isMissing(error)) continue
        return this.#onError(error)
      }
      // It came before it was watched.
      if ((await typeOf(missing)) !== undefined && this.#isCurrent(watches)) this.#openAgain()
      return undefined
    }
    return undefined
  }

  /** Undefined where there is no such directory. */
  #addName(path: string, listener: (event: NameEvent) => void): (() => void) | undefined {
    try {
      return this.#watches.addName(dirname(path), basename(path), listener)
    } catch (error) {
      if (!isMissing(error)) this.#onError(error)
      return undefined
    }
  }

  /** Watches a directory, and what is in it already. */
  async #watchTree(directory: string): Promise<void> {
    const watches = this.#watches
    try {
      await this.#watchEntries(directory, watches)
    } catch (error) {
      this.#onError(error)
    }
    if (this.#isCurrent(watches)) this.#hint({ kind: 'directory' })
  }

  async #watchEntries(directory: string, watches: NameWatches): Promise<void> {
    if (!this.#isCurrent(watches) || watches.has(directory)) return
    watches.addAll(directory, (event, name) => this.#onEvent(directory, event, name))
    const entries = await readdir(directory, { withFileTypes: true })
    if (!this.#isCurrent(watches)) return
    for (const entry of entries) if (entry.isSymbolicLink()) this.#followLink(join(directory, entry.name))
    const within = entries.filter((entry) => this.#isWithin(directory, entry))
    await Promise.all(within.map(({ name }) => this.#watchWithin(join(directory, name), watches)))
  }

  #isWithin(directory: string, entry: Dirent): boolean {
    if (!this.#isRecursive || !entry.isDirectory() || isHiddenName(entry.name)) return false
    return relative(this.#root, directory).split('/').length <= maxDirectoryDepth
  }

  async #watchWithin(directory: string, watches: NameWatches): Promise<void> {
    try {
      await this.#watchEntries(directory, watches)
    } catch (error) {
      // It may be gone already.
      this.#onError(error)
    }
  }

  #onEvent(directory: string, event: NameEvent, name: string | undefined): void {
    if (name === undefined) return this.#onDirectory(directory, event)
    const path = join(directory, name)
    this.#hint({ kind: event === 'change' ? 'written' : 'renamed', name: this.#nameOf(path) })
    if (event === 'rename') void this.#followName(path, this.#watches)
  }

  /** Watches what the name of a watched directory means now. */
  async #followName(path: string, watches: NameWatches): Promise<void> {
    const type = await typeOf(path)
    if (!this.#isCurrent(watches)) return
    if (type === 'link' || this.#links.has(this.#nameOf(path))) this.#followLink(path)
    if (!this.#isRecursive || isHiddenName(basename(path))) return
    if (watches.has(path)) watches.drop(path)
    if (type === 'directory') await this.#watchTree(path)
  }

  #onDirectory(directory: string, event: NameEvent): void {
    if (event === 'change') this.#hint({ kind: 'directory' })
    else if (directory === this.#root) this.#openAgain()
    else {
      this.#hint({ kind: 'directory' })
      void this.#followName(directory, this.#watches)
    }
  }

  /** A change of what a symlink leads to is a change of the link's name. */
  #followLink(path: string): void {
    const name = this.#nameOf(path)
    for (const end of this.#links.get(name) ?? []) end()
    this.#links.delete(name)
    const { links, end } = findLinks(path)
    if (!links.includes(path)) return
    const onLink = (): void => {
      this.#hint({ kind: 'renamed', name })
      if (!this.#isClosed) this.#followLink(path)
    }
    const onTarget = (event: NameEvent): void =>
      this.#hint({ kind: event === 'change' ? 'written' : 'renamed', name })
    const beyond = links.filter((link) => link !== path)
    const watched = [
      ...beyond.map((link) => this.#addName(link, onLink)),
      this.#addName(end, onTarget),
    ].filter((ends) => ends !== undefined)
    this.#links.set(name, watched)
  }

  #nameOf(path: string): string {
    return relative(this.#root, path)
  }

  #onError(error: unknown): void {
    if (this.#isClosed) return
    // What is wrong with one path is seen when the directory is read.
    if (limitCodes.has(errorCode(error))) this.#handlers.onFailure(error)
    else this.#hint({ kind: 'directory' })
  }
}

function isMissing(error: unknown): boolean {
  return errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR'
}

/** Undefined where there is nothing that can be looked at. */
async function typeOf(path: string): Promise<'directory' | 'link' | 'other' | undefined> {
  try {
    const stats = await lstat(path)
    return stats.isDirectory() ? 'directory' : stats.isSymbolicLink() ? 'link' : 'other'
  } catch {
    // Whoever reads the directory sees why.
    return undefined
  }
}
