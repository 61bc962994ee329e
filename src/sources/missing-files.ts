import type { Clock } from '../base/clock.ts'

/** How long a name must be gone before its pods go: editors save by moving the old file aside first. */
const removalMs = 100
/** The longest that removals wait for other files to settle, as a pod may be moving between two. */
export const longestRemovalMs = 2_000

/** What is known of the other files, in which the pods of a missing one may turn up: `unknown` while podd reads one. */
export type OtherFiles = 'settled' | 'settling' | 'unknown'

/** The names that are missing, since when, and which of them have been gone for long enough. */
export class MissingFiles {
  readonly #clock: Clock
  readonly #sinceMs = new Map<string, number>()
  #notBeforeMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Gives whether it was not missing before. */
  note(name: string): boolean {
    if (this.#sinceMs.has(name)) return false
    this.#sinceMs.set(name, this.#clock.monotonicMs())
    return true
  }

  forget(name: string): void {
    this.#sinceMs.delete(name)
  }

  forgetAll(): void {
    this.#sinceMs.clear()
  }

  /** Nothing counts as gone for so long. */
  delay(delayMs: number): void {
    this.#notBeforeMs = this.#clock.monotonicMs() + delayMs
  }

  names(): readonly string[] {
    return [...this.#sinceMs.keys()]
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
    const delayMs = others === 'settling' ? longestRemovalMs : removalMs
    const sinceMs = this.#sinceMs.get(name) ?? nowMs
    return Math.max(0, sinceMs + delayMs - nowMs, this.#notBeforeMs - nowMs)
  }
}
