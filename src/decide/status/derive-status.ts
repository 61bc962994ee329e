import { sameData } from '../../base/json.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import {
  computeQosClass,
  isPodLimited,
  isPositive,
  podLimits,
  podRequests,
  resizableNames,
  withClasses,
} from '../../pod/schema/pod-resources.ts'
import type { ResourceList } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type {
  ConditionStatus,
  ContainerStatus,
  PodCondition,
  PodPhase,
  PodStatus,
} from '../../pod/state/status.ts'
import { upToDateCondition } from '../../pod/state/status.ts'
import { isRestartableInit } from '../plan/backoff.ts'
import { newestEnd, viewContainer } from '../plan/container-view.ts'
import type { ContainerView } from '../plan/container-view.ts'
import { goesAwayAfter } from '../plan/ending.ts'
import { showTime } from '../plan/clock-set.ts'
import type { StatusFacts } from '../plan/pod-facts.ts'
import { hasInitialized, runsAgain as isToRunAgain } from '../plan/progress.ts'
import { podAsAllocated, podAsApplied } from '../plan/resize.ts'
import type { ResizeState } from '../plan/resize.ts'
import { currentView, isBeingReset, isReset, mayRestartAll } from '../plan/restart-request.ts'
import { deriveContainerStatus, isStarted } from './derive-container-status.ts'

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
    ...outdatedConditions(facts),
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
    ...(record.startedAtMs === undefined ? {} : { startTime: showTime(record.startedAtMs, facts.clock) }),
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

/**
 * A pod's metadata.generation: 1 at first, one more for each change of its spec (`pkg/registry/core/pod/strategy.go`
 * updatePodGeneration, 1.36), and one more once it is being deleted (BeforeDelete in the API server's
 * `registry/rest/delete.go`).
 */
export function podGeneration({ generation = 1, ending }: Pick<PodRecord, 'generation' | 'ending'>): number {
  return ending !== undefined && goesAwayAfter(ending) ? generation + 1 : generation
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

function addresses(key: 'hostIP' | 'podIP', ips: readonly string[]): Partial<PodStatus> {
  const [first] = ips
  if (first === undefined) return {}
  const all = ips.map((ip) => ({ ip }))
  return key === 'hostIP' ? { hostIP: first, hostIPs: all } : { podIP: first, podIPs: all }
}

type Condition = Omit<PodCondition, 'lastTransitionTime' | 'observedGeneration'>

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

/** Kubernetes has these conditions only while they apply (`pkg/kubelet/status`, 1.36). */
function resizeConditions(resize: ResizeState | undefined): readonly Condition[] {
  if (resize === undefined) return []
  if (resize.kind === 'pending')
    return [{ type: 'PodResizePending', status: 'True', reason: resize.reason, message: resize.message }]
  const why = resize.error === undefined ? {} : { reason: 'Error', message: resize.error }
  return [{ type: 'PodResizeInProgress', status: 'True', ...why }]
}

/**
 * For pods that were evicted over the API (`pkg/registry/core/pod/storage/eviction.go`, addConditionAndDeletePod, 1.36), or
 * because of pressure or the shutdown of the node (`pkg/kubelet/eviction/eviction_manager.go`, synchronize).
 */
function disruptionConditions({ ending, failed }: PodRecord): readonly Condition[] {
  if (ending?.asked === 'evicted')
    return [
      {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'EvictionByEvictionAPI',
        message: 'Eviction API: evicting',
      },
    ]
  const evicted = [ending, failed].find((each) => each?.until !== undefined)
  if (evicted === undefined) return []
  const { message } = evicted
  return [{ type: 'DisruptionTarget', status: 'True', reason: 'TerminationByKubelet', message }]
}

/** podd's own: the pod runs, and not as its manifest says. */
function outdatedConditions({ outdated }: StatusFacts): readonly Condition[] {
  if (outdated === undefined) return []
  const message = `the new version is not in effect, and the old one keeps running: ${outdated}`
  return [{ type: upToDateCondition, status: 'False', reason: 'UpdatePending', message }]
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
    return { ...condition, observedGeneration, lastTransitionTime: showTime(stamp.atMs, facts.clock) }
  })
  return { conditions, record: changed ? record : before }
}

/** The pod's phase (`pkg/kubelet/kubelet_pods.go` getPhase, Kubernetes 1.36). */
export function derivePhase(facts: StatusFacts): PodPhase {
  const { containers, initContainers } = facts.pod.spec
  if (initContainers.some((init) => hasFailedForGood(facts, init))) return 'Failed'
  const stages = containers.map((container) => stageOf(facts, container))
  // Once all main containers have ended for good, nothing waits for init containers any more.
  const isOver = stages.every((stage) => stage === 'ended')
  if (!isOver && initContainers.some((init) => isPendingInit(facts, init))) return 'Pending'
  if (stages.includes('waiting') || stages.includes('unknown')) return 'Pending'
  // A pod whose main containers have ended runs until its sidecars have been stopped.
  if (!isOver || initContainers.some((init) => isRunning(viewOf(facts, init)))) return 'Running'
  const succeeded = containers.every((container) => {
    const view = viewOf(facts, container)
    return view.kind === 'ended' && view.end.exitCode === 0
  })
  return succeeded ? 'Succeeded' : 'Failed'
}

/** `restarting`: it ended and is to run again. */
type Stage = 'waiting' | 'running' | 'restarting' | 'ended' | 'unknown'

function stageOf(facts: StatusFacts, container: ContainerSpec): Stage {
  const view = viewOf(facts, container)
  if (view.kind === 'none') return wasReset(facts, container) ? 'restarting' : 'waiting'
  if (view.kind === 'ended') return runsAgain(facts, container, view) ? 'restarting' : 'ended'
  const { state } = view.container
  if (state !== 'created') return state === 'running' ? 'running' : 'unknown'
  // A container that is being recreated has run: the pod doesn't return to Pending.
  const { name } = container
  const ranBefore = newestEnd(name, facts.observed, facts.record.containers[name]) !== undefined
  return ranBefore ? 'restarting' : 'waiting'
}

/** It ran before all containers were restarted, and is to run again. */
function wasReset({ observed, record }: StatusFacts, { name }: ContainerSpec): boolean {
  const view = viewContainer({ name, observed, history: record.containers[name] })
  return isReset(new Set(record.restartAll), view)
}

/** Whether the main containers wait for this init container. */
function isPendingInit(facts: StatusFacts, init: ContainerSpec): boolean {
  const view = viewOf(facts, init)
  if (isRestartableInit(init)) return !isStarted(facts, init, view) && !hasInitialized(facts)
  if (view.kind === 'ended' && view.end.exitCode === 0) return false
  return !hasInitialized(facts)
}

function hasFailedForGood(facts: StatusFacts, init: ContainerSpec): boolean {
  const view = viewOf(facts, init)
  return view.kind === 'ended' && view.end.exitCode !== 0 && !runsAgain(facts, init, view)
}

function runsAgain(
  { pod, record }: StatusFacts,
  container: ContainerSpec,
  view: Extract<ContainerView, { kind: 'ended' }>,
): boolean {
  const restartRequested = new Set(record.restartRequested)
  const restartsDue = new Set(record.restartsDue)
  return isToRunAgain({ pod, restartRequested, restartsDue }, container, view)
}

function viewOf(facts: StatusFacts, { name }: ContainerSpec): ContainerView {
  const { observed, record } = facts
  const view = viewContainer({ name, observed, history: record.containers[name] })
  return currentView(new Set(record.restartAll), view)
}

function isRunning(view: ContainerView): boolean {
  return view.kind === 'live' && view.container.state === 'running'
}

/**
 * The pod-level resources: allocated and actual. While it runs, a limit is shown where its cgroup has one; before and
 * after, all that its spec implies (`pkg/kubelet/kubelet_pods.go` convertToAPIPodLevelResourcesStatus, 1.36; exact,
 * where the kubelet reads rounded values back from the cgroup).
 */
export function derivePodResources({
  pod,
  record,
  observed,
  phase,
}: {
  readonly pod: Pod
  readonly record: PodRecord
  readonly observed: ObservedPod
  readonly phase: PodPhase
}): Pick<PodStatus, 'allocatedResources' | 'resources'> {
  const allocated = podAsAllocated(withClasses(pod, record.classes), record.allocated)
  const { containers: history, podResources } = record
  const lists =
    phase === 'Running'
      ? runningResources(podAsApplied({ pod: allocated, observed, history, podResources }))
      : {
          requests: podRequests(allocated.spec, 'with-overhead'),
          limits: podLimits(allocated.spec, 'with-overhead'),
        }
  const resources = { ...filled('limits', lists.limits), ...filled('requests', lists.requests) }
  return {
    ...filled('allocatedResources', podRequests(allocated.spec, 'with-overhead')),
    ...(Object.keys(resources).length === 0 ? {} : { resources }),
  }
}

function runningResources({ spec }: Pod): { readonly requests: ResourceList; readonly limits: ResourceList } {
  const [requests, limits] = [podRequests(spec, 'with-overhead'), podLimits(spec, 'with-overhead')]
  const limited = resizableNames.filter((name) => isPodLimited(spec, name))
  return {
    requests: { ...only(requests, resizableNames), ...spec.resources?.requests },
    limits: { ...spec.resources?.limits, ...only(limits, limited) },
  }
}

function only(list: ResourceList, names: readonly string[]): ResourceList {
  return Object.fromEntries(names.flatMap((name) => (isPositive(list[name]) ? [[name, list[name]]] : [])))
}

function filled<Name extends string>(
  name: Name,
  list: ResourceList,
): { readonly [_ in Name]?: ResourceList } {
  const entry: { [_ in Name]?: ResourceList } = {}
  if (Object.keys(list).length > 0) entry[name] = list
  return entry
}
