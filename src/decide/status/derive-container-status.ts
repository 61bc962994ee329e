/* A container's status, from its pod's record and what was observed; and why one ended where the runtime doesn't say. */
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerHistory, EndedContainer } from '../../pod/state/pod-record.ts'
import type {
  ContainerState,
  ContainerStateTerminated,
  ContainerStatus,
  VolumeMountStatus,
} from '../../pod/state/status.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import { isRestartableInit } from '../plan/backoff.ts'
import { newestEnd, viewContainer } from '../plan/container-view.ts'
import type { ContainerView } from '../plan/container-view.ts'
import { showTime } from '../plan/clock-set.ts'
import type { StatusFacts } from '../plan/pod-facts.ts'
import { hasInitialized } from '../plan/progress.ts'
import { appliedResources, withResizable } from '../plan/resize.ts'
import { isBeingReset, isReset } from '../plan/restart-request.ts'

type Role = 'init' | 'main' | 'ephemeral'

/** One container's status (`pkg/kubelet/kubelet_pods.go` convertToAPIContainerStatuses, Kubernetes 1.36). */
export function deriveContainerStatus(facts: StatusFacts, spec: ContainerSpec, role: Role): ContainerStatus {
  const history = facts.record.containers[spec.name]
  const view = viewContainer({ name: spec.name, observed: facts.observed, history })
  const state = deriveState(facts, spec, { view, role })
  const lastEnd = lastEndOf(view, history, state, facts.observed)
  const shown = view.kind === 'live' ? view.container : view.kind === 'ended' ? view.end : undefined
  const id =
    view.kind === 'live' ? view.container.id : view.kind === 'ended' ? view.end.containerId : undefined
  const user = shown?.user
  const volumeMounts = spec.volumeMounts.map((mount) => mountStatus(mount, facts.recursiveReadOnly === true))
  const started = isStarted(facts, spec, view)
  return {
    name: spec.name,
    state,
    lastState: lastEnd === undefined ? {} : { terminated: terminatedState(facts, lastEnd) },
    ready: isReady(facts, spec, { view, role, started }),
    restartCount: shown?.restartCount ?? 0,
    image: shown?.image ?? spec.image,
    imageID: shown?.imageId ?? '',
    ...(id === undefined ? {} : { containerID: `${facts.runtimeName}://${id}` }),
    started,
    ...statusResources(facts, spec, view),
    ...(volumeMounts.length === 0 ? {} : { volumeMounts }),
    ...(user === undefined ? {} : { user: { linux: user } }),
    ...(shown?.stopSignal === undefined ? {} : { stopSignal: shown.stopSignal }),
  }
}

/** A retried pull is shown with the reason of the last failure. */
const imageReasons: ReadonlySet<string> = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'RegistryUnavailable',
  'SignatureValidationFailed',
])

function deriveState(
  facts: StatusFacts,
  spec: ContainerSpec,
  seen: { readonly view: ContainerView; readonly role: Role },
): ContainerState {
  const { view } = seen
  if (view.kind === 'live' && view.container.state === 'running') {
    const { startedAtMs } = view.container
    return { running: startedAtMs === undefined ? {} : { startedAt: showTime(startedAtMs, facts.clock) } }
  }
  const waiting = facts.waiting.get(spec.name)
  // In a terminating or failed pod an exited container no longer waits.
  const isLast = view.kind === 'ended' && (facts.record.ending ?? facts.record.failed) !== undefined
  const pulling = facts.pulling?.get(spec.name)
  if (waiting !== undefined && pulling !== undefined && imageReasons.has(waiting.reason))
    return { waiting: { reason: waiting.reason, message: pulling } }
  if (waiting !== undefined && !isLast && !isNeverMade(facts, spec, seen))
    return { waiting: { reason: waiting.reason, message: waiting.message } }
  const startsAgain =
    isReset(new Set(facts.record.restartAll), view) && !isBeingReset(facts.observed, facts.record.restartAll)
  if (view.kind === 'ended' && !startsAgain) return { terminated: terminatedState(facts, view.end) }
  if (view.kind === 'live' && view.container.state === 'unknown') {
    return {
      waiting: { reason: 'ContainerStatusUnknown', message: 'the runtime lost track of the container' },
    }
  }
  if (hasPassedUnseen(facts, spec, seen)) return { terminated: unseenPass }
  if (isNeverMade(facts, spec, seen)) return { terminated: neverMade }
  // The kubelet's reason for a container that wasn't created yet: any of a pod with init containers.
  const initializes = facts.pod.spec.initContainers.length > 0
  const reason = initializes ? 'PodInitializing' : 'ContainerCreating'
  return { waiting: { reason, ...(pulling !== undefined && { message: pulling }) } }
}

function terminatedState(facts: StatusFacts, end: EndedContainer): ContainerStateTerminated {
  const message = limitMessage(facts.pod.spec, end.message)
  return {
    exitCode: end.exitCode,
    ...(end.reason === '' ? {} : { reason: end.reason }),
    ...(message === '' ? {} : { message }),
    ...(end.startedAtMs === undefined ? {} : { startedAt: showTime(end.startedAtMs, facts.clock) }),
    finishedAt: showTime(end.finishedAtMs, facts.clock),
    containerID: `${facts.runtimeName}://${end.containerId}`,
  }
}

/** Of all termination messages of a pod (`pkg/kubelet/container/runtime.go` MaxPodTerminationMessageLogLength, 1.36). */
const maxPodMessageBytes = 12 * 1024

/** The beginning, up to a container's share (`pkg/kubelet/status/status_manager.go` normalizeStatus, 1.36). */
function limitMessage({ initContainers, containers, ephemeralContainers }: PodSpec, message: string): string {
  const count = initContainers.length + containers.length + ephemeralContainers.length
  const bytes = new TextEncoder().encode(message)
  const maxBytes = Math.floor(maxPodMessageBytes / count)
  if (bytes.length <= maxBytes) return message
  // A character that was cut in two is left out.
  return new TextDecoder().decode(bytes.subarray(0, maxBytes), { stream: true })
}

/** For an init container without a container or a record. */
const unseenPass: ContainerStateTerminated = {
  exitCode: 0,
  reason: 'Completed',
  message: 'the container was removed; it succeeded, since later containers of the pod have run',
}

/** An init container that left no trace, while later containers prove that it succeeded. */
function hasPassedUnseen(
  facts: StatusFacts,
  spec: ContainerSpec,
  { view, role }: { readonly view: ContainerView; readonly role: Role },
): boolean {
  return role === 'init' && view.kind === 'none' && !isRestartableInit(spec) && hasInitialized(facts)
}

/**
 * For a container that was never created in a failed pod (`pkg/kubelet/status/status_manager.go` TerminatePod, 1.36).
 */
const neverMade: ContainerStateTerminated = {
  exitCode: 137,
  reason: 'ContainerStatusUnknown',
  message: 'The container could not be located when the pod was terminated',
}

/**
 * Whether a container without a trace in a failed pod counts as one that may have run: a later one ran, no earlier one
 * did, or, for a main container, all init containers are done.
 */
function isNeverMade(
  facts: StatusFacts,
  spec: ContainerSpec,
  { view, role }: { readonly view: ContainerView; readonly role: Role },
): boolean {
  const { record, observed, pod } = facts
  if (record.failed === undefined || view.kind !== 'none' || role === 'ephemeral') return false
  const { initContainers, containers } = pod.spec
  const wasMade = ({ name }: ContainerSpec): boolean =>
    viewContainer({ name, observed, history: record.containers[name] }).kind !== 'none'
  if (containers.some(wasMade)) return true
  if (role === 'main') return initContainers.every((init) => hasPassed(facts, init))
  const at = initContainers.indexOf(spec)
  return at === 0 || initContainers.slice(at + 1).some(wasMade)
}

function hasPassed({ record, observed }: StatusFacts, init: ContainerSpec): boolean {
  const history = record.containers[init.name]
  const view = viewContainer({ name: init.name, observed, history })
  if (!isRestartableInit(init)) return view.kind === 'ended' && view.end.exitCode === 0
  const ran = view.kind === 'ended' || (view.kind === 'live' && view.container.state !== 'created')
  return ran && (init.startupProbe === undefined || history?.startedUp !== undefined)
}

/** The end before the current `state`; it isn't in the record yet where a successor has just been created. */
function lastEndOf(
  view: ContainerView,
  history: ContainerHistory | undefined,
  state: ContainerState,
  observed: ObservedPod,
): EndedContainer | undefined {
  if (view.kind === 'none') return history?.ended
  if (view.kind === 'live') return newestEnd(view.container.name, observed, history)
  if (state.waiting !== undefined) return view.end
  return history?.ended?.containerId === view.end.containerId ? history.endedBefore : history?.ended
}

/** Running, and past its startup probe if it has one. */
export function isStarted(facts: StatusFacts, spec: ContainerSpec, view: ContainerView): boolean {
  if (view.kind !== 'live' || view.container.state !== 'running') return false
  return spec.startupProbe === undefined || facts.probes[view.container.id]?.startup === 'success'
}

/** Init containers are ready once they have succeeded, ephemeral ones never (`prober_manager.go` UpdatePodStatus). */
function isReady(
  facts: StatusFacts,
  spec: ContainerSpec,
  seen: {
    readonly view: ContainerView
    readonly role: Role
    readonly started: boolean
  },
): boolean {
  const { view, role, started } = seen
  if (role === 'ephemeral') return false
  if (role === 'init' && !isRestartableInit(spec))
    return hasSucceeded(facts, view) || hasPassedUnseen(facts, spec, seen)
  if (!started || view.kind !== 'live') return false
  return spec.readinessProbe === undefined || facts.probes[view.container.id]?.readiness === 'success'
}

function hasSucceeded({ record }: StatusFacts, view: ContainerView): boolean {
  return view.kind === 'ended' && view.end.exitCode === 0 && !isReset(new Set(record.restartAll), view)
}

/** The resources of a running container; for one that doesn't run, those it will get. */
function statusResources(
  facts: StatusFacts,
  spec: ContainerSpec,
  view: ContainerView,
): Pick<ContainerStatus, 'allocatedResources' | 'resources'> {
  const runs = view.kind === 'live' && view.container.state === 'running'
  const applied = runs ? appliedResources(view.container, facts.record.containers) : undefined
  const { requests, limits: bound } =
    applied === undefined ? spec.resources : withResizable(spec.resources, applied)
  // Limits that the pod imposes on the container belong to the pod.
  const limits = Object.fromEntries(
    Object.entries(bound).filter(([name]) => spec.resources.limits[name] !== undefined),
  )
  const some = (list: Readonly<Record<string, string>>): boolean => Object.keys(list).length > 0
  // For a created container a kubelet reports that it has none (`pkg/kubelet/kubelet_pods.go` convertToAPIContainerStatuses, 1.36).
  const wasMade = view.kind === 'live' || view.kind === 'ended'
  if (!wasMade && !some(requests) && !some(limits)) return {}
  return {
    ...(some(requests) ? { allocatedResources: requests } : {}),
    resources: { ...(some(limits) ? { limits } : {}), ...(some(requests) ? { requests } : {}) },
  }
}

function mountStatus(
  { name, mountPath, readOnly, recursiveReadOnly = 'Disabled' }: ContainerSpec['volumeMounts'][number],
  canBeRecursive: boolean,
): VolumeMountStatus {
  if (!readOnly) return { name, mountPath }
  const isRecursive = recursiveReadOnly !== 'Disabled' && canBeRecursive
  return { name, mountPath, readOnly, recursiveReadOnly: isRecursive ? 'Enabled' : 'Disabled' }
}

/**
 * The runtime's exit code and reason for a container that ended while it did not run (containerd 1.6 to 2.1:
 * unknownExitCode, unknownExitReason).
 */
const unseen = { exitCode: 255, reason: 'Unknown' }

/**
 * The message of a container's end: its own termination message, or else that the host was rebooted, where the pod's
 * last sandbox dates from an earlier boot.
 */
export function explainEnd(facts: {
  readonly container: Pick<ObservedContainer, 'exitCode' | 'reason'>
  readonly message: string
  /** The boot in which the pod's last sandbox was created; undefined where its record doesn't say. */
  readonly sandboxBootId: string | undefined
  readonly bootId: string
}): string {
  const { container, message, sandboxBootId, bootId } = facts
  const isUnseen = container.exitCode === unseen.exitCode && container.reason === unseen.reason
  if (message !== '' || !isUnseen || sandboxBootId === undefined || sandboxBootId === bootId) return message
  return 'The container was running when the host was restarted or lost power'
}

/** The runtime's reason for a kill by the kernel's OOM killer. */
export const oomKilled = 'OOMKilled'
/** The exit code of a process that SIGKILL has ended. */
const killedExitCode = 137

/**
 * The container among those that have just ended which was OOM-killed although the runtime doesn't report it: the
 * runtime watches the container's cgroup, which is removed right after the container. The pod's cgroup stays, and shows
 * whether there were kills since a container of the pod last ended. Undefined where several containers qualify.
 *
 * @param before the number of kills then; undefined where they were not counted
 * @param now the current number; undefined where unknown
 */
export function findOomKilled(
  ended: readonly Pick<ObservedContainer, 'id' | 'exitCode' | 'reason'>[],
  before: number | undefined,
  now: number | undefined,
): ContainerId | undefined {
  if (before === undefined || now === undefined || now === before) return undefined
  // A recreated cgroup counts from 0.
  if (now === 0 || ended.some(({ reason }) => reason === oomKilled)) return undefined
  // Alone, it is the one, whatever it made of the death of a process of its own: the runtime says so too.
  const [killed, ...more] =
    ended.length === 1 ? ended : ended.filter(({ exitCode }) => exitCode === killedExitCode)
  return more.length === 0 ? killed?.id : undefined
}
