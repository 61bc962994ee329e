import { createHash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { SourceDocument, Problem, SourceName } from '../pod/document.ts'
import type { LastGoodStore } from '../store/last-good.ts'

/**
 * How long a set waits to be saved: what is written at once would slow the start of the pods that it is about,
 * and what comes in a burst is written once.
 */
const delayMs = 1000

export interface LastGoodSaverOptions {
  readonly store: LastGoodStore
  readonly source: SourceName
  readonly location: string
  readonly clock: Clock
  readonly logger: Logger
  /** Called when `problem()` has changed. */
  readonly onProblem: () => void
}

/** Keeps one source's last good copy up to date, behind the source's back: nothing waits for the disk. */
export class LastGoodSaver {
  readonly #options: LastGoodSaverOptions
  readonly #hurry = new AbortController()
  #wanted: readonly SourceDocument[] | undefined
  #saved = ''
  #saving: Promise<void> | undefined
  #problem: Problem | undefined

  constructor(options: LastGoodSaverOptions) {
    this.#options = options
  }

  /** The copy on disk; undefined where there is none, or none that can be read. */
  async load(): Promise<readonly SourceDocument[] | undefined> {
    const { store, source, location } = this.#options
    try {
      const documents = await store.load(source, location)
      if (documents !== undefined) this.#saved = signature(documents)
      return documents
    } catch (error) {
      this.#note('loaded', error)
      return undefined
    }
  }

  /** Saves this set soon, unless it is the one that was saved last. */
  save(documents: readonly SourceDocument[]): void {
    this.#wanted = documents
    this.#saving ??= this.#run()
  }

  /** What keeps the copy from being saved. */
  problem(): Problem | undefined {
    return this.#problem
  }

  /** Saves at once what was asked for; resolves when that is done, or has failed. */
  async flush(): Promise<void> {
    this.#hurry.abort()
    await this.#saving
  }

  async #run(): Promise<void> {
    const { store, source, location, clock } = this.#options
    // Cut short by a flush.
    await clock.sleep(delayMs, this.#hurry.signal).catch(() => undefined)
    while (this.#wanted !== undefined) {
      const documents = this.#wanted
      this.#wanted = undefined
      const wantedSignature = signature(documents)
      if (wantedSignature === this.#saved) continue
      try {
        await store.save(source, location, documents)
        this.#saved = wantedSignature
        this.#note('saved', undefined)
      } catch (error) {
        this.#note('saved', error)
      }
    }
    this.#saving = undefined
  }

  #note(what: 'loaded' | 'saved', error: unknown): void {
    const { source, location, logger, onProblem } = this.#options
    const message =
      error === undefined
        ? undefined
        : `the last good copy of this source cannot be ${what}: ${errorMessage(error)}`
    if (message === this.#problem?.message) return
    this.#problem =
      message === undefined ? undefined : { severity: 'warning', place: { path: location }, message }
    if (message !== undefined) logger.error({ source, err: error }, 'no last good copy')
    onProblem()
  }
}

function signature(documents: readonly SourceDocument[]): string {
  const text = JSON.stringify(documents.map(({ manifest, place }) => [manifest, place]))
  return createHash('sha256').update(text).digest('hex')
}
