/** A moment by both clocks. */
export interface ClockReading {
  readonly wallMs: number
  readonly monotonicMs: number
}

/** What the wall clock may gain without having been set: drift, and a host that was suspended. */
const longestSuspensionMs = 86_400_000
/** What a clock that is slewed may lose. */
const longestSlewMs = 60_000

/**
 * By how much the wall clock was set between two looks, 0 where it was not: by more than a day forward, at a board's first
 * synchronization, say, or back. Less forward may be a suspension of the host, which counts as time.
 */
export function clockSetMs(before: ClockReading, now: ClockReading): number {
  const gainedMs = now.wallMs - before.wallMs - (now.monotonicMs - before.monotonicMs)
  return gainedMs > longestSuspensionMs || gainedMs < -longestSlewMs ? gainedMs : 0
}
