import type { Clock } from '../../base/clock.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { ContainerUsage } from '../../pod/state/usage.ts'
import { labelKeys } from '../../translate/identity.ts'
import type { RuntimeStats } from '../runtime/runtime-stats.ts'

export interface UsageMeterOptions {
  readonly stats: Pick<RuntimeStats, 'containers'>
  readonly clock: Clock
}

interface Sample {
  readonly takenAtMs: number
  readonly stats: ReadonlyMap<string, cri.ContainerStats>
  /** The containers whose usage could not be read. */
  readonly unanswered: ReadonlySet<string>
}

/** A shorter time is inaccurate: the kernel accounts CPU time by its tick. */
const leastWindowMs = 1000
/** A longer time tells of the past. */
const longestWindowMs = 60_000

/**
 * Measures what containers use, when asked and at no other time. CPU usage is the difference of two readings of the
 * CPU time: the one before, if it was taken within the last minute, else one of a second ago. (Runtimes give a rate of
 * their own only from containerd 2.x on, over a window of their own.)
 */
export class UsageMeter {
  readonly #options: UsageMeterOptions
  #before: Sample | undefined

  constructor(options: UsageMeterOptions) {
    this.#options = options
  }

  /** Throws CriError, or the signal's reason. */
  async read(signal: AbortSignal): Promise<readonly ContainerUsage[]> {
    const { clock } = this.#options
    const ageMs = clock.monotonicMs() - (this.#before?.takenAtMs ?? -Infinity)
    const base =
      this.#before !== undefined && ageMs <= longestWindowMs ? this.#before : await this.#sample(signal)
    const leftMs = base.takenAtMs + leastWindowMs - clock.monotonicMs()
    if (leftMs > 0) await clock.sleep(leftMs, signal)
    const now = await this.#sample(signal)
    this.#before = now
    return [...now.stats].flatMap(([id, stats]) => {
      // It is not new: what it used since the other reading is unknown.
      if (base.unanswered.has(id)) return []
      const usage = measure(stats, base.stats.get(id), now.takenAtMs - base.takenAtMs)
      return usage === undefined ? [] : [{ ...usage, atMs: clock.wallMs() }]
    })
  }

  async #sample(signal: AbortSignal): Promise<Sample> {
    const { clock } = this.#options
    const { stats, unanswered } = await this.#options.stats.containers(signal)
    return {
      unanswered,
      takenAtMs: clock.monotonicMs(),
      stats: new Map(
        stats.flatMap((entry) => (entry.attributes === null ? [] : [[entry.attributes.id, entry]])),
      ),
    }
  }
}

/** Undefined for a container that doesn't run, or isn't of a pod. */
function measure(
  now: cri.ContainerStats,
  before: cri.ContainerStats | undefined,
  sampleWindowMs: number,
): Omit<ContainerUsage, 'atMs'> | undefined {
  const labels = now.attributes?.labels ?? {}
  const uid = labels[labelKeys.podUid]
  const container = labels[labelKeys.containerName]
  const used = now.cpu?.usageCoreNanoSeconds?.value
  if (uid === undefined || container === undefined || used === undefined) return undefined
  // A new container has used all of it since.
  const usedBefore = before?.cpu?.usageCoreNanoSeconds?.value ?? 0
  const betweenMs = ((now.cpu?.timestamp ?? 0) - (before?.cpu?.timestamp ?? 0)) / 1e6
  const windowMs = before?.cpu === undefined || before.cpu === null ? sampleWindowMs : betweenMs
  return {
    uid,
    container,
    windowMs: Math.round(windowMs),
    cpuNanoCores: windowMs > 0 ? Math.max(0, Math.round(((used - usedBefore) / windowMs) * 1000)) : 0,
    memoryBytes: now.memory?.workingSetBytes?.value ?? now.memory?.usageBytes?.value ?? 0,
  }
}
