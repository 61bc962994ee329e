import { startDeadline, systemClock, TurnPace } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { errorMessage, PoddError } from '../base/errors.ts'
import { sameData } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import type { DecodeResult } from '../pod/decode/decode-documents.ts'
import { documentKey, warningAt } from '../pod/objects/document.ts'
import type { Problem, SourceDocument, SourceSnapshot } from '../pod/objects/document.ts'
import type { FieldValidation } from '../pod/schema/check-value.ts'
import type { SourceName } from '../pod/values/ids.ts'
import type { LastGoodCopy, LastGoodStore } from '../store/last-good.ts'
import type { DecodeSource } from './decode-source.ts'
import type { FollowedValues } from './followed-values.ts'
import type { ManifestVerifier } from './verify-manifest.ts'

/** A source of desired pods. */
export interface Source {
  /**
   * Yields a full snapshot once the source was read (or reading it failed), and after each change. Resolves only when
   * the signal is aborted.
   */
  run(onSnapshot: (snapshot: SourceSnapshot) => void, signal: AbortSignal): Promise<void>
}

/** How a source learns of changes: from the file system's events, by polling, or from the server. */
export type SourceMode = 'watch' | 'poll' | 'push'

/** The state of a source beside its snapshots. Times are wall milliseconds. */
export interface SourceReport {
  readonly mode: SourceMode
  /** A hash of the content last read. */
  readonly hash?: string | undefined
  /** The server's ETag. */
  readonly etag?: string | undefined
  /** When it was last read, or the server last answered. */
  readonly answeredAtMs?: number | undefined
  /** Why it can't be read, and since when. */
  readonly failure?: { readonly message: string; readonly sinceMs: number } | undefined
}

/** A source that reports its state. */
export interface ReportingSource extends Source {
  report(): SourceReport
}

/** What the sources of directories and of URLs have in common. */
export interface SourceOptions {
  readonly name: SourceName
  readonly clock: Clock
  readonly logger: Logger
  readonly lastGood: LastGoodStore
  readonly decode: DecodeSource
  /** Left out, manifests need no signatures. */
  readonly verifier?: ManifestVerifier | undefined
  /** The values that `decode` substitutes: after a change all is read and decoded again. */
  readonly values?: FollowedValues | undefined
  readonly fieldValidation?: FieldValidation
}

/** Bounds how long a server may take for an answer. */
export function answerDeadline(clock: Clock, withinMs: number): ReturnType<typeof startDeadline> {
  const message = `no full answer within ${withinMs / 1000} s`
  return startDeadline(clock, withinMs, () => new PoddError('SOURCE_TIMEOUT', message))
}

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

  /** Saves the copy again where its file is gone: somebody has removed it, or its directory. Never throws. */
  async keep(): Promise<void> {
    const saved = this.#saved
    if (saved === undefined || this.#saving !== undefined || (await this.#store.isThere(this.#source))) return
    // It is being saved by now.
    if (this.#saving !== undefined || this.#saved !== saved) return
    this.#saved = undefined
    this.save(saved.documents, saved.mountPoint)
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
        if (!(await isSameSet(wanted, this.#saved)))
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
    this.#problem = message === undefined ? undefined : warningAt(this.#location, message)
    if (message !== undefined)
      this.#logger.error({ source: this.#source, err: error }, 'cannot write the last good copy')
    this.#onProblem()
  }
}

/** In turns: there may be tens of thousands. */
async function isSameSet(wanted: Wanted, saved: Wanted | undefined): Promise<boolean> {
  if (saved === undefined || wanted.mountPoint !== saved.mountPoint) return false
  if (wanted.documents.length !== saved.documents.length) return false
  const pace = new TurnPace(systemClock)
  for (const [at, document] of wanted.documents.entries()) {
    if (pace.isOver) await pace.next()
    if (!isSameDocument(document, saved.documents[at])) return false
  }
  return true
}

function isSameDocument(document: SourceDocument, saved: SourceDocument | undefined): boolean {
  if (document === saved) return true
  return (
    document.written === saved?.written &&
    document.signedBy === saved?.signedBy &&
    sameData(document.manifest, saved?.manifest) &&
    sameData(document.place, saved?.place)
  )
}

/**
 * Merges a file or response with its last good version: its good documents, and the last good form of bad ones. A bad
 * document without a name may be any of the earlier ones, so all of them are kept.
 */
export function mergeLastGood(
  before: readonly SourceDocument[],
  { documents, heldObjects, holdsAll }: DecodeResult,
): readonly SourceDocument[] {
  const given = new Set(documents.map((document) => documentKey(document)))
  const isHeld = new Set(heldObjects)
  const held = before.filter((document) => {
    const key = documentKey(document)
    return !given.has(key) && (holdsAll || isHeld.has(key))
  })
  return [...documents, ...held]
}

/**
 * How long a name must be missing before its pods are removed. Programs such as tar and install remove a file and write
 * it again at once, without any sign beforehand.
 */
const removalMs = 5
/**
 * The same where there are signs that the file is being replaced, where files were replaced so before, and where
 * several are missing: then the directory may be about to go, which removes no pod.
 */
const replacementMs = 100
/** The longest that removals wait for other files to settle, as a pod may be moving between two files. */
export const longestRemovalMs = 2_000
/** How long after a directory was missing or replaced its missing files don't count yet. */
export const refillMs = 5_000

/** The state of the other files, which may contain the pods of a missing one: `unknown` while podd reads one. */
export type OtherFiles = 'settled' | 'settling' | 'unknown'

interface MissingFile {
  /** Monotonic time. */
  readonly sinceMs: number
  /** There are signs that the name will return. */
  readonly isReplaced: boolean
}

/** The missing names, since when they are, and which have been missing for long enough. */
export class MissingFiles {
  readonly #clock: Clock
  readonly #missing = new Map<string, MissingFile>()
  #notBeforeMs = 0
  /** Files here are replaced by removing them, without signs. */
  #isSlow = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  has(name: string): boolean {
    return this.#missing.has(name)
  }

  /** @param isReplaced there are signs that the name will return */
  note(name: string, isReplaced: boolean): void {
    if (!this.has(name)) this.#missing.set(name, { sinceMs: this.#clock.monotonicMs(), isReplaced })
  }

  /** The name has returned. */
  noteReturn(name: string): void {
    if (this.#missing.get(name)?.isReplaced === false) this.#isSlow = true
    this.forget(name)
  }

  forget(name: string): void {
    this.#missing.delete(name)
  }

  forgetAll(): void {
    this.#missing.clear()
  }

  /** No name counts as removed for this long. */
  delay(delayMs: number): void {
    this.#notBeforeMs = this.#clock.monotonicMs() + delayMs
  }

  names(): readonly string[] {
    return [...this.#missing.keys()]
  }

  /** The names that count as removed. */
  due(others: OtherFiles): readonly string[] {
    return this.names().filter((name) => this.#waitMs(name, others) <= 0)
  }

  /** Milliseconds until each counts as removed; Infinity where that depends only on other files. */
  waitsMs(others: OtherFiles): readonly number[] {
    return this.names().map((name) => this.#waitMs(name, others))
  }

  #waitMs(name: string, others: OtherFiles): number {
    if (others === 'unknown') return Infinity
    const nowMs = this.#clock.monotonicMs()
    const { sinceMs, isReplaced } = this.#missing.get(name) ?? { sinceMs: nowMs, isReplaced: true }
    const isAlone = this.#missing.size === 1
    const ownMs = isReplaced || this.#isSlow || !isAlone ? replacementMs : removalMs
    const delayMs = others === 'settling' ? longestRemovalMs : ownMs
    return Math.max(0, sinceMs + delayMs - nowMs, this.#notBeforeMs - nowMs)
  }
}
