import { watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { basename } from 'node:path'

/** What inotify saw of a name: that it was written (`change`), or that it came, went or means another file (`rename`). */
export type NameEvent = 'change' | 'rename'

/** @param name undefined for the directory itself, which was replaced, went or has other attributes now */
export type NameListener = (event: NameEvent, name: string | undefined) => void

interface DirectoryListeners {
  readonly watcher: FSWatcher
  /** To all names. */
  readonly all: Set<NameListener>
  readonly byName: Map<string, Set<NameListener>>
}

/** Directories that are watched by inotify, one watch each, however many listen to names in it. */
export class NameWatches {
  readonly #onError: (error: unknown) => void
  readonly #directories = new Map<string, DirectoryListeners>()

  /** @param onError what the system says of a watch that had begun */
  constructor(onError: (error: unknown) => void) {
    this.#onError = onError
  }

  /** Listens to all names of a directory. Throws what the system throws. */
  addAll(directory: string, listener: NameListener): void {
    this.#listenersOf(directory).all.add(listener)
  }

  /** Listens to one name of a directory, until the function is called that this gives. Throws what the system throws. */
  addName(directory: string, name: string, listener: (event: NameEvent) => void): () => void {
    const watched = this.#listenersOf(directory)
    const { byName, all, watcher } = watched
    const listeners = byName.get(name) ?? new Set()
    byName.set(name, listeners.add(listener))
    return () => {
      listeners.delete(listener)
      if (listeners.size === 0) byName.delete(name)
      if (this.#directories.get(directory) !== watched || all.size > 0 || byName.size > 0) return
      watcher.close()
      this.#directories.delete(directory)
    }
  }

  has(directory: string): boolean {
    return (this.#directories.get(directory)?.all.size ?? 0) > 0
  }

  /** Nothing listens any more to this directory and those within it. */
  drop(directory: string): void {
    for (const [path, { watcher }] of this.#directories) {
      if (path !== directory && !path.startsWith(`${directory}/`)) continue
      watcher.close()
      this.#directories.delete(path)
    }
  }

  close(): void {
    for (const { watcher } of this.#directories.values()) watcher.close()
    this.#directories.clear()
  }

  #listenersOf(directory: string): DirectoryListeners {
    const known = this.#directories.get(directory)
    if (known !== undefined) return known
    const all = new Set<NameListener>()
    const byName = new Map<string, Set<NameListener>>()
    const watcher = watch(directory, (event, name) => {
      if (this.#directories.get(directory)?.watcher !== watcher) return
      const kind = event === 'change' ? 'change' : 'rename'
      // libuv gives the directory's own name to what happens to itself.
      const own = name === null || name === basename(directory) ? undefined : name
      for (const listener of all) listener(kind, own)
      if (name === null) return
      for (const listener of byName.get(name) ?? []) listener(kind, own)
    })
    watcher.on('error', (error) => this.#onError(error))
    const listeners = { watcher, all, byName }
    this.#directories.set(directory, listeners)
    return listeners
  }
}
