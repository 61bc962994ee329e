import type { Clock } from '../base/clock.ts'

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
