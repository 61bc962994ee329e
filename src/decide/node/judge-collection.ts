/** The share of a core below which podd counts as quiet: a host that only waits and probes stays below it. */
const busyShare = 0.05
/** The first quiet interval may still have follow-up work. */
const looksToSettle = 2

export interface CollectionFacts {
  /** The CPU time of podd's threads since the last look, and its age. */
  readonly cpuMs: number
  readonly sinceMs: number
  /** How many consecutive looks before this one found podd quiet. */
  readonly quietLooks: number
}

/**
 * Whether V8's garbage is collected now: once after each busy period, such as podd's own start or that of many pods. V8
 * itself waits for more garbage, which an idle podd doesn't produce, and keeps the memory and compiled code of the busy
 * period.
 */
export function judgeCollection({ cpuMs, sinceMs, quietLooks }: CollectionFacts): {
  readonly quietLooks: number
  readonly collects: boolean
} {
  const now = cpuMs > busyShare * sinceMs ? 0 : quietLooks + 1
  return { quietLooks: now, collects: now === looksToSettle }
}
