/* When a CronJob starts a Job, and which of its Jobs stay. */
import type { JsonObject } from '../../base/json.ts'
import type { CronJob } from '../../pod/objects/workload-kinds.ts'
import type { JobEnd } from './run-job.ts'

/** The times of a schedule in its time zone; wall milliseconds. */
export interface Schedule {
  /** The newest that is not after this; undefined where there is none. */
  readonly last: (atMs: number) => number | undefined
  /** The next one after this. */
  readonly next: (afterMs: number) => number | undefined
}

/** A Job that a CronJob has started. */
export interface StartedJob {
  readonly name: string
  readonly scheduledMs: number
  /** As it was when it was started. */
  readonly manifest: JsonObject
}

/** What a CronJob has done. Kept on the disk. Times are wall milliseconds. */
export interface CronRecord {
  /** As of a Job. */
  readonly uid?: string | undefined
  readonly createdAtMs: number
  /** Its time zone and schedule; absent where an older podd wrote this. */
  readonly schedule?: string | undefined
  /** Times up to this one don't count: its schedule is another one since then, or the clock was far behind then. */
  readonly sinceMs?: number | undefined
  readonly lastScheduledMs?: number | undefined
  readonly lastSuccessMs?: number | undefined
  /** In the order in which they were started. */
  readonly jobs: readonly StartedJob[]
}

export interface CronStep {
  readonly record: CronRecord
  readonly wakeAtMs: number | undefined
}

/** By more than this no clock is set back that was right: what was noted by it doesn't keep anything from starting. */
const longestSetBackMs = 86_400_000

/**
 * Decides whether a Job is to be started now: the newest time that has come counts, and no other that was missed
 * (`pkg/controller/cronjob/cronjob_controllerv2.go` syncCronJob, `utils.go` mostRecentScheduleTime, 1.36). Where the clock
 * was set back, nothing starts before the last time has come again, or from then on, if it was set back by more than a
 * day. Unlike in a cluster, no time counts that another schedule would have had before.
 * @param endOf how a Job of it has ended; undefined while it hasn't
 * @param make the manifest of a Job by this name
 */
export function stepCronJob(
  { metadata, spec }: CronJob,
  before: CronRecord,
  schedule: Schedule,
  endOf: (name: string) => JobEnd | undefined,
  make: (name: string, scheduledMs: number) => JsonObject,
  nowMs: number,
): CronStep {
  const record = forgetOld(spec, noteSuccess(noteSince(spec, before, nowMs), endOf), endOf)
  if (spec.suspend) return { record, wakeAtMs: undefined }
  const idle = { record, wakeAtMs: schedule.next(nowMs) }
  const deadlineMs =
    spec.startingDeadlineSeconds === undefined ? Infinity : spec.startingDeadlineSeconds * 1000
  const earliestMs = Math.max(...notedMs(record, nowMs), nowMs - deadlineMs)
  const scheduledMs = schedule.last(nowMs)
  if (scheduledMs === undefined || scheduledMs <= earliestMs) return idle
  const name = `${metadata.name}-${Math.floor(scheduledMs / 60_000)}`
  if (record.jobs.some((job) => job.name === name)) return idle
  const active = record.jobs.filter((job) => endOf(job.name) === undefined)
  // It starts when the one before has ended, while its time isn't over.
  if (spec.concurrencyPolicy === 'Forbid' && active.length > 0) return idle
  const replaced = spec.concurrencyPolicy === 'Replace' ? active.map((job) => job.name) : []
  const kept = record.jobs.filter((job) => !replaced.includes(job.name))
  const started = { name, scheduledMs, manifest: make(name, scheduledMs) }
  // A clock that is far behind spoils nothing of what is noted by the right one.
  const noted = isAhead(lastMs(record), nowMs) ? { sinceMs: scheduledMs } : { lastScheduledMs: scheduledMs }
  return { ...idle, record: { ...record, ...noted, jobs: [...kept, started] } }
}

function lastMs({ lastScheduledMs, createdAtMs }: CronRecord): number {
  return lastScheduledMs ?? createdAtMs
}

function isAhead(atMs: number, nowMs: number): boolean {
  return atMs > nowMs + longestSetBackMs
}

/** The times up to which nothing counts any more, by a clock like the present one. */
function notedMs(record: CronRecord, nowMs: number): readonly number[] {
  return [lastMs(record), record.sinceMs].flatMap((atMs) =>
    atMs === undefined || isAhead(atMs, nowMs) ? [] : [atMs],
  )
}

function noteSince(
  { schedule, timeZone = '' }: CronJob['spec'],
  before: CronRecord,
  nowMs: number,
): CronRecord {
  const record = { ...before, schedule: `${timeZone} ${schedule}` }
  const isOther = before.schedule !== undefined && before.schedule !== record.schedule
  return isOther || notedMs(before, nowMs).length === 0 ? { ...record, sinceMs: nowMs } : record
}

/** Where the clock was set forward: a CronJob that was made before, and has started nothing, has missed nothing. */
export function moveCronTimes(record: CronRecord, move: (atMs: number) => number): CronRecord {
  return record.lastScheduledMs === undefined ? { ...record, createdAtMs: move(record.createdAtMs) } : record
}

function noteSuccess(record: CronRecord, endOf: (name: string) => JobEnd | undefined): CronRecord {
  const ends = record.jobs.flatMap(({ name }) => {
    const end = endOf(name)
    return end?.type === 'Complete' ? [end.atMs] : []
  })
  const lastSuccessMs = Math.max(record.lastSuccessMs ?? 0, ...ends)
  return lastSuccessMs === (record.lastSuccessMs ?? 0) ? record : { ...record, lastSuccessMs }
}

/** Of those that have ended, the newest stay (cleanupFinishedJobs). */
function forgetOld(
  { successfulJobsHistoryLimit, failedJobsHistoryLimit }: CronJob['spec'],
  record: CronRecord,
  endOf: (name: string) => JobEnd | undefined,
): CronRecord {
  const old = new Set(
    (
      [
        ['Complete', successfulJobsHistoryLimit],
        ['Failed', failedJobsHistoryLimit],
      ] as const
    ).flatMap(([state, limit]) => {
      const ended = record.jobs.filter(({ name }) => endOf(name)?.type === state)
      return ended.slice(0, Math.max(0, ended.length - limit)).map(({ name }) => name)
    }),
  )
  return old.size === 0 ? record : { ...record, jobs: record.jobs.filter(({ name }) => !old.has(name)) }
}
