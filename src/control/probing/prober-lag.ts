import type { ProbeOutcome } from '../../probes/probe-outcome.ts'
import type { Clock, Timer } from '../../base/clock.ts'

/** How often podd looks whether it still gets to look, while anything is in flight. */
const heartbeatMs = 50
/** Lateness below this is what timers and other work cost on any healthy host. */
const noticeableMs = 10

/**
 * Measures how long podd itself was kept from sending and reading (a blocked event loop, a host that gave
 * it no CPU) while a piece of work was in flight: by how much a regular heartbeat came late. The heart
 * beats only while there is such work.
 */
export class ProberLag {
  readonly #clock: Clock
  #inFlight = 0
  #stalledMs = 0
  #beat: { readonly dueMs: number; readonly timer: Timer } | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Work begins; give the mark to `leave`. */
  enter(): number {
    this.#inFlight += 1
    if (this.#beat === undefined) this.#arm()
    return this.#soFarMs()
  }

  /** Work ends; the milliseconds for which podd stalled since `enter`. */
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

/** Which part of a probe's timeout went by while nothing could be heard of the container. */
export function lateShare(outcome: ProbeOutcome, stalledMs: number, timeoutMs: number): number {
  if (outcome.result === 'unknown') return 0
  const lateMs = (outcome.timedOut === true ? stalledMs : 0) + (outcome.silentMs ?? 0)
  return lateMs / timeoutMs
}
