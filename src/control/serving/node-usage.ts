import { cpus } from 'node:os'
import type { Clock } from '../../base/clock.ts'
import { readMemoryAmount } from '../../host/facts/host-stats.ts'
import type { NodeUsage } from '../../pod/state/usage.ts'

interface Sample {
  readonly takenAtMs: number
  /** Of all CPUs since the host's start, in milliseconds. */
  readonly busyMs: number
}

/** A shorter time is inaccurate, a longer one tells of the past. */
const leastWindowMs = 1000
const longestWindowMs = 60_000

/** Measures what the host uses, when asked and at no other time, as UsageMeter does it for containers. */
export class NodeUsageMeter {
  readonly #clock: Clock
  #before: Sample | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Throws the signal's reason. */
  async read(signal: AbortSignal): Promise<NodeUsage> {
    const clock = this.#clock
    const ageMs = clock.monotonicMs() - (this.#before?.takenAtMs ?? -Infinity)
    const base = this.#before !== undefined && ageMs <= longestWindowMs ? this.#before : this.#sample()
    const leftMs = base.takenAtMs + leastWindowMs - clock.monotonicMs()
    if (leftMs > 0) await clock.sleep(leftMs, signal)
    const now = this.#sample()
    this.#before = now
    const windowMs = Math.max(1, now.takenAtMs - base.takenAtMs)
    const memory = readMemoryAmount()
    return {
      atMs: clock.wallMs(),
      windowMs: Math.round(windowMs),
      cpuNanoCores: Math.max(0, Math.round(((now.busyMs - base.busyMs) / windowMs) * 1e9)),
      memoryBytes: memory === undefined ? 0 : memory.capacity - memory.available,
    }
  }

  #sample(): Sample {
    const busyMs = cpus().reduce(
      (sum, { times: { user, nice, sys, irq } }) => sum + user + nice + sys + irq,
      0,
    )
    return { takenAtMs: this.#clock.monotonicMs(), busyMs }
  }
}
