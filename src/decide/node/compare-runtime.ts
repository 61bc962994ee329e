/* CRI's list of containers against containerd's own: what CRI has forgotten, and what is done about it. */
import { podKey } from '../../pod/values/ids.ts'
import type { PodRef } from '../../pod/values/ids.ts'

/** One of containerd's own containers: a sandbox's, or that of a container of a pod. */
export interface HeldContainer {
  readonly id: string
  readonly kind: 'sandbox' | 'container'
  /** Undefined without such a label. */
  readonly pod: PodRef | undefined
  /** The container's name in its pod; empty for a sandbox. */
  readonly name: string
}

/** containerd's own containers, and those that CRI lists. */
export interface RuntimeInventory {
  readonly held: readonly HeldContainer[]
  /** The ids of the sandboxes that CRI knows. */
  readonly sandboxes: ReadonlySet<string>
  /** The containers that CRI knows. */
  readonly containers: readonly { readonly id: string; readonly sandboxId: string }[]
  /** Ids of containers that a failed CreateContainer has left: they have no task, and CRI has no files of them. */
  readonly remains: ReadonlySet<string>
}

/**
 * The containers that containerd has and CRI doesn't know, those of pods before their sandboxes. CRI loads its list
 * into memory when containerd starts, and drops what it cannot load: on a full disk every container, since loading
 * rewrites its status (`pkg/cri/server/restart.go`, containerd 1.6; `internal/cri/server/restart.go`, 2.1). Their tasks
 * run on.
 *
 * What never ran is not among them, as it cannot run twice: a sandbox that no container belongs to, which containerd
 * leaves where it is killed while it makes one, and what failed calls have left, which no start of containerd loads.
 * These are cleared away later (runtime/containerd/leaks.ts).
 */
export function findForgotten(inventory: RuntimeInventory): readonly HeldContainer[] {
  const { held, sandboxes, containers, remains } = inventory
  const forgotten = findUnknown(inventory).filter(({ id }) => !remains.has(id))
  const inhabited = new Set(containers.map(({ sandboxId }) => sandboxId))
  const losers = new Set(forgotten.map(({ pod }) => pod?.uid))
  const forgottenSandboxes = held.filter(({ id, kind, pod }) => {
    const isMissing = kind === 'sandbox' && !sandboxes.has(id)
    return isMissing && (inhabited.has(id) || (pod !== undefined && losers.has(pod.uid)))
  })
  return [...forgotten, ...forgottenSandboxes]
}

/** The containers of pods that CRI doesn't know, including the remains of failed calls. */
export function findUnknown({
  held,
  containers,
}: Pick<RuntimeInventory, 'held' | 'containers'>): readonly HeldContainer[] {
  const known = new Set(containers.map(({ id }) => id))
  return held.filter(({ id, kind }) => kind === 'container' && !known.has(id))
}

/**
 * The containers missing in both comparisons: one that was created or removed meanwhile is listed, or gone, in the
 * second.
 */
export function selectStillForgotten(
  before: readonly HeldContainer[],
  now: readonly HeldContainer[],
): readonly HeldContainer[] {
  return now.filter(({ id }) => before.some((other) => other.id === id))
}

export interface RuntimeSituation {
  readonly forgotten: readonly HeldContainer[]
  /** Why containerd can't write to its disk; undefined where it can. */
  readonly roomProblem: string | undefined
  /** Ids of those that a restart with space on the disk has not brought back. */
  readonly stillForgotten: ReadonlySet<string>
  /** How often containerd was restarted since CRI last listed all. */
  readonly restarts: number
  /** Whether podd may restart it and kill its containers. */
  readonly isOwn: boolean
}

/** The response to a difference. */
export type RuntimeStep =
  /** CRI lists all containers. */
  | { readonly kind: 'use' }
  /** Nothing can be done before the disk has space or containerd is restarted. */
  | { readonly kind: 'wait'; readonly message: string }
  /** Another start of containerd may load what this one could not. */
  | { readonly kind: 'restart'; readonly message: string; readonly forgotten: readonly HeldContainer[] }
  /** A restart did not load these either. */
  | { readonly kind: 'end'; readonly message: string; readonly lost: readonly HeldContainer[] }

/** With a disk that is repeatedly full each start may lose other containers. */
const maxRestarts = 5
const maxNamed = 3

/** While CRI does not list some containers nothing may be started or stopped, since they would count as removed. */
export function decideRuntimeStep(situation: RuntimeSituation): RuntimeStep {
  const { forgotten, roomProblem, stillForgotten, restarts, isOwn } = situation
  if (forgotten.length === 0) return { kind: 'use' }
  const what = `CRI no longer lists ${nameAll(forgotten)}, which may still run; until it lists them again, podd starts and stops nothing`
  if (!isOwn)
    return {
      kind: 'wait',
      message: `${what}. Free space on containerd's disk if it is full, and restart containerd`,
    }
  if (roomProblem !== undefined)
    return {
      kind: 'wait',
      message: `${what}. podd restarts containerd when it can write to its disk: ${roomProblem}`,
    }
  const lost = restarts >= maxRestarts ? forgotten : forgotten.filter(({ id }) => stillForgotten.has(id))
  // Another start may load what only this one failed to load.
  if (lost.length < forgotten.length)
    return { kind: 'restart', message: `${what}. podd is restarting containerd`, forgotten }
  return { kind: 'end', message: `${what}. podd is killing them`, lost }
}

function nameAll(forgotten: readonly HeldContainer[]): string {
  const containers = forgotten.filter(({ kind }) => kind === 'container')
  const named = (containers.length > 0 ? containers : forgotten).map(({ id, kind, pod, name }) =>
    pod === undefined ? `${kind} ${id}` : `${kind} ${[name, 'of', podKey(pod)].join(' ').trim()}`,
  )
  const more = named.length > maxNamed ? ` and ${named.length - maxNamed} more` : ''
  return `${named.slice(0, maxNamed).join(', ')}${more}`
}
