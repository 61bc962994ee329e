import { formatTime } from '../../base/clock.ts'
import { sameData } from '../../base/json.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import { computeQosClass } from '../../pod/schema/pod-resources.ts'
import type {
  ConditionStatus,
  ContainerStatus,
  PodCondition,
  PodPhase,
  PodStatus,
} from '../../pod/state/status.ts'
import { deriveContainerStatus } from './derive-container-status.ts'
import { derivePhase } from './derive-phase.ts'
import { derivePodResources } from './derive-pod-resources.ts'
import { goesAwayAfter } from '../plan/pod-ending.ts'
import { podGeneration } from './pod-generation.ts'
import type { ResizeState } from '../plan/resize.ts'
import { isBeingReset, mayRestartAll } from '../plan/restart-all.ts'
import { isRestartableInit } from '../plan/restart-policy.ts'
import type { StatusFacts } from '../plan/status-facts.ts'

export interface DerivedStatus {
  readonly status: PodStatus
  /** The change of the record on which the next status depends: transition times, the pod's own addresses. */
  readonly recordChange: Partial<Pick<PodRecord, 'conditions' | 'podIps'>> | undefined
}

/**
 * Derives a pod's status from its record and what was observed; it is never stored by itself
 * (`pkg/kubelet/kubelet_pods.go` generateAPIPodStatus, `status/generate.go`, Kubernetes 1.36).
 */
export function deriveStatus(given: StatusFacts): DerivedStatus {
  const facts = withoutPostStarts(given)
  const { pod, record, observed } = facts
  const phase = record.failed === undefined ? livePhase(facts) : 'Failed'
  const initStatuses = pod.spec.initContainers.map((spec) => deriveContainerStatus(facts, spec, 'init'))
  const statuses = pod.spec.containers.map((spec) => deriveContainerStatus(facts, spec, 'main'))
  const ephemeral = pod.spec.ephemeralContainers.map((spec) =>
    deriveContainerStatus(facts, spec, 'ephemeral'),
  )
  const sandbox = observed.sandboxes[0]
  const podIps = knownIps(facts)
  const ips = pod.spec.hostNetwork ? facts.hostIps : (podIps ?? [])
  const networkReady = sandbox?.ready === true && (pod.spec.hostNetwork || sandbox.ips.length > 0)
  const { conditions, record: transitions } = stampConditions(facts, [
    { type: 'PodReadyToStartContainers', status: networkReady ? 'True' : 'False' },
    initializedCondition(facts, phase, initStatuses),
    readyCondition('ContainersReady', facts, { phase, initStatuses, statuses }),
    readyCondition('Ready', facts, { phase, initStatuses, statuses }),
    { type: 'PodScheduled', status: 'True' },
    ...restartAllConditions(facts, phase),
    ...resizeConditions(facts.resize),
    ...disruptionConditions(record),
  ])
  const { ending } = record
  const endedFor = ending === undefined || goesAwayAfter(ending) ? undefined : ending
  const why = record.failed ?? endedFor ?? (phase === 'Pending' ? facts.blocked : undefined)
  const status: PodStatus = {
    observedGeneration: podGeneration(record),
    phase,
    conditions,
    ...(why === undefined
      ? {}
      : { reason: why.reason, message: wasRejected(record) ? rejection(why.message) : why.message }),
    ...addresses('hostIP', facts.hostIps),
    ...addresses('podIP', ips),
    ...(record.startedAtMs === undefined ? {} : { startTime: formatTime(record.startedAtMs) }),
    qosClass: computeQosClass(pod.spec),
    ...(wasNeverAdmitted(facts)
      ? {}
      : {
          ...(facts.blocked === undefined || phase === 'Running'
            ? derivePodResources({ pod, record, observed, phase })
            : {}),
          ...(initStatuses.length === 0 ? {} : { initContainerStatuses: initStatuses }),
          containerStatuses: statuses,
          ...(ephemeral.length === 0 ? {} : { ephemeralContainerStatuses: ephemeral }),
        }),
  }
  const recordChange = {
    ...(transitions === record.conditions ? {} : { conditions: transitions }),
    ...(podIps === record.podIps ? {} : { podIps }),
  }
  return { status, recordChange: Object.keys(recordChange).length === 0 ? undefined : recordChange }
}

/** A pod that may not run any more is Pending while it isn't over (`pkg/kubelet/kubelet.go`, SyncPod, 1.36). */
function livePhase(facts: StatusFacts): PodPhase {
  const phase = derivePhase(facts)
  return phase === 'Running' && facts.blocked?.isForbidden === true ? 'Pending' : phase
}

/**
 * A pod that was rejected before anything of it was created has no container statuses (`pkg/kubelet/kubelet.go`
 * rejectPod, 1.36).
 */
function wasNeverAdmitted({ record, observed }: StatusFacts): boolean {
  if (!wasRejected(record)) return false
  if (observed.containers.length > 0) return false
  return Object.values(record.containers).every(({ ended }) => ended === undefined)
}

/** Rejected for good at its admission, and not evicted. */
function wasRejected({ failed }: PodRecord): boolean {
  return failed?.admission === true && failed.until === undefined
}

/** `pkg/kubelet/kubelet.go` rejectPod, 1.36; the event has the message alone. */
function rejection(message: string): string {
  return `Pod was rejected: ${message}`
}

/** While no sandbox is ready, a pod keeps the addresses that it had (`pkg/kubelet/pleg/generic.go` getPodIPs, 1.36). */
function knownIps({ pod, observed, record }: StatusFacts): PodRecord['podIps'] {
  const fresh = observed.sandboxes[0]?.ips ?? []
  const isReady = observed.sandboxes.some((sandbox) => sandbox.ready)
  if (pod.spec.hostNetwork || (fresh.length === 0 && !isReady)) return record.podIps
  return sameData(record.podIps ?? [], fresh) ? record.podIps : fresh
}

/** A running container whose postStart hook isn't done counts as created and not started yet. */
function withoutPostStarts(facts: StatusFacts): StatusFacts {
  const { observed, postStarts } = facts
  if (postStarts === undefined || postStarts.size === 0) return facts
  const containers = observed.containers.map((container) =>
    container.state === 'running' && postStarts.has(container.id)
      ? { ...container, state: 'created' as const }
      : container,
  )
  return { ...facts, observed: { ...observed, containers } }
}

function addresses(key: 'hostIP' | 'podIP', ips: readonly string[]): Partial<PodStatus> {
  const [first] = ips
  if (first === undefined) return {}
  const all = ips.map((ip) => ({ ip }))
  return key === 'hostIP' ? { hostIP: first, hostIPs: all } : { podIP: first, podIPs: all }
}

type Condition = Omit<PodCondition, 'lastTransitionTime' | 'observedGeneration'>

/** Kubernetes has these conditions only while they apply (`pkg/kubelet/status`, 1.36). */
function resizeConditions(resize: ResizeState | undefined): readonly Condition[] {
  if (resize === undefined) return []
  if (resize.kind === 'pending')
    return [{ type: 'PodResizePending', status: 'True', reason: resize.reason, message: resize.message }]
  const why = resize.error === undefined ? {} : { reason: 'Error', message: resize.error }
  return [{ type: 'PodResizeInProgress', status: 'True', ...why }]
}

/**
 * For pods that were evicted because of pressure or the shutdown of the node
 * (`pkg/kubelet/eviction/eviction_manager.go`, synchronize, 1.36).
 */
function disruptionConditions({ ending, failed }: PodRecord): readonly Condition[] {
  const evicted = [ending, failed].find((each) => each?.until !== undefined)
  if (evicted === undefined) return []
  const { message } = evicted
  return [{ type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message }]
}

/**
 * Only for pods with a rule RestartAllContainers (`status/generate.go` GenerateAllContainersRestartingCondition, 1.36).
 */
function restartAllConditions(facts: StatusFacts, phase: PodPhase): readonly Condition[] {
  if (!mayRestartAll(facts.pod)) return []
  const type = 'AllContainersRestarting'
  if (phase === 'Succeeded') return [{ type, status: 'False', reason: 'PodCompleted' }]
  if (phase === 'Failed') return [{ type, status: 'False', reason: 'PodFailed' }]
  if (!isBeingReset(facts.observed, facts.record.restartAll)) return [{ type, status: 'False' }]
  const message = 'container exited with restart policy rule'
  return [{ type, status: 'True', reason: 'RestartAllContainersStarted', message }]
}

function initializedCondition(
  facts: StatusFacts,
  phase: PodPhase,
  inits: readonly ContainerStatus[],
): Condition {
  const type = 'Initialized'
  if (phase === 'Succeeded') return { type, status: 'True', reason: 'PodCompleted' }
  const { observed, record } = facts
  const before = isBeingReset(observed, record.restartAll) ? [] : (record.restartAll ?? [])
  const mainBegan = facts.pod.spec.containers.some((spec) =>
    observed.containers.some((c) => c.name === spec.name && !before.includes(c.id)),
  )
  const incomplete = inits
    .filter((status, index) => {
      const spec = facts.pod.spec.initContainers[index]
      return spec !== undefined && isRestartableInit(spec) ? status.started !== true : !status.ready
    })
    .map((status) => status.name)
  if (incomplete.length === 0 || mainBegan) return { type, status: 'True' }
  return {
    type,
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${incomplete.join(' ')}]`,
  }
}

function readyCondition(
  type: string,
  facts: StatusFacts,
  seen: { phase: PodPhase; initStatuses: readonly ContainerStatus[]; statuses: readonly ContainerStatus[] },
): Condition {
  if (seen.phase === 'Succeeded') return { type, status: 'False', reason: 'PodCompleted' }
  if (seen.phase === 'Failed') return { type, status: 'False', reason: 'PodFailed' }
  const sidecars = seen.initStatuses.filter((_, index) => {
    const spec = facts.pod.spec.initContainers[index]
    return spec !== undefined && isRestartableInit(spec)
  })
  const unready = [...sidecars, ...seen.statuses]
    .filter((status) => !status.ready)
    .map((status) => status.name)
  if (unready.length === 0) return { type, status: 'True' }
  const message = `containers with unready status: [${unready.join(' ')}]`
  return { type, status: 'False', reason: 'ContainersNotReady', message }
}

/** Gives each condition the pod's generation, and the time at which its status last changed, kept in the record. */
function stampConditions(facts: StatusFacts, fresh: readonly Condition[]) {
  const before = facts.record.conditions
  const observedGeneration = podGeneration(facts.record)
  const record: Record<string, { status: ConditionStatus; atMs: number }> = {}
  let changed = Object.keys(before).some((type) => fresh.every((condition) => condition.type !== type))
  const conditions = fresh.map((condition): PodCondition => {
    const known = before[condition.type]
    const same = known !== undefined && known.status === condition.status
    if (!same) changed = true
    const stamp = same ? known : { status: condition.status, atMs: facts.nowMs }
    record[condition.type] = stamp
    return { ...condition, observedGeneration, lastTransitionTime: formatTime(stamp.atMs) }
  })
  return { conditions, record: changed ? record : before }
}
