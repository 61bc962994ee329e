import type { ContainerId, SandboxId } from '../../pod/values/ids.ts'
import type { ObservedContainer, ObservedPod, ObservedSandbox } from '../../pod/state/observed.ts'

/** The kubelet's policy (`pkg/kubelet/container/container_gc.go`, GCPolicy, 1.36). A negative number sets no limit. */
export interface ContainerGarbagePolicy {
  /** Exited containers that are kept of each container of a pod. */
  readonly maxPerContainer: number
  /** Exited containers that are kept of all pods. */
  readonly maxTotal: number
  /** The minimum age of a container before it is removed. */
  readonly minimumAgeMs: number
}

/** One exited container of each container, as the kubelet's defaults have it. */
export const defaultContainerPolicy: ContainerGarbagePolicy = {
  maxPerContainer: 1,
  maxTotal: -1,
  minimumAgeMs: 0,
}

export interface GarbagePod {
  readonly observed: ObservedPod
  /** `terminated`: it will not run again, only its status is kept. `removed`: no source has it. */
  readonly fate: 'live' | 'terminated' | 'removed'
}

export interface ContainerGarbageFacts {
  readonly pods: readonly GarbagePod[]
  /**
   * Whether all sources were read. Otherwise a pod may be missing because its source was not read yet: none counts as
   * removed.
   */
  readonly allSourcesReady: boolean
  /** Whether terminated pods keep no containers either: for a host that runs out of space. */
  readonly evictNonDeletedPods: boolean
}

export interface ContainerGarbage {
  readonly pod: ObservedPod
  readonly containers: readonly { readonly container: ObservedContainer; readonly reason: GarbageReason }[]
  readonly sandboxes: readonly { readonly sandbox: ObservedSandbox; readonly reason: GarbageReason }[]
}

/**
 * `removed`, `terminated`: the pod's fate. `container-limit`, `total-limit`: see the policy. `superseded`: a newer one
 * replaced it.
 */
export type GarbageReason = 'removed' | 'terminated' | 'container-limit' | 'total-limit' | 'superseded'

/**
 * The exited containers and stopped sandboxes to remove, by pod, in the order of the pods
 * (`pkg/kubelet/kuberuntime/kuberuntime_gc.go`, evictContainers and evictSandboxes, 1.36). Containers of a pod that has
 * not been removed are considered by pod and container name. Unlike the kubelet, a container that was created and never
 * started is kept only while it is the newest, and counts for no limit.
 * @param nowMs of the wall clock
 */
export function planContainerGarbage(
  facts: ContainerGarbageFacts,
  policy: ContainerGarbagePolicy,
  nowMs: number,
): readonly ContainerGarbage[] {
  const pods = facts.pods.map((pod): GarbagePod => ({ ...pod, fate: fateOf(pod, facts) }))
  return selectGarbage(pods, policy, nowMs)
}

/** @param pods each with the fate that counts now */
function selectGarbage(
  pods: readonly GarbagePod[],
  policy: ContainerGarbagePolicy,
  nowMs: number,
): readonly ContainerGarbage[] {
  const reasons = new Map<ContainerId, GarbageReason>()
  const units: ObservedContainer[][] = []
  for (const { observed, fate } of pods) {
    const { containers } = observed
    // A creation time in the future dates from before the clock was set back.
    const isOld = ({ createdAtMs }: ObservedContainer): boolean =>
      createdAtMs > nowMs || nowMs - createdAtMs >= policy.minimumAgeMs
    const dead = containers.filter((each) => isDead(each) && isOld(each))
    if (fate !== 'live') {
      for (const { id } of dead) reasons.set(id, fate)
      continue
    }
    for (const container of dead)
      if (container.state === 'created' && isSuperseded(container, containers))
        reasons.set(container.id, 'superseded')
    const exited = dead
      .filter(({ state }) => state === 'exited')
      // Until the runtime itself reports the exit, how the newest one ended may not be in the record.
      .filter((each) => each.provisional !== true || isSuperseded(each, containers))
    units.push(...Map.groupBy(exited, ({ name }) => name).values())
  }
  // Newest first; within a unit no wall clock is needed for that.
  let kept = units.map((unit) => unit.toSorted((a, b) => b.restartCount - a.restartCount))
  const limit = (max: number, reason: GarbageReason): void => {
    for (const { id } of kept.flatMap((unit) => unit.slice(max))) reasons.set(id, reason)
    kept = kept.map((unit) => unit.slice(0, max))
  }
  if (policy.maxPerContainer >= 0) limit(policy.maxPerContainer, 'container-limit')
  const { maxTotal } = policy
  if (maxTotal >= 0 && kept.flat().length > maxTotal) {
    limit(Math.max(1, Math.floor(maxTotal / kept.length)), 'total-limit')
    const newestFirst = kept.flat().toSorted((a, b) => b.createdAtMs - a.createdAtMs)
    for (const { id } of newestFirst.slice(maxTotal)) reasons.set(id, 'total-limit')
  }
  return pods.flatMap(({ observed, fate }) => {
    const containers = observed.containers.flatMap((container) => {
      const reason = reasons.get(container.id)
      return reason === undefined ? [] : [{ container, reason }]
    })
    const inhabited = new Set(
      observed.containers.filter(({ id }) => !reasons.has(id)).map((c) => c.sandboxId),
    )
    const sandboxes = observed.sandboxes
      .slice(fate === 'live' ? 1 : 0)
      .filter(({ id, ready }) => !ready && !inhabited.has(id))
      .map((sandbox) => ({ sandbox, reason: fate === 'live' ? ('superseded' as const) : fate }))
    return containers.length + sandboxes.length === 0 ? [] : [{ pod: observed, containers, sandboxes }]
  })
}

export interface DeadThings {
  readonly containers: readonly ContainerId[]
  readonly sandboxes: readonly SandboxId[]
}

/**
 * The containers and sandboxes of a pod beyond its own limits, regardless of the total: its worker removes them after
 * each restart.
 */
export function selectDeadContainers(
  observed: ObservedPod,
  policy: ContainerGarbagePolicy,
  nowMs: number,
): DeadThings {
  const [garbage] = selectGarbage([{ observed, fate: 'live' }], { ...policy, maxTotal: -1 }, nowMs)
  return {
    containers: garbage?.containers.map(({ container }) => container.id) ?? [],
    sandboxes: garbage?.sandboxes.map(({ sandbox }) => sandbox.id) ?? [],
  }
}

function fateOf({ fate }: GarbagePod, facts: ContainerGarbageFacts): GarbagePod['fate'] {
  if (fate === 'removed') return facts.allSourcesReady ? 'removed' : 'live'
  return fate === 'terminated' && !(facts.evictNonDeletedPods && facts.allSourcesReady) ? 'live' : fate
}

function isDead({ state }: ObservedContainer): boolean {
  return state === 'exited' || state === 'created'
}

function isSuperseded(container: ObservedContainer, all: readonly ObservedContainer[]): boolean {
  return all.some(
    ({ name, restartCount }) => name === container.name && restartCount > container.restartCount,
  )
}
