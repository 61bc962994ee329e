import type { Clock, Timer } from '../../base/clock.ts'
import { waitInQueue } from '../../base/waits.ts'

/** What creating calls make, in the order in which waiting ones are sent: pods that were begun are completed before more are begun. */
const stages = ['start', 'container', 'sandbox'] as const
export type StartStage = (typeof stages)[number]

/**
 * How long a call counts (milliseconds). One that takes longer is stuck or waits for something other than the processor: it must
 * not hold up those of other pods.
 */
const countsForMs = 5000

interface Call {
  readonly sinceMs: number
}

/**
 * Bounds how many creating calls the runtime has at a time. Each runs programs (shim, runc, network plugins), and with more of them
 * at once than the processors can carry all take longer than one after another would.
 */
export class StartGate {
  readonly #limit: number
  readonly #clock: Clock
  readonly #counted = new Set<Call>()
  readonly #waiting: Readonly<Record<StartStage, Set<(call: Call) => void>>> = {
    start: new Set(),
    container: new Set(),
    sandbox: new Set(),
  }
  #timer: Timer | undefined

  constructor(limit: number, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
  }

  /**
   * Sends when fewer than `limit` calls count, at once where that is so already; those of one stage in the order they came.
   * Throws the signal's reason where it is aborted before that, and nothing is sent.
   */
  async run<Reply>(stage: StartStage, send: () => Promise<Reply>, signal?: AbortSignal): Promise<Reply> {
    signal?.throwIfAborted()
    const call = this.#counted.size < this.#limit ? this.#enter() : await this.#wait(stage, signal)
    try {
      signal?.throwIfAborted()
      return await send()
    } finally {
      this.#counted.delete(call)
      this.#admit()
    }
  }

  #enter(): Call {
    const call = { sinceMs: this.#clock.monotonicMs() }
    this.#counted.add(call)
    return call
  }

  #wait(stage: StartStage, signal: AbortSignal | undefined): Promise<Call> {
    const turn = waitInQueue(this.#waiting[stage], signal)
    this.#watchOldest()
    return turn
  }

  #admit(): void {
    while (this.#counted.size < this.#limit) {
      const queue = this.#firstWaiting()
      const [next] = queue ?? []
      if (queue === undefined || next === undefined) break
      queue.delete(next)
      next(this.#enter())
    }
    if (this.#firstWaiting() !== undefined) return
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #firstWaiting(): Set<(call: Call) => void> | undefined {
    return stages.map((stage) => this.#waiting[stage]).find(({ size }) => size > 0)
  }

  /** One timer for all, and only while somebody waits. */
  #watchOldest(): void {
    const [oldest] = this.#counted
    if (this.#timer !== undefined || oldest === undefined) return
    const now = this.#clock.monotonicMs()
    this.#timer = this.#clock.startTimer(oldest.sinceMs + countsForMs - now, () => {
      this.#timer = undefined
      const before = this.#clock.monotonicMs() - countsForMs
      for (const call of this.#counted) if (call.sinceMs <= before) this.#counted.delete(call)
      this.#admit()
      if (this.#firstWaiting() !== undefined) this.#watchOldest()
    })
  }
}
