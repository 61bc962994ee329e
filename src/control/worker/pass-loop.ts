import type { Clock, SharedTurns, Timer } from '../../base/clock.ts'
import { WakeSlot } from '../../base/waits.ts'
import { Interrupted, OutdatedView } from '../actions/interrupted.ts'

export interface PassLoopDeps {
  readonly clock: Clock
  /** Those of all pods. */
  readonly turns: SharedTurns
  /** `signal` ends its waits. What it throws goes to `onError`, except Interrupted. */
  readonly pass: (signal: AbortSignal) => Promise<void>
  /** Never throws. */
  readonly onError: (error: unknown) => void
  /** No further pass is needed. */
  readonly isDone: () => boolean
}

const windowMs = 1000
const passesPerWindow = 30

/**
 * Limits the rate of passes: a runtime that reports a container as stopped and then lists it as running must not make
 * podd spin. A pod normally needs only a few passes at once.
 */
class PassPace {
  #fromMs = -Infinity
  #passes = 0

  /** For how many milliseconds a pass that is due at `nowMs` (monotonic) has to wait; 0 for none. */
  delayMs(nowMs: number): number {
    if (nowMs - this.#fromMs >= windowMs) {
      this.#fromMs = nowMs
      this.#passes = 0
    }
    this.#passes += 1
    return this.#passes <= passesPerWindow ? 0 : this.#fromMs + windowMs - nowMs
  }
}

/** Runs one pass after another, each when it is woken or due; never two at a time. */
export class PassLoop {
  readonly #deps: PassLoopDeps
  readonly #slot = new WakeSlot()
  readonly #pace = new PassPace()
  #interrupt = new AbortController()
  #timer: Timer | undefined
  #stopping = false
  #running: Promise<void> | undefined

  constructor(deps: PassLoopDeps) {
    this.#deps = deps
  }

  /** The signal of the newest pass. */
  get signal(): AbortSignal {
    return this.#interrupt.signal
  }

  /** Begins; once. */
  start(): void {
    if (this.#running !== undefined) return
    this.#running = this.#run()
    this.#slot.wake()
  }

  wake(): void {
    this.#slot.wake()
  }

  /** Replaces an earlier `wakeIn`. */
  wakeIn(delayMs: number): void {
    this.#timer?.cancel()
    this.#timer = this.#deps.clock.startTimer(delayMs, () => this.#slot.wake())
  }

  /** Interrupts the pass in flight, and starts another. */
  interrupt(): void {
    this.#interrupt.abort(new Interrupted())
    this.#slot.wake()
  }

  /** Resolves when the pass in flight has stopped; none follows it. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.interrupt()
    await this.#running
  }

  /** Returns only when stopped or done; never rejects. */
  async #run(): Promise<void> {
    while (!this.#stopping && !this.#deps.isDone()) {
      await this.#slot.wait()
      if (this.#stopping) break
      this.#timer?.cancel()
      const paceMs = this.#pace.delayMs(this.#deps.clock.monotonicMs())
      if (paceMs > 0) {
        this.wakeIn(paceMs)
        continue
      }
      const turn = this.#deps.turns.enter()
      if (turn !== undefined) await turn
      if (this.#stopping) break
      this.#interrupt = new AbortController()
      try {
        await this.#deps.pass(this.#interrupt.signal)
      } catch (error) {
        if (error instanceof OutdatedView) this.#slot.wake()
        else if (!(error instanceof Interrupted)) this.#deps.onError(error)
      }
    }
    this.#timer?.cancel()
  }
}
