import type { ProbeOutcome } from '../../probes/probe-outcome.ts'
import type { Clock, Timer } from '../../base/clock.ts'

/** The period of the heartbeat, while anything is in flight. */
const heartbeatMs = 50
/** Lateness below this is normal on any healthy host: timers and other work cause it. */
const noticeableMs = 10

/**
 * Measures how long podd itself was kept from sending and reading (a blocked event loop, a host that gave it no CPU)
 * while a piece of work was in flight: by how much a regular heartbeat came late. The heartbeat runs only while there
 * is such work.
 */
export class ProberLag {
  readonly #clock: Clock
  #inFlight = 0
  #stalledMs = 0
  #beat: { readonly dueMs: number; readonly timer: Timer } | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Work begins. Returns a mark, which `leave` takes. */
  enter(): number {
    this.#inFlight += 1
    if (this.#beat === undefined) this.#arm()
    return this.#soFarMs()
  }

  /** Work ends. Returns for how many milliseconds podd stalled since `enter`. */
  leave(mark: number): number {
    this.#inFlight -= 1
    const stalledMs = this.#soFarMs() - mark
    if (this.#inFlight === 0) {
      this.#stalledMs = 0
      this.#beat?.timer.cancel()
      this.#beat = undefined
    }
    return stalledMs
  }

  #soFarMs(): number {
    return this.#stalledMs + this.#latenessMs()
  }

  #latenessMs(): number {
    if (this.#beat === undefined) return 0
    const lateMs = this.#clock.monotonicMs() - this.#beat.dueMs
    return lateMs < noticeableMs ? 0 : lateMs
  }

  #arm(): void {
    const dueMs = this.#clock.monotonicMs() + heartbeatMs
    const timer = this.#clock.startTimer(heartbeatMs, () => {
      this.#stalledMs += this.#latenessMs()
      this.#arm()
    })
    this.#beat = { dueMs, timer }
  }
}

/** The share of a probe's timeout during which podd could not have received an answer, from 0 to 1. */
export function lateShare(outcome: ProbeOutcome, stalledMs: number, timeoutMs: number): number {
  if (outcome.result === 'unknown') return 0
  const lateMs = (outcome.timedOut === true ? stalledMs : 0) + (outcome.silentMs ?? 0)
  return lateMs / timeoutMs
}
