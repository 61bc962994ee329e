/* The pods by which a revision is judged: which they are, how each is seen now, and what is kept of those that fail. */
import { sameData } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { parseDuration } from '../../config/option-type.ts'
import { isRestartableInit } from '../../decide/plan/backoff.ts'
import { podGeneration } from '../../decide/status/derive-status.ts'
import { changedContainers, countCrashes, explainUnready } from '../../decide/updates/health-gate.ts'
import type { HeldBy, PodFailure, PodSight } from '../../decide/updates/health-gate.ts'
import type { ContainerEvidence, RanImage, RevisionFailure } from '../../decide/updates/unit-revisions.ts'
import { keyOfOwner } from '../../pod/objects/document.ts'
import type { PodDocument } from '../../pod/objects/document.ts'
import { allContainers } from '../../pod/schema/pod-resources.ts'
import type { ContainerStatus } from '../../pod/state/status.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey, PodRef, SourceName } from '../../pod/values/ids.ts'
import { restartAnnotation } from '../../translate/config-hash.ts'
import type { PodEnv } from '../pod/env.ts'
import { hasOutdatedContainers } from '../pod/live-pass.ts'
import type { DesiredPods } from './desired-pods.ts'
import type { Workloads } from './workloads.ts'

/** A pod by which a revision is judged. */
export interface ChangedPod {
  /** As the pod's record has it. */
  readonly document: PodDocument
  /** What its record would have in the revision to go back to. */
  readonly before: JsonObject | undefined
  readonly key: PodKey
  /** The UID of the pod of this name when the revision became active; undefined without one, and where that is not known. */
  readonly uidBefore: string | undefined
  /**
   * It is to end by itself, and what it takes the place of has ended, or is not known: it is not undone for its failure, as
   * what has been done would be done again.
   */
  readonly isTask: boolean
  /** How often the change restarts each container without being a crash. */
  readonly restarts: number
  /** The containers whose crashes count. */
  readonly changed: ReadonlySet<string>
}

/**
 * @param given as its unit gives it
 * @param earlier as the revision to go back to gave it
 * @param named gives a pod by the name that it has here
 * @param isFresh the revision became active just now: the pod that runs is that of the one before
 */
export function describeChanged(
  desired: DesiredPods,
  given: PodDocument,
  earlier: PodDocument | undefined,
  named: (document: PodDocument) => PodDocument,
  isFresh: boolean,
): ChangedPod {
  const document = named(given)
  const before = earlier && named(earlier).manifest
  const key = podKey(document.pod.metadata)
  const { spec, metadata } = given.pod
  const old = isFresh ? desired.holder(key) : undefined
  const isOnlyRestarted =
    sameData(before, document.manifest) && metadata.annotations[restartAnnotation] === 'true'
  return {
    document,
    before,
    key,
    uidBefore: isFresh ? (old?.ref.uid ?? '') : undefined,
    isTask: spec.restartPolicy !== 'Always' && old?.state.hasEnded !== false,
    restarts: isOnlyRestarted ? 1 : 0,
    changed: changedContainers(given, earlier),
  }
}

const waiting: PodSight = { kind: 'waiting' }

/** How a changed pod is seen now. */
export function seePod(
  env: PodEnv,
  desired: DesiredPods,
  workloads: Workloads,
  source: SourceName,
  { document, before, key, uidBefore, restarts, changed }: ChangedPod,
): PodSight {
  const { statuses, prober, knowledge, images } = env
  const progressDeadlineMs = readDeadline(document) ?? document.progress?.deadlineMs
  const held = (by: HeldBy, message: string): PodSight => ({ kind: 'held', by, message, progressDeadlineMs })
  const former = (): PodSight =>
    held('former', desired.updateProblem(key) ?? 'its former version runs until it can be replaced')
  if (knowledge.runtimeProblem !== undefined || workloads.awaitsTurn(source, document)) return waiting
  const worker = desired.holder(key)
  if (worker === undefined) return held('host', 'there is no pod of this name yet')
  const { state, ref } = worker
  const { record, admission, stage } = state
  if (record.ending !== undefined || stage === 'adopted') return waiting
  if (record.source !== source || record.path !== document.place.path)
    return held('host', `the pod of this name is given by ${record.path || record.source}, which is followed`)
  const isMeant = sameData(record.manifest, document.manifest)
  if (!isMeant && sameData(record.manifest, before)) return former()
  if (record.failed?.until !== undefined) return waiting
  if (admission?.kind === 'rejected' || (admission?.kind === 'blocked' && !isPassing(admission.reason)))
    return held('host', admission.message)
  if (stage === 'waiting' || admission?.kind !== 'admitted') return waiting
  const status = statuses.find(ref.uid)?.status
  if (status === undefined || status.observedGeneration !== podGeneration(record)) return waiting
  const { containerStatuses = [] } = status
  const { containers, initContainers, restartPolicy } = state.pod.spec
  const isApplied = containerStatuses.every(({ name, image, containerID }) => {
    const spec = containers.find((container) => container.name === name)
    return spec === undefined || containerID === undefined || image === spec.image
  })
  if (isMeant && !isApplied) return former()
  const sidecars = initContainers.filter((container) => isRestartableInit(container))
  const verdicts = prober.verdicts(ref.uid)
  const isReady =
    status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True') &&
    !(isMeant && hasOutdatedContainers(env, state))
  const isNew = uidBefore !== undefined && uidBefore !== ref.uid
  return {
    kind: 'seen',
    uid: ref.uid,
    state:
      status.phase === 'Succeeded'
        ? 'completed'
        : status.phase === 'Failed'
          ? 'failed'
          : isReady
            ? 'ready'
            : 'starting',
    crashes: countCrashes(status, {
      isCounted: (name) => changed.has(name),
      restartsAlways: (name, isInit) =>
        isInit ? sidecars.some((each) => each.name === name) : restartPolicy === 'Always',
    }),
    isNew,
    isBetween: !isMeant,
    expectedRestarts: isNew ? 0 : restarts,
    failedStartup: state.observed.containers.find(({ id }) => verdicts[id]?.startup === 'failure')?.name,
    progressDeadlineMs,
    isPulling: images.isPulling(ref.uid),
    minReadyMs: document.progress?.minReadyMs,
    message: explainUnready(status),
  }
}

/** Why a pod isn't admitted that says nothing about its manifest, and passes. */
function isPassing(reason: string): boolean {
  return ['NodeUnderPressure', 'NodeShutdown', 'RuntimeNotReady'].includes(reason)
}

/** On a pod: its own `updates.progressDeadline`. */
const deadlineAnnotation = 'podd.dev/progress-deadline'

/** Undefined for one that can't be read: the setting counts. */
function readDeadline({ pod }: PodDocument): number | undefined {
  const text = pod.metadata.annotations[deadlineAnnotation]
  if (text === undefined) return undefined
  try {
    const deadlineMs = parseDuration(text)
    return deadlineMs > 0 ? deadlineMs : undefined
  } catch {
    // It is no duration.
    return undefined
  }
}

/**
 * The images that these pods run.
 * @param pods by the names that they have here
 */
export function listRanImages(
  { statuses }: Pick<PodEnv, 'statuses'>,
  desired: DesiredPods,
  pods: readonly PodDocument[],
): readonly RanImage[] {
  return pods.flatMap((document) => {
    const pod = podKey(document.pod.metadata)
    const worker = desired.holder(pod)
    const status = worker && statuses.find(worker.ref.uid)?.status
    const { initContainerStatuses = [], containerStatuses = [] } = status ?? {}
    return allContainers(document.pod.spec).flatMap(({ name, image }) => {
      const id = [...initContainerStatuses, ...containerStatuses].find(
        (each) => each.name === name && each.image === image,
      )?.imageID
      return id === undefined || id === '' ? [] : [{ pod, container: name, image, id }]
    })
  })
}

// What is kept of a failed revision for whoever looks.

/** How long the last log lines of failed pods may take to be read. */
const evidenceMs = 2000
/** Of how many failed pods, and how many lines of each log. */
const maxEvidence = 10

/** Why these pods failed their revision, how their containers are, and their last log lines; undefined for none. */
export async function describeFailures(
  env: Pick<PodEnv, 'statuses' | 'clock' | 'logs'>,
  desired: DesiredPods,
  failures: readonly PodFailure[],
  judged: readonly ChangedPod[] | undefined,
): Promise<RevisionFailure | undefined> {
  const [first] = failures
  if (first === undefined) return undefined
  const containers = await gatherEvidence(env, desired, failures)
  const more = failures.length - 1
  const others = more === 0 ? '' : `; and ${more} more ${more === 1 ? 'pod has' : 'pods have'} failed`
  return {
    reason: first.reason,
    message: `${first.message}${others}`,
    atMs: env.clock.wallMs(),
    containers,
    workloads: failedWorkloads(failures, judged),
  }
}

/** The workloads among those whose pods failed, each with why its first one did. */
export function failedWorkloads(
  failures: readonly PodFailure[],
  judged: readonly ChangedPod[] = [],
): Readonly<Record<string, string>> {
  const documents = new Map(judged.map(({ key, document }) => [key, document]))
  const found = new Map<string, string>()
  for (const { pod, message } of failures) {
    const { owner, pod: of } = documents.get(pod) ?? {}
    if (owner === undefined || of === undefined) continue
    const key = keyOfOwner(owner, of.metadata.namespace)
    if (!found.has(key)) found.set(key, message)
  }
  return Object.fromEntries(found)
}

/** What takes long is left out. */
async function gatherEvidence(
  { statuses, clock, logs }: Pick<PodEnv, 'statuses' | 'clock' | 'logs'>,
  desired: DesiredPods,
  failures: readonly PodFailure[],
): Promise<readonly ContainerEvidence[]> {
  const late = Promise.withResolvers<undefined>()
  const timer = clock.startTimer(evidenceMs, () => late.resolve(undefined))
  const found = failures.slice(0, maxEvidence).flatMap(({ pod }) => {
    const worker = desired.holder(pod)
    const status = worker && statuses.find(worker.ref.uid)?.status
    if (worker === undefined || status === undefined) return []
    const { initContainerStatuses = [], containerStatuses = [] } = status
    return [...initContainerStatuses, ...containerStatuses]
      .filter(({ ready, state }) => !ready && state.terminated?.exitCode !== 0)
      .map(async (container) => {
        const lines = await Promise.race([readLines(logs, worker.ref, container), late.promise])
        return evidenceOf(pod, container, lines ?? [])
      })
  })
  const evidence = await Promise.all(found)
  timer.cancel()
  return evidence
}

async function readLines(
  logs: PodEnv['logs'],
  ref: PodRef,
  { name, restartCount, state, containerID }: ContainerStatus,
): Promise<readonly string[]> {
  if (containerID === undefined) return []
  // One that has just been started again may have said nothing yet.
  const instances =
    state.running === undefined || restartCount === 0 ? [restartCount] : [restartCount, restartCount - 1]
  for (const instance of instances) {
    // Without its log, how it ended says the rest.
    const text = await logs.tail(ref, name, instance).catch(() => '')
    const lines = text.split('\n').filter((line) => line !== '')
    if (lines.length > 0) return lines.slice(-maxEvidence)
  }
  return []
}

function evidenceOf(
  pod: string,
  { name, state, lastState }: ContainerStatus,
  lines: readonly string[],
): ContainerEvidence {
  const end = state.terminated ?? lastState.terminated
  const message = end?.message ?? state.waiting?.message
  return {
    pod,
    container: name,
    ...(end !== undefined && { exitCode: end.exitCode }),
    ...((end?.reason ?? state.waiting?.reason) !== undefined && {
      reason: end?.reason ?? state.waiting?.reason,
    }),
    ...(message !== undefined && { message: message.slice(0, 1000) }),
    lines,
  }
}
