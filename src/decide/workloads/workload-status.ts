/* Workloads as the API shows them: their specs with defaults, and how far they are. */
import type { LocalObjectMeta, WorkloadObject } from '../../api/cluster-objects.ts'
import { formatTime } from '../../base/clock.ts'
import { canonicalJson, jsonAt, objectOrEmpty, sameData } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { ObjectDocument, PodDocument } from '../../pod/objects/document.ts'
import type { CronJob, Job } from '../../pod/objects/workload-kinds.ts'
import { digestText } from '../../pod/values/hash.ts'
import { isReplicaDocument } from './replica-pods.ts'
import type { ReplicaDocument, WorkloadPod } from './replica-pods.ts'
import type { CronRecord } from './run-cron-job.ts'
import { activeOf } from './run-job.ts'
import type { JobPod, JobRecord } from './run-job.ts'

/** What is known of a workload beside its document. */
export interface WorkloadFacts {
  readonly metadata: LocalObjectMeta
  /** Of a workload whose pods run on: by its newest template, and those that there are. */
  readonly targets: readonly PodDocument[]
  readonly pods: readonly WorkloadPod[]
  readonly job: { readonly record: JobRecord; readonly pods: ReadonlyMap<string, JobPod> } | undefined
  readonly cronJob: CronRecord | undefined
  /** Names of the Jobs of a CronJob that have not ended. */
  readonly activeJobs: readonly string[]
  /** Why the revision in effect that has it failed; undefined where none did. */
  readonly failure?: string | undefined
  readonly nowMs: number
}

/** Undefined for a document of another kind. */
export function showWorkload(document: ObjectDocument, facts: WorkloadFacts): WorkloadObject | undefined {
  const { object, manifest, newest, kept } = document
  const spec = objectOrEmpty(newest === undefined ? (kept?.spec ?? manifest['spec']) : newest['spec'])
  const generation = generationOf(facts.metadata)
  const metadata = { ...facts.metadata, generation }
  if (isReplicaDocument(document)) {
    const { kind } = document.object
    const status = { observedGeneration: generation, ...replicaStatus(document, facts) }
    return { apiVersion: 'apps/v1', kind, metadata, spec: { ...replicaDefaults(document), ...spec }, status }
  }
  const common = { apiVersion: 'batch/v1', metadata } as const
  if (object.kind === 'Job') {
    const { job } = facts
    const status = job === undefined ? {} : jobStatus(job.record, job.pods, object.spec.suspend)
    return { ...common, kind: 'Job', spec: { ...jobDefaults(object), ...spec }, status }
  }
  if (object.kind !== 'CronJob') return undefined
  const { schedule: _schedule, timeZone: _zone, jobTemplate: _template, ...defaults } = object.spec
  return { ...common, kind: 'CronJob', spec: { ...defaults, ...spec }, status: cronStatus(object, facts) }
}

function generationOf(metadata: object): number {
  const { generation } = objectOrEmpty(metadata)
  return typeof generation === 'number' ? generation : 1
}

/** What clients read where the manifest says nothing (`pkg/apis/apps/v1/defaults.go`, 1.36). */
function replicaDefaults({ object }: ReplicaDocument): JsonObject {
  switch (object.kind) {
    case 'Deployment':
      return {
        replicas: object.spec.replicas,
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
      }
    case 'StatefulSet':
      return {
        replicas: object.spec.replicas,
        podManagementPolicy: object.spec.podManagementPolicy,
        updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
      }
    case 'DaemonSet':
      return { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } } }
  }
}

/** With the labels that all pods of a Job have (`asJobPod`): clients find them by its selector, for their logs. */
function jobDefaults({ metadata: { name }, spec }: Job): JsonObject {
  const { completions, parallelism, completionMode, suspend, backoffLimit } = spec
  return {
    selector: { matchLabels: { 'batch.kubernetes.io/job-name': name } },
    parallelism: parallelism ?? 1,
    ...(completions === undefined && parallelism === undefined && { completions: 1 }),
    backoffLimit: backoffLimit ?? 6,
    completionMode,
    suspend,
  }
}

/** `pkg/controller/deployment/sync.go` calculateStatus and its like, 1.36. */
function replicaStatus(
  document: ReplicaDocument,
  { targets, pods, failure, nowMs }: WorkloadFacts,
): JsonObject {
  const { object } = document
  const minReadyMs = object.spec.minReadySeconds * 1000
  const wantedOf = new Map(targets.map((target) => [target.pod.metadata.name, target.manifest]))
  const there = pods.filter(({ state }) => state !== 'leaving')
  const ready = there.filter(({ state }) => state === 'ready')
  const available = ready.filter(({ readySinceMs = nowMs }) => nowMs - readySinceMs >= minReadyMs).length
  const isUndone = isHeldBack(document)
  const updated = isUndone
    ? 0
    : there.filter(({ name, manifest }) => sameData(manifest, wantedOf.get(name))).length
  const wanted = targets.length
  if (object.kind === 'DaemonSet')
    return {
      currentNumberScheduled: there.length,
      desiredNumberScheduled: wanted,
      numberMisscheduled: 0,
      numberReady: ready.length,
      updatedNumberScheduled: updated,
      numberAvailable: available,
      numberUnavailable: wanted - available,
    }
  const counts = {
    replicas: there.length,
    readyReplicas: ready.length,
    availableReplicas: available,
    updatedReplicas: updated,
  }
  const isDone = updated === wanted && available === wanted && there.length === wanted
  if (object.kind === 'StatefulSet') {
    const { template } = objectOrEmpty((document.newest ?? document.manifest)['spec'])
    const updateRevision = revisionName(object.metadata.name, template)
    const isNew = updated === there.length
    return {
      ...counts,
      currentReplicas: isNew ? updated : there.length - updated,
      updateRevision,
      currentRevision: isNew ? updateRevision : `${object.metadata.name}-before`,
    }
  }
  const isEnough = available >= wanted - maxMissing(document, wanted)
  return {
    ...counts,
    unavailableReplicas: Math.max(0, wanted - available),
    conditions: [
      {
        type: 'Available',
        status: isEnough ? 'True' : 'False',
        reason: isEnough ? 'MinimumReplicasAvailable' : 'MinimumReplicasUnavailable',
        message: `Deployment ${isEnough ? 'has' : 'does not have'} minimum availability.`,
      },
      {
        type: 'Progressing',
        ...progressOf({ isUndone, isDone, failure, isPaused: object.spec.paused }),
      },
    ],
  }
}

/**
 * How many pods of a Deployment may be missing while it counts as available (`pkg/controller/deployment/util`, MaxUnavailable and
 * ResolveFenceposts, 1.36). A rollout here takes one at least, as it adds none: meanwhile it may be less than available.
 */
function maxMissing({ object, manifest }: ReplicaDocument, wanted: number): number {
  if (object.kind !== 'Deployment' || object.spec.strategy?.type === 'Recreate') return 0
  const update = jsonAt(manifest, 'spec', 'strategy', 'rollingUpdate')
  const countOf = (field: string, round: (count: number) => number): number => {
    const share = jsonAt(update, field) ?? '25%'
    if (typeof share === 'number') return share
    return typeof share === 'string' ? round((wanted * Number.parseInt(share, 10)) / 100) : 0
  }
  const missing = countOf('maxUnavailable', Math.floor)
  const added = countOf('maxSurge', Math.ceil)
  return Math.min(missing === 0 && added === 0 ? 1 : missing, wanted)
}

/** `pkg/controller/deployment/progress.go` and `sync.go` (checkPausedConditions), 1.36. */
function progressOf({
  isUndone,
  isDone,
  failure,
  isPaused,
}: {
  readonly isUndone: boolean
  readonly isDone: boolean
  readonly failure: string | undefined
  readonly isPaused: boolean
}): JsonObject {
  if (isUndone)
    return {
      status: 'False',
      reason: 'ProgressDeadlineExceeded',
      message: 'The newest template failed, or was not wanted: pods run by an earlier one.',
    }
  if (isPaused) return { status: 'Unknown', reason: 'DeploymentPaused', message: 'Deployment is paused' }
  if (isDone)
    return {
      status: 'True',
      reason: 'NewReplicaSetAvailable',
      message: 'All pods are of the newest template and available.',
    }
  if (failure !== undefined) return { status: 'False', reason: 'ProgressDeadlineExceeded', message: failure }
  return { status: 'True', reason: 'ReplicaSetUpdated', message: 'Pods are being made or replaced.' }
}

/** Whether its pods are made by an earlier template than the one that was written over the API. */
function isHeldBack({ manifest, newest }: ObjectDocument): boolean {
  return (
    newest !== undefined &&
    !sameData(jsonAt(newest, 'spec', 'template'), jsonAt(manifest, 'spec', 'template'))
  )
}

/** What stands for a template in the API: a ReplicaSet, or a ControllerRevision. */
export function revisionName(workload: string, template: Json | undefined): string {
  return `${workload}-${digestText(canonicalJson(template ?? null)).slice(0, 10)}`
}

function jobStatus(record: JobRecord, pods: ReadonlyMap<string, JobPod>, suspend: boolean): JsonObject {
  const active = activeOf(record)
  const { finished, startedAtMs } = record
  const conditions = jobConditions(record, suspend)
  return {
    ...(active.length > 0 && { active: active.length }),
    ready: active.filter((name) => pods.get(name)?.isReady === true).length,
    ...(record.succeeded > 0 && { succeeded: record.succeeded }),
    ...(record.failed > 0 && { failed: record.failed }),
    ...(startedAtMs !== undefined && { startTime: formatTime(startedAtMs) }),
    ...(finished?.type === 'Complete' && { completionTime: formatTime(finished.atMs) }),
    ...(record.completedIndexes.length > 0 && {
      completedIndexes: formatIndexes(record.completedIndexes),
    }),
    ...(record.failedIndexes.length > 0 && {
      failedIndexes: formatIndexes(record.failedIndexes),
    }),
    ...(conditions.length > 0 && { conditions }),
  }
}

/** `pkg/controller/job/job_controller.go` (newSuccessCondition, newFailedConditionForFailureTarget, newCondition), 1.36. */
function jobConditions({ finished }: JobRecord, suspend: boolean): readonly JsonObject[] {
  if (finished === undefined)
    return suspend
      ? [{ type: 'Suspended', status: 'True', reason: 'JobSuspended', message: 'Job suspended' }]
      : []
  const { reason, message, atMs } = finished
  const time = formatTime(atMs)
  const before = finished.type === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget'
  return [before, finished.type].map((type) => ({
    type,
    status: 'True',
    reason,
    message,
    lastProbeTime: time,
    lastTransitionTime: time,
  }))
}

/** `0,2-4`: as an API server writes sets of indexes (`pkg/controller/job/indexed_job_utils.go`, orderedIntervals.String, 1.36). */
function formatIndexes(indexes: readonly number[]): string {
  const ranges: [first: number, last: number][] = []
  for (const index of indexes.toSorted((a, b) => a - b)) {
    const range = ranges.at(-1)
    if (range?.[1] === index - 1) range[1] = index
    else ranges.push([index, index])
  }
  return ranges
    .map(([first, last]) =>
      first === last ? String(first) : `${first}${last === first + 1 ? ',' : '-'}${last}`,
    )
    .join(',')
}

function cronStatus(
  { metadata: { namespace } }: CronJob,
  { cronJob, activeJobs }: WorkloadFacts,
): JsonObject {
  const { lastScheduledMs, lastSuccessMs } = cronJob ?? {}
  return {
    ...(activeJobs.length > 0 && {
      active: activeJobs.map((name) => ({ apiVersion: 'batch/v1', kind: 'Job', namespace, name })),
    }),
    ...(lastScheduledMs !== undefined && { lastScheduleTime: formatTime(lastScheduledMs) }),
    ...(lastSuccessMs !== undefined && { lastSuccessfulTime: formatTime(lastSuccessMs) }),
  }
}
