import type { Clock } from '../../base/clock.ts'

/**
 * How long a name must be gone before its pods go. Programs such as tar and install remove a file and write it again at
 * once, with nothing that tells so before.
 */
const removalMs = 5
/**
 * The same where something shows that the file is being replaced, where files were replaced so before, and where several
 * go: then the directory may be going, which takes no pod with it.
 */
const replacementMs = 100
/** The longest that removals wait for other files to settle, as a pod may be moving between two. */
export const longestRemovalMs = 2_000

/** What is known of the other files, in which the pods of a missing one may turn up: `unknown` while podd reads one. */
export type OtherFiles = 'settled' | 'settling' | 'unknown'

interface MissingFile {
  /** Monotonic time. */
  readonly sinceMs: number
  /** Something shows that the name will be back. */
  readonly isReplaced: boolean
}

/** The names that are missing, since when, and which of them have been gone for long enough. */
export class MissingFiles {
  readonly #clock: Clock
  readonly #missing = new Map<string, MissingFile>()
  #notBeforeMs = 0
  /** Whoever writes here replaces files by removing them, with nothing that shows it. */
  #isSlow = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  has(name: string): boolean {
    return this.#missing.has(name)
  }

  /** @param isReplaced something shows that the name will be back */
  note(name: string, isReplaced: boolean): void {
    if (!this.has(name)) this.#missing.set(name, { sinceMs: this.#clock.monotonicMs(), isReplaced })
  }

  /** The name is back. */
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

  /** Nothing counts as gone for so long. */
  delay(delayMs: number): void {
    this.#notBeforeMs = this.#clock.monotonicMs() + delayMs
  }

  names(): readonly string[] {
    return [...this.#missing.keys()]
  }

  /** Those that are gone for good. */
  due(others: OtherFiles): readonly string[] {
    return this.names().filter((name) => this.#waitMs(name, others) <= 0)
  }

  /** Milliseconds until each is gone for good; Infinity where that depends on other files alone. */
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
