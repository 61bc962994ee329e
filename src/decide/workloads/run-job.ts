/* What a Job is to do next: which pods it is to have, what of them counts, and when it is over. */
import { mapValues, objectOrEmpty } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import type { JobSpec } from '../../pod/objects/workload-kinds.ts'
import { soonest } from './replica-pods.ts'

/** A pod of a Job, as far as the Job depends on it. */
export interface JobPod {
  readonly name: string
  /** `active`: it runs or is to run, also after an eviction. */
  readonly state: 'active' | 'succeeded' | 'failed'
  /** Somebody deleted it over the API, and it is ending. */
  readonly isDeleted?: boolean
  readonly isReady: boolean
  /** How often containers of an active one were started again. */
  readonly restarts: number
  /** By container, init containers too. */
  readonly exitCodes: Readonly<Record<string, number>>
  /** Conditions with their status. */
  readonly conditions: Readonly<Record<string, string>>
}

/** What is known of a pod that a Job has made. */
export interface MadePod {
  /** Of an Indexed Job. */
  readonly index?: number | undefined
  /** Absent while it is active; `ignored` where a rule says that its failure doesn't count. */
  readonly outcome?: 'succeeded' | 'failed' | 'ignored' | undefined
  /** It was deleted over the API, and has counted; it stays here until it has ended. */
  readonly isDeleted?: boolean | undefined
}

/** How far a Job is. Kept on the disk: it has run once for its manifest. Times are wall milliseconds. */
export interface JobRecord {
  /** What it runs: another template is another run. */
  readonly run: string
  /** Of an object that was written over the API: one of its name that is written later is another one. */
  readonly uid?: string | undefined
  readonly createdAtMs: number
  /** Absent while it is suspended. */
  readonly startedAtMs?: number | undefined
  /** How many pods were made: each has a name of its own. */
  readonly made: number
  /** Those that are to be there, in the order in which they were made. */
  readonly pods: Readonly<Record<string, MadePod>>
  readonly succeeded: number
  readonly failed: number
  /** Of an Indexed Job: what has succeeded, and how often each index has failed. */
  readonly completedIndexes: readonly number[]
  readonly failedIndexes: readonly number[]
  readonly indexFailures: Readonly<Record<string, number>>
  /** When each failed last, where each may fail on its own (`backoffLimitPerIndex`). */
  readonly indexFailedAtMs?: Readonly<Record<string, number>> | undefined
  /** Failures since the last success. */
  readonly failuresInRow: number
  readonly lastFailedAtMs?: number | undefined
  readonly finished?: JobEnd | undefined
  /** `ttlSecondsAfterFinished` has passed. */
  readonly isExpired?: boolean | undefined
}

export interface JobEnd {
  readonly type: 'Complete' | 'Failed'
  readonly reason: string
  readonly message: string
  readonly atMs: number
}

export interface JobStep {
  readonly record: JobRecord
  readonly wakeAtMs: number | undefined
}

/** Source of the times: DefaultJobPodFailureBackOff and MaxJobPodFailureBackOff in pkg/controller/job, 1.36. */
const firstBackoffMs = 10_000
const longestBackoffMs = 600_000
/** How many finished pods of a Job are kept, for their logs; the newest. */
const keptPods = 20

export function newJobRecord(run: string, nowMs: number, made = 0): JobRecord {
  return {
    run,
    createdAtMs: nowMs,
    made,
    pods: {},
    succeeded: 0,
    failed: 0,
    completedIndexes: [],
    failedIndexes: [],
    indexFailures: {},
    failuresInRow: 0,
  }
}

/**
 * Counts the pods that have ended, and decides which others are to be made (`pkg/controller/job/job_controller.go`: syncJob,
 * manageJob; `pod_failure_policy.go`, `indexed_job_utils.go`, `backoff_utils.go`, 1.36).
 * @param name of the Job, after which its pods are named
 * @param before of the same run
 * @param pods those that there are, without those that are leaving unless somebody deleted them
 */
export function stepJob(
  name: string,
  spec: JobSpec,
  before: JobRecord,
  pods: ReadonlyMap<string, JobPod>,
  nowMs: number,
): JobStep {
  const record = withoutFutureFailure(withoutGone(before, pods), nowMs)
  if (record.finished !== undefined) return expire(spec, record, record.finished, nowMs)
  const counted = countEnded(spec, record, pods, nowMs)
  if (counted.finished !== undefined) return finish(spec, counted, counted.finished, nowMs)
  if (spec.suspend) {
    // Its active pods end, and count for nothing.
    const kept = Object.entries(counted.pods).filter(([, pod]) => pod.outcome !== undefined)
    return {
      record: { ...counted, startedAtMs: undefined, pods: Object.fromEntries(kept) },
      wakeAtMs: undefined,
    }
  }
  const started = { ...counted, startedAtMs: counted.startedAtMs ?? nowMs }
  const deadlineMs = started.startedAtMs + (spec.activeDeadlineSeconds ?? Infinity) * 1000
  const end = judgeEnd(spec, started, pods, deadlineMs, nowMs)
  if (end !== undefined) return finish(spec, started, end, nowMs)
  const { record: next, wakeAtMs } = makePods(name, spec, started, nowMs)
  return { record: forgetOld(next), wakeAtMs: soonest(deadlineMs, wakeAtMs) }
}

const isIndexed = ({ completionMode }: JobSpec): boolean => completionMode === 'Indexed'

function countEnded(
  spec: JobSpec,
  before: JobRecord,
  pods: ReadonlyMap<string, JobPod>,
  nowMs: number,
): JobRecord {
  let record = before
  for (const [name, made] of Object.entries(before.pods)) {
    const pod = pods.get(name)
    const { isDeleted = false } = pod ?? {}
    if (made.outcome !== undefined || pod === undefined || (pod.state === 'active' && !isDeleted)) continue
    const counted = isDeleted ? { ...made, isDeleted } : made
    // One that was deleted before it had succeeded counts as failed (isPodFailed).
    record =
      pod.state === 'succeeded'
        ? noteSuccess(record, name, counted)
        : noteFailure(spec, record, name, counted, pod, nowMs)
  }
  return record
}

function noteSuccess(record: JobRecord, name: string, made: MadePod): JobRecord {
  const { index } = made
  return {
    ...record,
    pods: { ...record.pods, [name]: { ...made, outcome: 'succeeded' } },
    succeeded: record.succeeded + 1,
    // No index has two pods at a time, and none once it has succeeded.
    ...(index !== undefined && { completedIndexes: [...record.completedIndexes, index] }),
    failuresInRow: 0,
  }
}

function noteFailure(
  spec: JobSpec,
  record: JobRecord,
  name: string,
  made: MadePod,
  pod: JobPod,
  nowMs: number,
): JobRecord {
  const rule = matchRule(spec, pod)
  if (rule?.action === 'Ignore')
    return { ...record, pods: { ...record.pods, [name]: { ...made, outcome: 'ignored' } } }
  const { index } = made
  const failures = index === undefined ? 0 : (record.indexFailures[index] ?? 0) + 1
  const isLost =
    index !== undefined &&
    (rule?.action === 'FailIndex' ||
      (spec.backoffLimitPerIndex !== undefined && failures > spec.backoffLimitPerIndex))
  return {
    ...record,
    pods: { ...record.pods, [name]: { ...made, outcome: 'failed' } },
    failed: record.failed + 1,
    failuresInRow: record.failuresInRow + 1,
    lastFailedAtMs: nowMs,
    ...(index !== undefined && { indexFailures: { ...record.indexFailures, [index]: failures } }),
    ...(index !== undefined &&
      spec.backoffLimitPerIndex !== undefined && {
        indexFailedAtMs: { ...record.indexFailedAtMs, [index]: nowMs },
      }),
    ...(isLost && { failedIndexes: [...record.failedIndexes, index] }),
    ...(rule?.action === 'FailJob' && {
      finished: endAt(nowMs, 'Failed', 'PodFailurePolicy', `${rule.what} for pod ${name}: ${rule.why}`),
    }),
  }
}

type Rule = NonNullable<JobSpec['podFailurePolicy']>['rules'][number]
interface Matched {
  readonly action: Rule['action']
  readonly what: string
  readonly why: string
}

/** The first rule that a failed pod matches (`pkg/controller/job/pod_failure_policy.go`, matchPodFailurePolicy, 1.36). */
function matchRule({ podFailurePolicy }: JobSpec, { exitCodes, conditions }: JobPod): Matched | undefined {
  for (const [at, { action, onExitCodes, onPodConditions }] of (podFailurePolicy?.rules ?? []).entries()) {
    const what = `matching ${action} rule at index ${at}`
    if (onExitCodes !== undefined) {
      const { containerName, operator, values } = onExitCodes
      const found = Object.entries(exitCodes).find(
        ([name, code]) =>
          code !== 0 &&
          (containerName === undefined || containerName === name) &&
          values.includes(code) === (operator === 'In'),
      )
      if (found !== undefined)
        return { action, what, why: `container ${found[0]} failed with exit code ${found[1]}` }
      continue
    }
    const met = onPodConditions.find(({ type, status }) => conditions[type] === (status || 'True'))
    if (met !== undefined) return { action, what, why: `it has condition ${met.type}` }
  }
  return undefined
}

function endAt(atMs: number, type: JobEnd['type'], reason: string, message: string): JobEnd {
  return { type, reason, message, atMs }
}

const defaultBackoffLimit = 6

function judgeEnd(
  spec: JobSpec,
  record: JobRecord,
  pods: ReadonlyMap<string, JobPod>,
  deadlineMs: number,
  nowMs: number,
): JobEnd | undefined {
  const failed = (reason: string, message: string): JobEnd => endAt(nowMs, 'Failed', reason, message)
  const limit =
    spec.backoffLimit ?? (spec.backoffLimitPerIndex === undefined ? defaultBackoffLimit : Infinity)
  const active = activeOf(record)
  if (record.failed > limit || isPastRestarts(spec, limit, active, pods))
    return failed('BackoffLimitExceeded', 'Job has reached the specified backoff limit')
  if (nowMs >= deadlineMs) return failed('DeadlineExceeded', 'Job was active longer than specified deadline')
  if (spec.maxFailedIndexes !== undefined && record.failedIndexes.length > spec.maxFailedIndexes)
    return failed(
      'MaxFailedIndexesExceeded',
      'Job has exceeded the specified maximal number of failed indexes',
    )
  const done = 'Reached expected number of succeeded pods'
  const complete = endAt(nowMs, 'Complete', 'CompletionsReached', done)
  if (isIndexed(spec)) {
    if (record.completedIndexes.length + record.failedIndexes.length < (spec.completions ?? 0))
      return undefined
    return record.failedIndexes.length > 0 ? failed('FailedIndexes', 'Job has failed indexes') : complete
  }
  if (spec.completions === undefined)
    return record.succeeded > 0 && active.length === 0 ? complete : undefined
  return record.succeeded >= spec.completions ? complete : undefined
}

/** The names of those that have not ended. */
export function activeOf({ pods }: JobRecord): readonly string[] {
  return Object.entries(pods).flatMap(([name, { outcome }]) => (outcome === undefined ? [name] : []))
}

/** Containers that are started again in their pod count, too, but not sidecars of one that fails (pastBackoffLimitOnFailure). */
function isPastRestarts(
  { template }: JobSpec,
  limit: number,
  active: readonly string[],
  pods: ReadonlyMap<string, JobPod>,
): boolean {
  if (template.spec.restartPolicy !== 'OnFailure') return false
  const restarts = active.reduce((sum, name) => sum + (pods.get(name)?.restarts ?? 0), 0)
  return limit === 0 ? restarts > 0 : restarts >= limit
}

/** It is over: what runs of it ends, and has failed. */
function finish(spec: JobSpec, record: JobRecord, end: JobEnd, nowMs: number): JobStep {
  const kept = Object.entries(record.pods).filter(([, { outcome }]) => outcome !== undefined)
  const ended = Object.keys(record.pods).length - kept.length
  const failed = record.failed + (end.type === 'Failed' ? ended : 0)
  const next = forgetOld({ ...record, failed, pods: Object.fromEntries(kept), finished: end })
  return expire(spec, next, end, nowMs)
}

function expire(
  { ttlSecondsAfterFinished: ttl }: JobSpec,
  record: JobRecord,
  end: JobEnd,
  nowMs: number,
): JobStep {
  if (ttl === undefined) return { record, wakeAtMs: undefined }
  const atMs = end.atMs + ttl * 1000
  if (nowMs < atMs) return { record, wakeAtMs: atMs }
  return { record: { ...record, pods: {}, isExpired: true }, wakeAtMs: undefined }
}

function makePods(name: string, spec: JobSpec, record: JobRecord, nowMs: number): JobStep {
  const active = activeOf(record)
  const parallelism = spec.parallelism ?? 1
  const indexes = isIndexed(spec) ? freeIndexes(spec, record) : []
  const useful = isIndexed(spec) ? indexes.length : remaining(spec, record, active.length)
  const wanted = Math.min(parallelism, active.length + useful)
  if (active.length >= wanted) {
    const surplus = new Set(active.slice(wanted))
    const kept = Object.entries(record.pods).filter(([pod]) => !surplus.has(pod))
    return { record: { ...record, pods: Object.fromEntries(kept) }, wakeAtMs: undefined }
  }
  // Those that are terminating keep others from being made, and none from running (manageJob).
  const deleted = Object.values(record.pods).filter(({ isDeleted }) => isDeleted === true).length
  const target = Math.min(wanted, parallelism - deleted)
  if (active.length >= target) return { record, wakeAtMs: undefined }
  const isPerIndex = spec.backoffLimitPerIndex !== undefined
  const mayMakeAtMs = isPerIndex ? 0 : backoffEnd(record.failuresInRow, record.lastFailedAtMs)
  if (nowMs < mayMakeAtMs) return { record, wakeAtMs: mayMakeAtMs }
  let { made } = record
  const pods: Record<string, MadePod> = { ...record.pods }
  const waits: number[] = []
  for (let count = active.length; count < target; count += 1) {
    const index = indexes[count - active.length]
    const readyAtMs =
      isPerIndex && index !== undefined
        ? backoffEnd(record.indexFailures[index] ?? 0, record.indexFailedAtMs?.[index])
        : 0
    // Each index waits for itself (getPodCreationInfoForIndependentIndexes).
    if (nowMs < readyAtMs) {
      waits.push(readyAtMs)
      continue
    }
    pods[index === undefined ? `${name}-${made}` : `${name}-${index}-${made}`] =
      index === undefined ? {} : { index }
    made += 1
  }
  return { record: { ...record, made, pods }, wakeAtMs: soonest(...waits) }
}

/** How many pods may be useful beside the active ones. */
function remaining({ completions }: JobSpec, { succeeded }: JobRecord, active: number): number {
  if (completions === undefined) return succeeded > 0 ? 0 : Infinity
  return completions - succeeded - active
}

/** Those that are not over and have no pod. */
function freeIndexes(spec: JobSpec, record: JobRecord): readonly number[] {
  const taken = new Set([...record.completedIndexes, ...record.failedIndexes])
  for (const { index, outcome, isDeleted } of Object.values(record.pods))
    if (index !== undefined && (outcome === undefined || isDeleted === true)) taken.add(index)
  return Array.from({ length: spec.completions ?? 0 }, (_, index) => index).filter(
    (index) => !taken.has(index),
  )
}

/** After failures the next pod is made 10 s later, then 20 s, … (getRemainingTime). */
function backoffEnd(failures: number, lastFailedAtMs: number | undefined): number {
  if (failures === 0 || lastFailedAtMs === undefined) return 0
  return lastFailedAtMs + Math.min(firstBackoffMs * 2 ** (failures - 1), longestBackoffMs)
}

/** A pod that has ended and is gone, or goes now, is not made again: it would run again. */
function withoutGone(record: JobRecord, pods: ReadonlyMap<string, JobPod>): JobRecord {
  const kept = Object.entries(record.pods).filter(
    ([name, { outcome, isDeleted }]) =>
      outcome === undefined || (pods.has(name) && (isDeleted === true || pods.get(name)?.isDeleted !== true)),
  )
  return { ...record, pods: Object.fromEntries(kept) }
}

/**
 * Where the clock was set back, what failed later by it counts as of now. A start and an end keep their times: a host that
 * boots with an old clock would find deadlines passed once that is set right.
 */
function withoutFutureFailure(record: JobRecord, nowMs: number): JobRecord {
  const { lastFailedAtMs, indexFailedAtMs } = record
  return {
    ...record,
    ...(lastFailedAtMs !== undefined && { lastFailedAtMs: Math.min(lastFailedAtMs, nowMs) }),
    ...(indexFailedAtMs !== undefined && {
      indexFailedAtMs: Object.fromEntries(
        Object.entries(indexFailedAtMs).map(([index, atMs]) => [index, Math.min(atMs, nowMs)]),
      ),
    }),
  }
}

/** Where the clock was set: how long it has run and waited, and since when it has ended, doesn't change by that. */
export function moveJobTimes(record: JobRecord, move: (atMs: number) => number): JobRecord {
  const { startedAtMs, lastFailedAtMs, indexFailedAtMs, finished } = record
  return {
    ...record,
    createdAtMs: move(record.createdAtMs),
    ...(lastFailedAtMs !== undefined && { lastFailedAtMs: move(lastFailedAtMs) }),
    ...(indexFailedAtMs !== undefined && { indexFailedAtMs: mapValues(indexFailedAtMs, move) }),
    ...(startedAtMs !== undefined && { startedAtMs: move(startedAtMs) }),
    ...(finished !== undefined && { finished: { ...finished, atMs: move(finished.atMs) } }),
  }
}

/** Those that were deleted are still ending: they are known until they are gone. */
function forgetOld(record: JobRecord): JobRecord {
  const ended = Object.entries(record.pods).filter(
    ([, { outcome, isDeleted }]) => outcome !== undefined && isDeleted !== true,
  )
  const old = new Set(ended.slice(0, -keptPods).map(([name]) => name))
  return {
    ...record,
    pods: Object.fromEntries(Object.entries(record.pods).filter(([name]) => !old.has(name))),
  }
}

/** A pod of a Job: which it is of an Indexed one, it reads in its environment. */
export function asJobPod(pod: JsonObject, job: string, index: number | undefined): JsonObject {
  const metadata = objectOrEmpty(pod['metadata'])
  const spec = objectOrEmpty(pod['spec'])
  const own = index === undefined ? {} : { [indexKey]: String(index) }
  const named = { 'batch.kubernetes.io/job-name': job, 'job-name': job, ...own }
  const labelled = { ...metadata, labels: { ...objectOrEmpty(metadata['labels']), ...named } }
  if (index === undefined) return { ...pod, metadata: labelled }
  const lists = ['initContainers', 'containers'].flatMap((key) => {
    const list = spec[key]
    return Array.isArray(list) ? [[key, list.map((each) => withIndex(objectOrEmpty(each)))] as const] : []
  })
  return {
    ...pod,
    metadata: { ...labelled, annotations: { ...objectOrEmpty(metadata['annotations']), ...own } },
    spec: { ...spec, hostname: spec['hostname'] ?? `${job}-${index}`, ...Object.fromEntries(lists) },
  }
}

const indexKey = 'batch.kubernetes.io/job-completion-index'

/** As a cluster's controller writes it (addCompletionIndexEnvVariable). */
function withIndex(container: JsonObject): JsonObject {
  const env = Array.isArray(container['env']) ? container['env'] : []
  if (env.some((each) => objectOrEmpty(each)['name'] === 'JOB_COMPLETION_INDEX')) return container
  const fieldRef = { fieldPath: `metadata.annotations['${indexKey}']` }
  return { ...container, env: [...env, { name: 'JOB_COMPLETION_INDEX', valueFrom: { fieldRef } }] }
}
