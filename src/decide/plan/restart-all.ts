import type { ContainerId } from '../../pod/values/ids.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { viewContainer } from './container-view.ts'
import type { ContainerView } from './container-view.ts'
import type { PodAction } from './pod-action.ts'
import { matchRestartRule } from './restart-policy.ts'

interface Facts {
  readonly pod: Pod
  readonly observed: ObservedPod
  readonly history: PodRecord['containers']
  readonly restartAll?: ReadonlySet<ContainerId> | undefined
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
export function computeRestartAll(facts: Facts): RestartAll | undefined {
  const { initContainers, containers } = facts.pod.spec
  const seen = [...initContainers, ...containers].map((spec) => ({ spec, view: rawView(facts, spec) }))
  const source = seen.find(
    ({ spec, view }) => asksForRestartAll(spec, view) && !isReset(facts.restartAll, view),
  )
  const ids =
    source === undefined
      ? (facts.restartAll ?? new Set<ContainerId>())
      : new Set(seen.flatMap(({ view }) => viewedId(view) ?? []))
  const toStop = seen
    .flatMap(({ spec }) => facts.observed.containers.filter(({ name }) => name === spec.name))
    .filter(({ id, state }) => ids.has(id) && isAlive(state))
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

/** Whether its exit matches its rule RestartAllContainers. */
export function asksForRestartAll(spec: ContainerSpec, view: ContainerView): boolean {
  return (
    view.kind === 'ended' &&
    spec.restartPolicy !== undefined &&
    matchRestartRule(spec, view.end.exitCode) === 'RestartAllContainers'
  )
}

/** Whether all containers are to be restarted and some earlier ones are still alive. */
export function isBeingReset(
  { containers }: ObservedPod,
  restartAll: readonly ContainerId[] | undefined,
): boolean {
  if (restartAll === undefined) return false
  return containers.some(({ id, state }) => isAlive(state) && restartAll.includes(id))
}

/** Whether any container of the pod may trigger a restart of all. */
export function mayRestartAll({ spec }: Pick<Pod, 'spec'>): boolean {
  return [...spec.initContainers, ...spec.containers].some(({ restartPolicyRules }) =>
    restartPolicyRules.some(({ action }) => action === 'RestartAllContainers'),
  )
}

function isAlive(state: ObservedContainer['state']): boolean {
  return state === 'running' || state === 'unknown'
}

function viewedId(view: ContainerView): ContainerId | undefined {
  if (view.kind === 'none') return undefined
  return view.kind === 'live' ? view.container.id : view.end.containerId
}

function rawView({ observed, history }: Facts, { name }: ContainerSpec): ContainerView {
  return viewContainer({ name, observed, history: history[name] })
}
