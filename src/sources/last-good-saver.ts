import { errorMessage } from '../base/errors.ts'
import { sameData } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import type { SourceDocument, Problem, SourceName } from '../pod/objects/document.ts'
import type { LastGoodCopy, LastGoodStore } from '../store/last-good.ts'

type Wanted = Pick<LastGoodCopy, 'documents' | 'mountPoint'>

/** Keeps one source's last good copy up to date, in the background: nothing waits for the disk. */
export class LastGoodSaver {
  readonly #store: LastGoodStore
  readonly #source: SourceName
  readonly #location: string
  readonly #logger: Logger
  readonly #onProblem: () => void
  #wanted: Wanted | undefined
  #saved: Wanted | undefined
  #saving: Promise<void> | undefined
  #problem: Problem | undefined

  /** `onProblem` is called when `problem()` has changed. */
  constructor(
    store: LastGoodStore,
    source: SourceName,
    location: string,
    logger: Logger,
    onProblem: () => void,
  ) {
    this.#store = store
    this.#source = source
    this.#location = location
    this.#logger = logger
    this.#onProblem = onProblem
  }

  /** The copy on disk; undefined where there is none, or none that can be read. */
  async load(): Promise<LastGoodCopy | undefined> {
    try {
      const copy = await this.#store.load(this.#source, this.#location)
      if (copy?.isComplete === true) this.#saved = copy
      return copy
    } catch (error) {
      this.#note('loaded', error)
      return undefined
    }
  }

  /** Saves this set soon, unless it was the last one saved. */
  save(documents: readonly SourceDocument[], mountPoint?: string): void {
    this.#wanted = { documents, mountPoint }
    this.#saving ??= this.#run()
  }

  /** The problem that keeps the copy from being saved. */
  problem(): Problem | undefined {
    return this.#problem
  }

  /** Resolves when all requested saves have succeeded or failed. */
  async flush(): Promise<void> {
    await this.#saving
  }

  async #run(): Promise<void> {
    // `#saving` has to be set before it is cleared, also where nothing is to be done.
    await Promise.resolve()
    while (this.#wanted !== undefined) {
      const wanted = this.#wanted
      this.#wanted = undefined
      try {
        if (!isSameSet(wanted, this.#saved))
          await this.#store.save(this.#source, this.#location, wanted.documents, wanted.mountPoint)
        // Keep the new, equal objects: the next comparison is by identity.
        this.#saved = wanted
        this.#note('saved', undefined)
      } catch (error) {
        this.#note('saved', error)
      }
    }
    this.#saving = undefined
  }

  #note(what: 'loaded' | 'saved', error: unknown): void {
    const message =
      error === undefined
        ? undefined
        : `the last good copy of this source cannot be ${what}: ${errorMessage(error)}`
    if (message === this.#problem?.message) return
    this.#problem =
      message === undefined ? undefined : { severity: 'warning', place: { path: this.#location }, message }
    if (message !== undefined)
      this.#logger.error({ source: this.#source, err: error }, 'cannot write the last good copy')
    this.#onProblem()
  }
}

function isSameSet(wanted: Wanted, saved: Wanted | undefined): boolean {
  if (saved === undefined || wanted.mountPoint !== saved.mountPoint) return false
  if (wanted.documents.length !== saved.documents.length) return false
  return wanted.documents.every((document, at) => isSameDocument(document, saved.documents[at]))
}

function isSameDocument(document: SourceDocument, saved: SourceDocument | undefined): boolean {
  if (document === saved) return true
  return sameData(document.manifest, saved?.manifest) && sameData(document.place, saved?.place)
}
