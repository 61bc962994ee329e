import { Cron } from 'croner'
import type { ClockReading } from '../../base/clock.ts'
import { canonicalJson, isJsonObject, jsonAt, mapValues, sameData } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Migration } from '../../base/state-file.ts'
import { clockStep, moveTime } from '../../decide/plan/clock-set.ts'
import type { ClockStep } from '../../decide/plan/clock-set.ts'
import { podOf, soonest, toDocument } from '../../decide/workloads/replica-pods.ts'
import type { Expansion } from '../../decide/workloads/replica-pods.ts'
import { moveCronTimes, stepCronJob } from '../../decide/workloads/run-cron-job.ts'
import type { CronRecord, Schedule } from '../../decide/workloads/run-cron-job.ts'
import { asJobPod, moveJobTimes, newJobRecord, stepJob } from '../../decide/workloads/run-job.ts'
import type { JobEnd, JobPod, JobRecord } from '../../decide/workloads/run-job.ts'
import type { ObjectDocument, PodDocument } from '../../pod/objects/document.ts'
import { objectFromManifest } from '../../pod/objects/local-object.ts'
import { listTimes } from '../../pod/objects/workload-kinds.ts'
import type { CronJob, Job } from '../../pod/objects/workload-kinds.ts'
import { digestText } from '../../pod/values/hash.ts'
import type { PodEvent } from '../../pod/state/pod-event.ts'
import { parseSourceName } from '../../pod/values/ids.ts'
import type { SourceName } from '../../pod/values/ids.ts'
import { loadState } from '../../store/state-report.ts'
import type { SmallFile, StateReport } from '../../store/state-report.ts'
import { objectUid } from '../../translate/volume-files.ts'

/** How far all Jobs and CronJobs are, by source, namespace and name. */
export interface BatchState {
  readonly jobs: Readonly<Record<string, JobRecord>>
  readonly cronJobs: Readonly<Record<string, CronRecord>>
}

/** What Jobs and CronJobs are to have, and how far they are then. */
export interface BatchStep extends Expansion {
  readonly state: BatchState
  /** The clocks by which the times of that stand. */
  readonly clocks: ClockReading
}

/** One step for each version before the current one, oldest first. */
const migrations: readonly Migration[] = []

/** None are known where the file can't be read; it is put aside and reported. Throws the system's error. */
export async function readBatchState(file: SmallFile, report: StateReport): Promise<BatchState> {
  const known = await loadState(file, migrations, toState, report)
  return known ?? { jobs: {}, cronJobs: {} }
}

/** Throws the system's error (ENOSPC, EROFS, …). */
export async function writeBatchState(file: SmallFile, state: BatchState): Promise<void> {
  await file.write(`${JSON.stringify({ version: migrations.length + 1, ...state })}\n`)
}

function toState({ jobs, cronJobs }: JsonObject): BatchState | undefined {
  if (!isJsonObject(jobs) || !isJsonObject(cronJobs)) return undefined
  const goodJobs = Object.entries(jobs).filter((entry): entry is [string, JsonObject & JobRecord] =>
    isJobRecord(entry[1]),
  )
  const goodCronJobs = Object.entries(cronJobs).filter((entry): entry is [string, JsonObject & CronRecord] =>
    isCronRecord(entry[1]),
  )
  return { jobs: Object.fromEntries(goodJobs), cronJobs: Object.fromEntries(goodCronJobs) }
}

function isJobRecord(value: unknown): value is JsonObject & JobRecord {
  return (
    isJsonObject(value) &&
    typeof value['run'] === 'string' &&
    ['createdAtMs', 'made', 'succeeded', 'failed', 'failuresInRow'].every(
      (key) => typeof value[key] === 'number',
    ) &&
    ['pods', 'indexFailures'].every((key) => isJsonObject(value[key])) &&
    ['completedIndexes', 'failedIndexes'].every((key) => Array.isArray(value[key]))
  )
}

function isCronRecord(value: unknown): value is JsonObject & CronRecord {
  if (!isJsonObject(value) || typeof value['createdAtMs'] !== 'number') return false
  const { jobs } = value
  return (
    Array.isArray(jobs) &&
    jobs.every((job) => typeof jsonAt(job, 'name') === 'string' && isJsonObject(jsonAt(job, 'manifest')))
  )
}

/** Jobs and CronJobs: what they are to have follows from how far they are, and from their pods. */
export class BatchJobs {
  readonly #file: SmallFile
  /** As it stands on the disk. */
  #state: BatchState
  /** The clocks by which its times stand. */
  #clocks: ClockReading
  readonly #children = new WeakMap<JsonObject, ObjectDocument>()
  readonly #schedules = new Map<string, Schedule>()
  readonly #runs = new WeakMap<ObjectDocument, string>()
  readonly #pods = new WeakMap<ObjectDocument, Map<string, PodDocument>>()

  constructor(file: SmallFile, state: BatchState, now: ClockReading) {
    this.#file = file
    this.#state = state
    this.#clocks = now
  }

  get state(): BatchState {
    return this.#state
  }

  /** From here on this holds; gives what is to be told of it. Throws the system's error: then what held before does. */
  async save({ state, clocks }: Pick<BatchStep, 'state' | 'clocks'>): Promise<readonly PodEvent[]> {
    const before = this.#state
    if (sameData(state, before)) return []
    await writeBatchState(this.#file, state)
    this.#state = state
    this.#clocks = clocks
    return listEvents(before, state)
  }

  /** The Jobs that CronJobs of these have started, by the state on the disk. */
  startedJobs(source: SourceName, documents: readonly ObjectDocument[]): readonly ObjectDocument[] {
    const cronJobs = documents.filter(({ object }) => object.kind === 'CronJob')
    return this.#jobsAmong(source, cronJobs, this.#state).map(({ document }) => document)
  }

  /** What is known of a Job or CronJob, by the state on the disk. */
  factsOf(
    source: SourceName,
    object: Named,
  ): {
    readonly job: JobRecord | undefined
    readonly cronJob: CronRecord | undefined
    readonly activeJobs: readonly string[]
  } {
    const key = keyOf(source, object)
    const isCronJob = 'kind' in object && object.kind === 'CronJob'
    const cronJob = isCronJob ? this.#state.cronJobs[key] : undefined
    const activeJobs = (cronJob?.jobs ?? []).flatMap(({ name }) => {
      const job = this.#state.jobs[keyOf(source, { metadata: { ...object.metadata, name } })]
      return job?.finished === undefined ? [name] : []
    })
    return { job: isCronJob ? undefined : this.#state.jobs[key], cronJob, activeJobs }
  }

  /** How a Job ended what this document has it run, by the state on the disk; undefined where it has not. */
  endOf(source: SourceName, document: ObjectDocument): JobEnd | undefined {
    const { object } = document
    const record = object.kind === 'Job' ? this.#state.jobs[keyOf(source, object)] : undefined
    return record?.run === this.#runOf(document) && isOf(record, document) ? record.finished : undefined
  }

  /** The pods by the state on the disk: nothing is counted, started or ended. */
  keep(source: SourceName, documents: readonly ObjectDocument[]): readonly PodDocument[] {
    return this.#podsBy(source, documents, this.#state)
  }

  #podsBy(source: SourceName, documents: readonly ObjectDocument[], state: BatchState) {
    return this.#jobsAmong(source, documents, state).flatMap(({ document, job }) =>
      this.#podsOf(document, state.jobs[keyOf(source, job)]),
    )
  }

  /**
   * @param pods of each Job by `Job/namespace/name`
   * @param isComplete whether `documents` are all that the source gives: what is known of others is forgotten
   */
  step(
    source: SourceName,
    documents: readonly ObjectDocument[],
    pods: ReadonlyMap<string, ReadonlyMap<string, JobPod>>,
    isComplete: boolean,
    now: ClockReading,
  ): BatchStep {
    const nowMs = now.wallMs
    const present = this.#byClock(now)
    const known = isComplete ? withoutOthers(present, source, documents) : present
    let jobs: Record<string, JobRecord> = { ...known.jobs }
    const cronJobs: Record<string, CronRecord> = { ...known.cronJobs }
    const wakes: number[] = []
    const stepJobs = (): void => {
      for (const { document, job } of this.#jobsAmong(source, documents, { jobs, cronJobs })) {
        const key = keyOf(source, job)
        const run = this.#runOf(document)
        const before = jobs[key]
        const record =
          before?.run === run && isOf(before, document) ? before : newJobRecord(run, nowMs, before?.made)
        const own =
          pods.get(`Job/${job.metadata.namespace}/${job.metadata.name}`) ?? new Map<string, JobPod>()
        const step = stepJob(job.metadata.name, job.spec, bound(record, document), own, nowMs)
        jobs[key] = step.record
        if (step.wakeAtMs !== undefined) wakes.push(step.wakeAtMs)
      }
    }
    // A Job that has ended makes room for the next one.
    stepJobs()
    wakes.length = 0
    for (const document of documents) {
      const { object } = document
      if (object.kind !== 'CronJob') continue
      const key = keyOf(source, object)
      const earlier = cronJobs[key]
      const before =
        earlier !== undefined && isOf(earlier, document)
          ? bound(earlier, document)
          : bound({ createdAtMs: document.kept?.createdAtMs ?? nowMs, jobs: [] }, document)
      const endOf = (name: string) =>
        jobs[keyOf(source, { metadata: { ...object.metadata, name } })]?.finished
      const make = (name: string, scheduledMs: number) => jobManifest(document, object, name, scheduledMs)
      const { record, wakeAtMs } = stepCronJob(object, before, this.#scheduleOf(object), endOf, make, nowMs)
      cronJobs[key] = record
      if (wakeAtMs !== undefined) wakes.push(wakeAtMs)
      const kept = new Set(record.jobs.map(({ name }) => name))
      const gone = before.jobs.filter(({ name }) => !kept.has(name))
      for (const { name } of gone)
        jobs = without(jobs, keyOf(source, { metadata: { ...object.metadata, name } }))
    }
    stepJobs()
    const state = { jobs, cronJobs }
    return { state, clocks: now, pods: this.#podsBy(source, documents, state), wakeAtMs: soonest(...wakes) }
  }

  /** Where the clock was set since the state was recorded, its times move with it. */
  #byClock(now: ClockReading): BatchState {
    const step = clockStep(this.#clocks, now)
    const moved = step === undefined ? this.#state : moveTimes(this.#state, step)
    if (sameData(moved, this.#state)) this.#clocks = now
    return moved
  }

  #jobsAmong(
    source: SourceName,
    documents: readonly ObjectDocument[],
    state: BatchState,
  ): readonly { readonly document: ObjectDocument; readonly job: Job }[] {
    return documents.flatMap((document) => {
      const { object } = document
      if (object.kind === 'CronJob')
        return this.#childrenOf(document, state.cronJobs[keyOf(source, object)]).flatMap((child) =>
          child.object.kind === 'Job' ? [{ document: child, job: child.object }] : [],
        )
      return object.kind === 'Job' ? [{ document, job: object }] : []
    })
  }

  #childrenOf(
    { object, place, kept }: ObjectDocument,
    record: CronRecord | undefined,
  ): readonly ObjectDocument[] {
    const owner = { kind: object.kind, name: object.metadata.name, ...(kept && { uid: kept.uid }) }
    return (record?.jobs ?? []).map(({ manifest }) => {
      const known = this.#children.get(manifest)
      if (known !== undefined && known.place === place && sameData(known.owner, owner)) return known
      const child = { object: objectFromManifest(manifest), manifest, place, owner }
      this.#children.set(manifest, child)
      return child
    })
  }

  /** What a Job runs: a change of anything else is none of that. */
  #runOf(document: ObjectDocument): string {
    const known = this.#runs.get(document)
    if (known !== undefined) return known
    const spec = jsonAt(document.manifest, 'spec')
    const [template, completions, completionMode] = ['template', 'completions', 'completionMode'].map((key) =>
      jsonAt(spec, key),
    )
    const run = digestText(canonicalJson({ template, completions, completionMode }))
    this.#runs.set(document, run)
    return run
  }

  /** Each made once: a host may keep hundreds that have ended. */
  #podsOf(document: ObjectDocument, record: JobRecord | undefined): readonly PodDocument[] {
    const { name } = document.object.metadata
    const known = this.#pods.get(document)
    const pods = new Map(
      Object.entries(record?.pods ?? {}).flatMap(([pod, { index, isDeleted }]) =>
        isDeleted === true
          ? []
          : [[pod, known?.get(pod) ?? toDocument(document, asJobPod(podOf(document, pod), name, index))]],
      ),
    )
    this.#pods.set(document, pods)
    return [...pods.values()]
  }

  #scheduleOf({ spec: { schedule, timeZone } }: CronJob): Schedule {
    const key = `${timeZone ?? ''} ${schedule}`
    const known = this.#schedules.get(key)
    if (known !== undefined) return known
    const made = createSchedule(schedule, timeZone)
    this.#schedules.set(key, made)
    return made
  }
}

/** Without what is known of this source's Jobs and CronJobs that aren't given any more. */
function withoutOthers(
  state: BatchState,
  source: SourceName,
  documents: readonly ObjectDocument[],
): BatchState {
  const given = new Set(
    documents.flatMap(({ object }) =>
      object.kind === 'Job' || object.kind === 'CronJob' ? [`${object.kind} ${keyOf(source, object)}`] : [],
    ),
  )
  const isOwn = (key: string): boolean => key.startsWith(`${source} `)
  const cronJobs = Object.entries(state.cronJobs).filter(
    ([key]) => !isOwn(key) || given.has(`CronJob ${key}`),
  )
  const started = new Set(
    cronJobs.flatMap(([key, { jobs }]) =>
      jobs.map(({ name }) => `${key.slice(0, key.lastIndexOf('/'))}/${name}`),
    ),
  )
  const jobs = Object.entries(state.jobs).filter(
    ([key]) => !isOwn(key) || given.has(`Job ${key}`) || started.has(key),
  )
  return { jobs: Object.fromEntries(jobs), cronJobs: Object.fromEntries(cronJobs) }
}

/** The state after the clock was set: what this boot has taken by it moves. */
function moveTimes({ jobs, cronJobs }: BatchState, step: ClockStep): BatchState {
  const move = (atMs: number): number => moveTime(atMs, step)
  return {
    jobs: mapValues(jobs, (record) => moveJobTimes(record, move)),
    // What one has started by a clock that was ahead, it may not start twice.
    cronJobs: step.byMs > 0 ? mapValues(cronJobs, (record) => moveCronTimes(record, move)) : cronJobs,
  }
}

/**
 * The times of a schedule that has no `scheduleProblem`.
 * @param timeZone left out, that of the host
 */
export function createSchedule(schedule: string, timeZone: string | undefined): Schedule {
  const cron = new Cron(listTimes(schedule), {
    paused: true,
    ...(timeZone !== undefined && { timezone: timeZone }),
  })
  return {
    // A time counts from its first millisecond on.
    last: (atMs) => cron.previousRuns(1, new Date(atMs + 1))[0]?.getTime(),
    next: (afterMs) => cron.nextRun(new Date(afterMs))?.getTime(),
  }
}

interface Named {
  readonly metadata: { readonly namespace: string; readonly name: string }
}

function keyOf(source: SourceName, { metadata: { namespace, name } }: Named): string {
  return `${source} ${namespace}/${name}`
}

function without<T>(entries: Readonly<Record<string, T>>, key: string): Record<string, T> {
  return Object.fromEntries(Object.entries(entries).filter(([each]) => each !== key))
}

/** Whether this record is of this object, rather than of one of its name that was deleted. */
function isOf({ uid }: Pick<JobRecord, 'uid'>, { kept }: ObjectDocument): boolean {
  return uid === undefined || kept === undefined || uid === kept.uid
}

function bound<T extends JobRecord | CronRecord>(record: T, { kept }: ObjectDocument): T {
  return kept === undefined || record.uid === kept.uid ? record : { ...record, uid: kept.uid }
}

/** The Job that a CronJob starts for a time (getJobFromTemplate2 in pkg/controller/cronjob, 1.36). */
function jobManifest(
  { manifest }: ObjectDocument,
  { metadata: { namespace } }: CronJob,
  name: string,
  scheduledMs: number,
): JsonObject {
  const metadata = jsonAt(manifest, 'spec', 'jobTemplate', 'metadata')
  const annotations = jsonAt(metadata, 'annotations')
  const scheduled = new Date(scheduledMs).toISOString().replace('.000', '')
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      ...(isJsonObject(metadata) ? metadata : {}),
      name,
      namespace,
      annotations: {
        ...(isJsonObject(annotations) ? annotations : {}),
        'batch.kubernetes.io/cronjob-scheduled-timestamp': scheduled,
      },
    },
    spec: jsonAt(manifest, 'spec', 'jobTemplate', 'spec') ?? {},
  }
}

/**
 * What Jobs and CronJobs did between two states, in the words of a cluster's controllers (pkg/controller/job, pkg/controller/cronjob,
 * 1.36).
 */
function listEvents(before: BatchState, after: BatchState): readonly PodEvent[] {
  const events: PodEvent[] = []
  for (const [key, { uid, jobs }] of Object.entries(after.cronJobs)) {
    const known = new Set(before.cronJobs[key]?.jobs.map(({ name }) => name))
    const about = eventHead('CronJob', key, uid)
    for (const { name } of jobs)
      if (!known.has(name))
        events.push({ ...about, type: 'Normal', reason: 'SuccessfulCreate', message: `Created job ${name}` })
  }
  for (const [key, { uid, run, pods, finished }] of Object.entries(after.jobs)) {
    const earlier = before.jobs[key]
    const known = earlier?.run === run ? earlier : undefined
    const about = eventHead('Job', key, uid)
    for (const pod of Object.keys(pods))
      if (known?.pods[pod] === undefined)
        events.push({ ...about, type: 'Normal', reason: 'SuccessfulCreate', message: `Created pod: ${pod}` })
    if (finished === undefined || known?.finished !== undefined) continue
    const { type, reason, message } = finished
    if (type === 'Failed') events.push({ ...about, type: 'Warning', reason, message })
    else events.push({ ...about, type: 'Normal', reason: 'Completed', message: 'Job completed' })
  }
  return events
}

/** @param key see `keyOf` */
function eventHead(
  kind: 'Job' | 'CronJob',
  key: string,
  uid: string | undefined,
): Pick<PodEvent, 'kind' | 'pod'> {
  const [, from = '', namespace = '', name = ''] = /^(\S+) ([^/]+)\/(.+)$/u.exec(key) ?? []
  const source = parseSourceName(from)
  return { kind, pod: { namespace, name, uid: uid ?? objectUid({ kind, namespace, name, source }) } }
}
