/** Of a core: a host that only waits and is probed stays below it. */
const busyShare = 0.05
/** What a time of much work leaves to do comes in the first one. */
const looksToSettle = 2

export interface CollectionFacts {
  /** What podd's threads have computed since the last look, and how long ago that was. */
  readonly cpuMs: number
  readonly sinceMs: number
  /** How many looks before this one found podd quiet, without a busy one between. */
  readonly quietLooks: number
}

/**
 * Whether all garbage is collected now: once after each time of much work, such as podd's own start or that of many pods, when
 * it is over. V8 by itself waits for more garbage, which an idle podd doesn't make, and keeps the room and the compiled code of the work.
 */
export function judgeCollection({ cpuMs, sinceMs, quietLooks }: CollectionFacts): {
  readonly quietLooks: number
  readonly collects: boolean
} {
  const now = cpuMs > busyShare * sinceMs ? 0 : quietLooks + 1
  return { quietLooks: now, collects: now === looksToSettle }
}
