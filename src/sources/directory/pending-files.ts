import type { Clock } from '../../base/clock.ts'
import { longestRemovalMs } from '../missing-files.ts'
import type { OtherFiles } from '../missing-files.ts'
import type { PendingFile } from './pending-file.ts'
import { sizeOf } from './pending-file.ts'
import { holdsRemovals } from './read-failure.ts'
import { computeSettleWait } from './settle-file.ts'
import { hasErrors } from './taken-files.ts'
import type { TakenFiles } from './taken-files.ts'

/** A new file of up to so many bytes is read at each of its changes. */
const smallBytes = 16_384

/** The files that changed and aren't taken yet, by name: which are being read, and when each is due. */
export class PendingFiles {
  readonly #clock: Clock
  readonly #known: Pick<TakenFiles, 'has' | 'givesLess'>
  readonly #files = new Map<string, PendingFile>()
  readonly #reading = new Set<string>()
  /** Monotonic time of the last change of a name in the directory. */
  #movedAtMs = -Infinity

  constructor(clock: Clock, known: Pick<TakenFiles, 'has' | 'givesLess'>) {
    this.#clock = clock
    this.#known = known
  }

  get(name: string): PendingFile | undefined {
    return this.#files.get(name)
  }

  has(name: string): boolean {
    return this.#files.has(name)
  }

  set(name: string, file: PendingFile): void {
    this.#files.set(name, file)
  }

  delete(name: string): void {
    this.#files.delete(name)
  }

  keys(): Iterable<string> {
    return this.#files.keys()
  }

  entries(): Iterable<readonly [name: string, file: PendingFile]> {
    return this.#files.entries()
  }

  /** A name in the directory was added, removed or changed. */
  noteMove(): void {
    this.#movedAtMs = this.#clock.monotonicMs()
  }

  beginRead(name: string): void {
    this.#reading.add(name)
  }

  endRead(name: string): void {
    this.#reading.delete(name)
  }

  get readingCount(): number {
    return this.#reading.size
  }

  get isSettling(): boolean {
    return [...this.#files.values()].some(({ failure }) => failure === undefined)
  }

  /** Whether podd itself is reading or decoding one, or will retry a read that the system can't do for now. */
  get isReading(): boolean {
    const nowMs = this.#clock.monotonicMs()
    if (this.#reading.size > 0) return true
    return [...this.#files.values()].some(({ failure }) => holdsRemovals(failure, nowMs))
  }

  /** What is known of these files to one that is missing. */
  get state(): OtherFiles {
    if (this.isReading) return 'unknown'
    return this.#files.size > 0 ? 'settling' : 'settled'
  }

  /** The files to read or take now. */
  due(): readonly (readonly [name: string, file: PendingFile])[] {
    return [...this.#files].filter(
      ([name, file]) =>
        (this.waitMs(name, file) <= 0 || this.#mayBeReadEarly(name, file)) && !this.#reading.has(name),
    )
  }

  /** A small new file is read at once, since its content may show that it is whole; others are read once they are quiet. */
  #mayBeReadEarly(name: string, { look, read, failure }: PendingFile): boolean {
    const sizeBytes = sizeOf(look)
    const isSmall = sizeBytes > 0 && sizeBytes <= smallBytes
    return isSmall && read === undefined && failure === undefined && !this.#known.has(name)
  }

  /** Milliseconds until each file that isn't being read is due; Infinity where that depends on other files. */
  waitsMs(): readonly number[] {
    return [...this.#files].flatMap(([name, file]) =>
      this.#reading.has(name) ? [] : [this.waitMs(name, file)],
    )
  }

  /** Milliseconds until a file is due; Infinity where that depends on other files. */
  waitMs(name: string, pending: PendingFile): number {
    const nowMs = this.#clock.monotonicMs()
    const ownMs = this.#ownWaitMs(name, pending, nowMs)
    if (pending.read?.dropsObjects !== true) return ownMs
    return Math.max(ownMs, this.#othersWaitMs(name, pending, nowMs))
  }

  /** A document that a file drops may be in another one that isn't decoded yet; podd's own reads are waited for. */
  #othersWaitMs(name: string, { changedAtMs }: PendingFile, nowMs: number): number {
    const unknown = [...this.#files].filter(
      ([other, file]) =>
        other !== name && (file.read === undefined || this.#ownWaitMs(other, file, nowMs) > 0),
    )
    if (unknown.length === 0) return 0
    if (unknown.some(([other, { failure }]) => this.#reading.has(other) || holdsRemovals(failure, nowMs)))
      return Infinity
    return Math.max(0, changedAtMs + longestRemovalMs - nowMs)
  }

  #ownWaitMs(name: string, pending: PendingFile, nowMs: number): number {
    const { look, read, failure, isWrittenInPlace, changedAtMs } = pending
    if (failure !== undefined) return Math.max(0, failure.retryAtMs - nowMs)
    const sizeBytes = sizeOf(look)
    return computeSettleWait({
      sizeBytes,
      isWrittenInPlace,
      isNew: !this.#known.has(name),
      quietMs: nowMs - changedAtMs,
      directoryQuietMs: nowMs - this.#movedAtMs,
      ...(read !== undefined && {
        content: {
          hasErrors: hasErrors(read.result.problems),
          endsCleanly: read.endsCleanly,
          isBraced: read.isBraced,
          dropsObjects: read.dropsObjects,
          givesLess: this.#known.givesLess(name, sizeBytes, read.result),
        },
      }),
    })
  }
}
