import type { Clock, Timer } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { findNetworkFileSystem, watchDirectory } from './watch-directory.ts'
import type { HostValueReader } from './host-values.ts'
import type { DirectoryWatch, WatchDirectory } from './watch-directory.ts'

/** Values that texts are decoded with, and that may change. */
export interface FollowedValues {
  /** Differs after each change. */
  readonly revision: number
  /** Calls `listener` after each change, until the returned function is called. */
  follow(listener: () => void): () => void
}

export interface FollowedValuesOptions {
  readonly reader: HostValueReader
  readonly clock: Clock
  readonly logger: Logger
  readonly watch?: WatchDirectory
  readonly findNetwork?: (path: string) => Promise<string | undefined>
}

/** How long a file must be unchanged before it is read: an editor removes a file and writes it again. */
const settleMs = 100
/** The interval of reads where no watch reports changes. */
const pollMs = 2_000

/** The values of a host. Their files are watched while there is a listener. */
export class FollowedHostValues implements FollowedValues {
  readonly #options: FollowedValuesOptions
  readonly #listeners = new Set<() => void>()
  #watches: readonly DirectoryWatch[] = []
  #timer: Timer | undefined
  #isPolled = false
  #revision = 0

  constructor(options: FollowedValuesOptions) {
    this.#options = options
  }

  get revision(): number {
    return this.#revision
  }

  follow(listener: () => void): () => void {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) this.#begin()
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#end()
    }
  }

  #begin(): void {
    const { reader, watch = watchDirectory, findNetwork = findNetworkFileSystem } = this.#options
    for (const path of reader.paths) {
      const onFailure = (error: unknown): void => this.#poll(path, error)
      try {
        const watching = watch(path, { onHint: () => this.#readSoon(), onFailure })
        this.#watches = [...this.#watches, watching]
      } catch (error) {
        onFailure(error)
      }
      void findNetwork(path).then(
        (fileSystem) => fileSystem !== undefined && this.#poll(path, fileSystem),
        // It isn't known to be on a network: its watch tells of changes.
        () => undefined,
      )
    }
  }

  #end(): void {
    for (const watching of this.#watches) void watching.close()
    this.#watches = []
    this.#timer?.cancel()
    this.#timer = undefined
    this.#isPolled = false
  }

  #poll(path: string, cause: unknown): void {
    if (this.#isPolled || this.#listeners.size === 0) return
    this.#isPolled = true
    this.#options.logger.warn(
      { path, err: cause },
      'changes of this value are not reported: it is read every 2 s',
    )
    this.#readSoon(pollMs)
  }

  #readSoon(delayMs = settleMs): void {
    if (this.#listeners.size === 0) return
    this.#timer?.cancel()
    this.#timer = this.#options.clock.startTimer(delayMs, () => void this.#read())
  }

  async #read(): Promise<void> {
    this.#timer = undefined
    const isChanged = await this.#options.reader.reread()
    if (isChanged) {
      this.#revision += 1
      for (const listener of this.#listeners) listener()
    }
    if (this.#isPolled && this.#timer === undefined) this.#readSoon(pollMs)
  }
}
