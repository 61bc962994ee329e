import type { Clock } from '../base/clock.ts'

/** How long a name must be gone before its pods go: editors save by moving the old file aside first. */
const removalMs = 100
/** The longest that removals wait for other files to settle, as a pod may be moving between two. */
export const longestRemovalMs = 2_000

/** The names that are missing, since when, and which of them have been gone for long enough. */
export class MissingFiles {
  readonly #clock: Clock
  readonly #sinceMs = new Map<string, number>()
  #notBeforeMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Tells whether that is news. */
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
  due(isSettling: boolean): readonly string[] {
    return this.names().filter((name) => this.#waitMs(name, isSettling) <= 0)
  }

  /** Milliseconds until each is gone for good. */
  waitsMs(isSettling: boolean): readonly number[] {
    return this.names().map((name) => this.#waitMs(name, isSettling))
  }

  #waitMs(name: string, isSettling: boolean): number {
    const nowMs = this.#clock.monotonicMs()
    const delayMs = isSettling ? longestRemovalMs : removalMs
    const sinceMs = this.#sinceMs.get(name) ?? nowMs
    return Math.max(0, sinceMs + delayMs - nowMs, this.#notBeforeMs - nowMs)
  }
}
