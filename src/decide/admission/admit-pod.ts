import type { PodClasses } from '../../pod/spec/pod-classes.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { findPortClash, findRoomLack, hostShares, smallerShares, totalShares } from './host-shares.ts'
import type { HostLimits, HostPort, HostShares } from './host-shares.ts'

/** Another pod that holds things on this host. */
export interface Neighbour {
  /** `namespace/name` */
  readonly key: string
  readonly pod: Pod
  /** Nothing of it will run again: until its sandbox is stopped it holds its ports, and nothing else. */
  readonly hasEnded?: boolean
  /** It is being ended: it holds what it holds for now only. */
  readonly isEnding?: boolean
  /** It doesn't run yet: what it asks for is kept for it until pods that are ending are gone. */
  readonly isPromised?: boolean
  /** A new version that waits to take its place: what that doesn't ask for may become free. */
  readonly next?: Pod | undefined
}

export type Admission =
  | {
      readonly kind: 'admitted'
      /** What its classes came to; undefined: what was settled before stays. */
      readonly classes?: PodClasses | undefined
    }
  /** Not now: the pod stays Pending and is looked at again when something changes. */
  | { readonly kind: 'blocked'; readonly reason: string; readonly message: string }
  /** Not at all, as things are: the pod is Failed with this reason. */
  | { readonly kind: 'rejected'; readonly reason: string; readonly message: string }

/**
 * Whether `pod` may start beside its neighbours. Those that are ending or to be replaced still hold what they hold; a pod
 * that fits once they are gone waits for that. Pods come with what their classes add. Resources: `pkg/kubelet/lifecycle/predicate.go`
 * (1.36).
 */
export function admitPod(pod: Pod, neighbours: readonly Neighbour[], limits: HostLimits): Admission {
  const wanted = hostShares(pod)
  const others = neighbours.map((neighbour) => ({ ...neighbour, shares: hostShares(neighbour.pod) }))
  for (const { key, shares } of others) {
    const port = findPortClash(wanted, shares)
    if (port !== undefined) return { kind: 'blocked', reason: 'Blocked', message: portHeld(port, key) }
  }
  const living = others.filter(({ hasEnded }) => hasEnded !== true)
  const lack = (beside: readonly HostShares[]) => findRoomLack(wanted, totalShares(beside), limits)
  const lasting = living.filter(({ isEnding }) => isEnding !== true)
  const never = lack(
    lasting.map(({ shares, next }) =>
      next === undefined ? shares : smallerShares(shares, hostShares(next)),
    ),
  )
  if (never !== undefined)
    return { kind: 'rejected', reason: `OutOf${never.resource}`, message: never.message }
  const present = living.filter(({ isPromised }) => isPromised !== true)
  const now = lack(present.map(({ shares }) => shares))
  if (now !== undefined) return { kind: 'blocked', reason: 'Blocked', message: now.message }
  return { kind: 'admitted' }
}

export function portHeld({ port, protocol }: HostPort, key: string): string {
  return `host port ${port}/${protocol} is held by pod ${key}`
}
