/** podd's memory usage and its history. */
export interface MemoryFacts {
  readonly residentBytes: number
  /** Below 0 for none. */
  readonly limitBytes: number
  /** How many consecutive samples before this one were above the limit. */
  readonly samplesAbove: number
  readonly uptimeMs: number
  /** How many restarts for this reason led to this process, one after the other. */
  readonly restarts: number
  /** A restart now would interrupt podd's work, such as a drain. */
  readonly isBusy: boolean
}

/** One sample may be a peak that the garbage collector resolves. */
const samplesBeforeRestart = 3
const shortestRunMs = 600_000
const longestRunMs = 86_400_000

/**
 * Whether podd restarts itself because of its memory usage. Each restart that did not help for long doubles the time
 * until the next one, from ten minutes to a day, so that a limit that podd can't keep costs at most one restart a day.
 */
export function judgeMemory(facts: MemoryFacts): {
  readonly samplesAbove: number
  readonly restarts: boolean
} {
  const { residentBytes, limitBytes, uptimeMs, restarts, isBusy } = facts
  if (limitBytes < 0 || residentBytes <= limitBytes) return { samplesAbove: 0, restarts: false }
  const samplesAbove = facts.samplesAbove + 1
  const mayRestart = uptimeMs >= Math.min(shortestRunMs * 2 ** restarts, longestRunMs) && !isBusy
  return { samplesAbove, restarts: samplesAbove >= samplesBeforeRestart && mayRestart }
}

/** The value of `restarts` for the new process: it starts over after a day without a restart. */
export function countRestarts({ uptimeMs, restarts }: Pick<MemoryFacts, 'uptimeMs' | 'restarts'>): number {
  // Further restarts would change nothing.
  return uptimeMs >= 2 * longestRunMs ? 1 : Math.min(restarts + 1, 16)
}
