/*
 * Restarts that no exit of the container itself calls for: on request, by name; those that podd began and did not end;
 * and of all containers, by a rule of one of them.
 */
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import { isRestartableInit, matchRestartRule } from './backoff.ts'
import { isAlive, isUnrun, viewContainer } from './container-view.ts'
import type { ContainerView } from './container-view.ts'
import type { PodAction } from './pod-action.ts'

/** The facts about a pod whose containers may be restarted. */
interface RestartFacts {
  readonly pod: Pod
  readonly observed: ObservedPod
  readonly history: PodRecord['containers']
}

export interface RestartChoice {
  readonly names: readonly string[]
  /** Only of containers that were ever created. */
  readonly ids: readonly ContainerId[]
}

/**
 * The containers that a restart is about: those named, or all main containers and sidecars, and the init container that
 * has failed and waits. Returns the first name that can't be restarted, if any: an unknown one, or an init container
 * that has completed or is running, as those run once.
 */
export function selectRestarts(
  facts: RestartFacts,
  wanted: readonly string[] | undefined,
): RestartChoice | { readonly refused: string; readonly why: 'unknown' | 'runs-once' } {
  const { initContainers, containers } = facts.pod.spec
  const inits = initContainers.filter((spec) => isRestartableInit(spec) || hasFailed(facts, spec))
  const possible = [...inits, ...containers]
  const refused = wanted?.find((name) => !possible.some((spec) => spec.name === name))
  if (refused !== undefined) {
    const isInit = initContainers.some(({ name }) => name === refused)
    return { refused, why: isInit ? 'runs-once' : 'unknown' }
  }
  const chosen = possible.filter(({ name }) => wanted === undefined || wanted.includes(name))
  return {
    names: chosen.map(({ name }) => name),
    ids: chosen.flatMap((spec) => viewedId(viewOf(facts, spec)) ?? []),
  }
}

/**
 * The pending requests: those whose container has no successor yet. One that was created and never started is none: it
 * may be removed again.
 */
export function selectOpenRestarts(
  facts: RestartFacts,
  requested: readonly ContainerId[],
): readonly ContainerId[] {
  const { initContainers, containers } = facts.pod.spec
  const specs = [...initContainers, ...containers]
  const ran = { ...facts.observed, containers: facts.observed.containers.filter((each) => !isUnrun(each)) }
  const newest = [facts, { ...facts, observed: ran }].flatMap((seen) =>
    specs.map((spec) => viewedId(viewOf(seen, spec))),
  )
  return requested.filter((id) => newest.includes(id))
}

/** Whether exactly this container (and no successor) is to be recreated because of a request. */
export function isRestartRequested(
  facts: { readonly restartRequested?: ReadonlySet<ContainerId> | undefined },
  view: ContainerView,
): boolean {
  const id = viewedId(view)
  return id !== undefined && facts.restartRequested?.has(id) === true
}

/** Whether this container was stopped to be started again, on request or not, so that its exit code doesn't matter. */
export function isStoppedToRestart(
  facts: {
    readonly restartRequested?: ReadonlySet<ContainerId> | undefined
    readonly restartsDue?: ReadonlySet<ContainerId> | undefined
  },
  view: Extract<ContainerView, { kind: 'ended' }>,
): boolean {
  return isRestartRequested(facts, view) || facts.restartsDue?.has(view.end.containerId) === true
}

/** Containers that were to be stopped and started again, and go on running. */
export interface SparedRestarts {
  /** Those of `restartsDue` that stay. */
  readonly due: readonly ContainerId[]
  /** When each was first seen to go on, in ms of the monotonic clock. */
  readonly sinceMs: ReadonlyMap<ContainerId, number>
  /** After how many milliseconds to look again; undefined where there is nothing to wait for. */
  readonly nextInMs: number | undefined
}

/**
 * podd was ended before it stopped them, or could not and no longer has to. A signal may be on its way to them for as
 * long as the pod's grace period. What ends later ends by itself, and its exit code counts again.
 * @param before `sinceMs` of the last review
 * @param planned those that are about to be stopped now
 */
export function reviewSparedRestarts(
  facts: Pick<RestartFacts, 'pod' | 'observed'> & { readonly restartsDue: readonly ContainerId[] },
  before: SparedRestarts['sinceMs'],
  planned: readonly ContainerId[],
  nowMs: number,
): SparedRestarts {
  const { pod, observed, restartsDue } = facts
  const running = observed.containers.filter(({ state }) => state === 'running').map(({ id }) => id)
  const goingOn = restartsDue.filter((id) => running.includes(id) && !planned.includes(id))
  const sinceMs = new Map(goingOn.map((id) => [id, before.get(id) ?? nowMs]))
  const leftMs = (id: ContainerId): number =>
    (sinceMs.get(id) ?? Infinity) + pod.spec.terminationGracePeriodSeconds * 1000 - nowMs
  const due = restartsDue.filter((id) => leftMs(id) > 0)
  const nextInMs = Math.min(...due.map((id) => leftMs(id)))
  return { due, sinceMs, nextInMs: nextInMs === Infinity ? undefined : nextInMs }
}

export interface RestartAll {
  /** All init and main containers that existed: from now on they count as never created. */
  readonly ids: ReadonlySet<ContainerId>
  /** Those of them that are still alive; nothing starts before they have ended. */
  readonly toStop: readonly Extract<PodAction, { kind: 'stop-container' }>[]
}

/**
 * The restart of the whole pod in its sandbox, which a container triggers when its exit matches its rule
 * RestartAllContainers: all others are stopped, without grace period and preStop, and the pod starts again with its
 * init containers. Volumes, addresses, counts and ephemeral containers stay. Undefined if none was triggered or is in
 * progress (`pkg/kubelet/container/helpers.go` ShouldAllContainersRestart, Kubernetes 1.36; there the containers are
 * removed, here they are only marked, so that their logs and ends stay available).
 */
export function computeRestartAll(
  facts: RestartFacts & { readonly restartAll?: ReadonlySet<ContainerId> | undefined },
): RestartAll | undefined {
  const { initContainers, containers } = facts.pod.spec
  const seen = [...initContainers, ...containers].map((spec) => ({ spec, view: viewOf(facts, spec) }))
  const source = seen.find(
    ({ spec, view }) => asksForRestartAll(spec, view) && !isReset(facts.restartAll, view),
  )
  const ids =
    source === undefined
      ? (facts.restartAll ?? new Set<ContainerId>())
      : new Set(seen.flatMap(({ view }) => viewedId(view) ?? []))
  const toStop = seen
    .flatMap(({ spec }) => facts.observed.containers.filter(({ name }) => name === spec.name))
    .filter((container) => ids.has(container.id) && isAlive(container))
    .map((container) => {
      const message = `Container ${container.name} is stopped for a restart of all containers`
      return { kind: 'stop-container', container, cause: 'restart-all', message } as const
    })
  return source === undefined && toStop.length === 0 ? undefined : { ids, toStop }
}

/** A container from before a restart of all counts as never created, unless it is still alive. */
export function currentView(
  restartAll: ReadonlySet<ContainerId> | undefined,
  view: ContainerView,
): ContainerView {
  return isReset(restartAll, view) ? { kind: 'none' } : view
}

/** Whether it is over, and from before a restart of all. */
export function isReset(restartAll: ReadonlySet<ContainerId> | undefined, view: ContainerView): boolean {
  if (restartAll === undefined || restartAll.size === 0) return false
  if (view.kind === 'live') return view.container.state === 'created' && restartAll.has(view.container.id)
  return view.kind === 'ended' && restartAll.has(view.end.containerId)
}

/** Whether all containers are to be restarted and some earlier ones are still alive. */
export function isBeingReset(
  { containers }: ObservedPod,
  restartAll: readonly ContainerId[] | undefined,
): boolean {
  if (restartAll === undefined) return false
  return containers.some((container) => isAlive(container) && restartAll.includes(container.id))
}

/** Whether its exit matches its rule RestartAllContainers. */
export function asksForRestartAll(spec: ContainerSpec, view: ContainerView): boolean {
  return (
    view.kind === 'ended' &&
    spec.restartPolicy !== undefined &&
    matchRestartRule(spec, view.end.exitCode) === 'RestartAllContainers'
  )
}

/** Whether any container of the pod may trigger a restart of all. */
export function mayRestartAll({ spec }: Pick<Pod, 'spec'>): boolean {
  return [...spec.initContainers, ...spec.containers].some(({ restartPolicyRules }) =>
    restartPolicyRules.some(({ action }) => action === 'RestartAllContainers'),
  )
}

/** The container that a view is of. */
function viewedId(view: ContainerView): ContainerId | undefined {
  if (view.kind === 'none') return undefined
  return view.kind === 'live' ? view.container.id : view.end.containerId
}

function hasFailed(facts: RestartFacts, spec: ContainerSpec): boolean {
  const view = viewOf(facts, spec)
  return view.kind === 'ended' && view.end.exitCode !== 0
}

function viewOf({ observed, history }: RestartFacts, { name }: ContainerSpec): ContainerView {
  return viewContainer({ name, observed, history: history[name] })
}
