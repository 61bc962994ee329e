/** A reading of both clocks. */
export interface ClockReading {
  readonly wallMs: number
  readonly monotonicMs: number
}

/** How much the wall clock may gain without being set: drift, or a suspension of the host. */
const longestSuspensionMs = 86_400_000
/** How much a slewed clock may lose. */
const longestSlewMs = 60_000

/**
 * By how much the wall clock was set between two readings, 0 where it was not: back, or forward by more than a day, as
 * in a board's first synchronization. A smaller step forward may be a suspension of the host, which counts as elapsed
 * time.
 */
export function clockSetMs(before: ClockReading, now: ClockReading): number {
  const gainedMs = now.wallMs - before.wallMs - (now.monotonicMs - before.monotonicMs)
  return gainedMs > longestSuspensionMs || gainedMs < -longestSlewMs ? gainedMs : 0
}
