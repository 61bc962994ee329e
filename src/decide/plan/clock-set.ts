import { formatTime } from '../../base/clock.ts'
import type { ClockReading } from '../../base/clock.ts'
import { mapValues } from '../../base/json.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { ClockMove, EndedContainer, PodRecord } from '../../pod/state/pod-record.ts'

/** The wall clock was set, as by a board's first synchronization: what was taken by it in this boot was wrong by that much. */
export interface ClockStep {
  readonly byMs: number
  /** When this boot began, and until when times were taken, by the clock as it was before. */
  readonly fromMs: number
  readonly untilMs: number
}

/** Both clocks are slewed alike. They aren't read at once, and the uptime may have whole seconds alone (uv_uptime). */
const readTogetherMs = 2000

/** By how much the wall clock was set between two readings; undefined where it was not. A suspended host sets none. */
export function clockStep(before: ClockReading, now: ClockReading): ClockStep | undefined {
  const fromMs = before.wallMs - before.uptimeMs
  const byMs = now.wallMs - now.uptimeMs - fromMs
  return Math.abs(byMs) < readTogetherMs ? undefined : { byMs, fromMs, untilMs: now.wallMs - byMs }
}

/** A time by the clock as it is set now. One from before this boot was taken by another setting, of which nothing is known. */
export function moveTime(atMs: number, { byMs, fromMs, untilMs }: ClockStep): number {
  return atMs >= fromMs && atMs <= untilMs ? atMs + byMs : atMs
}

/**
 * A time as it is shown: none is in the future. What seems to be was taken in an earlier boot, and the clock was not set
 * yet in this one: all that is known is that it was before this boot began.
 */
export function showTime(atMs: number, { wallMs, uptimeMs }: ClockReading): string {
  return formatTime(atMs > wallMs ? wallMs - uptimeMs : atMs)
}

/** The times of a pod's record by the clock as it is set now. */
export function moveRecordTimes(record: PodRecord, step: ClockStep): Partial<PodRecord> {
  const move = (atMs: number): number => moveTime(atMs, step)
  const moveMaybe = (atMs: number | undefined): number | undefined =>
    atMs === undefined ? undefined : move(atMs)
  const moveEnd = (end: EndedContainer | undefined): EndedContainer | undefined =>
    end && { ...end, startedAtMs: moveMaybe(end.startedAtMs), finishedAtMs: move(end.finishedAtMs) }
  const { ending } = record
  return {
    acceptedAtMs: move(record.acceptedAtMs),
    ...(record.startedAtMs !== undefined && { startedAtMs: move(record.startedAtMs) }),
    ...(ending !== undefined && { ending: { ...ending, requestedAtMs: move(ending.requestedAtMs) } }),
    conditions: mapValues(record.conditions, (condition) => ({ ...condition, atMs: move(condition.atMs) })),
    containers: mapValues(record.containers, (history) => ({
      ...history,
      ...(history.ended && { ended: moveEnd(history.ended) }),
      ...(history.endedBefore && { endedBefore: moveEnd(history.endedBefore) }),
      ...(history.backoff && {
        backoff: { ...history.backoff, updatedAtMs: move(history.backoff.updatedAtMs) },
      }),
    })),
  }
}

/**
 * By how much the times that the runtime says are wrong now: it says them again and again by the clock as it was.
 * @param observed all that the runtime has of the pod, by the clock as it was before
 */
export function addClockMoves(
  { clockMoves }: PodRecord,
  observed: ObservedPod,
  step: ClockStep,
): Required<Pick<PodRecord, 'clockMoves'>> {
  const moved = observed.containers.flatMap(({ id, createdAtMs, finishedAtMs }) => {
    const known = clockMoves?.[id]
    const startMs = (known?.startMs ?? 0) + moveTime(createdAtMs, step) - createdAtMs
    const endMs =
      (known?.endMs ?? 0) + (finishedAtMs === undefined ? 0 : moveTime(finishedAtMs, step) - finishedAtMs)
    return startMs === 0 && endMs === 0 ? [] : [[id, { startMs, endMs }] as const]
  })
  return { clockMoves: Object.fromEntries(moved) }
}

/** What the runtime says, by the clock as it is set now: it says the times by the clock as it was. */
export function moveObservedTimes(observed: ObservedPod, { clockMoves }: PodRecord): ObservedPod {
  if (clockMoves === undefined || Object.keys(clockMoves).length === 0) return observed
  return {
    ...observed,
    containers: observed.containers.map((each) => moveContainer(each, clockMoves[each.id])),
  }
}

function moveContainer(container: ObservedContainer, move: ClockMove | undefined): ObservedContainer {
  if (move === undefined) return container
  const { createdAtMs, startedAtMs, finishedAtMs } = container
  return {
    ...container,
    createdAtMs: createdAtMs + move.startMs,
    startedAtMs: startedAtMs === undefined ? undefined : startedAtMs + move.startMs,
    finishedAtMs: finishedAtMs === undefined ? undefined : finishedAtMs + move.endMs,
  }
}
