import type { PodClasses } from '../../pod/schema/pod-resources.ts'
import type { FieldPath } from '../../pod/schema/issues.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { PoddError } from '../../base/errors.ts'
import { findPortClash, hostShares } from './host-shares.ts'
import type { HostLimits, HostPort, HostShares } from './host-shares.ts'
import { HostTally } from './host-tally.ts'

/** Another pod that holds resources of this host. */
export interface Neighbour {
  /** `namespace/name` */
  readonly key: string
  readonly pod: Pod
  /** It will not run again: until its sandbox is stopped it holds only its ports. */
  readonly hasEnded?: boolean
  /** It is terminating: it will release what it holds. */
  readonly isEnding?: boolean
  /** It doesn't run yet: what it requests is reserved until terminating pods are gone. */
  readonly isPromised?: boolean
  /** A new version waits to replace it: what that doesn't request may become free. */
  readonly next?: Pod | undefined
}

export type Admission =
  | {
      readonly kind: 'admitted'
      /** The result of resolving its classes; undefined: the earlier result stays. */
      readonly classes?: PodClasses | undefined
    }
  /** Not now: the pod stays Pending and is reconsidered when something changes. */
  | {
      readonly kind: 'blocked'
      readonly reason: string
      readonly message: string
      /** The field of the pod that it is about, or the first one; absent where none is. */
      readonly at?: FieldPath | undefined
      /**
       * The pod may not do what it asks for, so what runs of it is ended. Otherwise it only can't be started: what runs
       * is supervised.
       */
      readonly isForbidden?: boolean
      /** The containers that can't be created in a sandbox that exists either; absent for none. */
      readonly containers?: readonly string[]
    }
  /** Rejected: the pod is Failed with this reason. Only for what no change of the host or the config can mend. */
  | {
      readonly kind: 'rejected'
      readonly reason: string
      readonly message: string
      readonly at?: FieldPath | undefined
    }

/**
 * Whether `pod` may start beside its neighbours. Terminating pods and those to be replaced still hold their resources;
 * a pod that doesn't fit waits. Unlike in the kubelet, which fails it (`OutOfcpu`), as there is no controller that makes
 * the pod again when others have ended. Pods include what their classes add. Resources:
 * `pkg/kubelet/lifecycle/predicate.go` (1.36).
 * @param tally of these neighbours
 */
export function admitPod(
  pod: Pod,
  neighbours: Iterable<Neighbour>,
  limits: HostLimits,
  tally = new HostTally(neighbours),
): Admission {
  const wanted = hostShares(pod)
  if (tally.holdsPortOf(wanted)) return blockedByPort(pod, wanted, neighbours)
  const lack = tally.findLastingLack(wanted, limits) ?? tally.findPresentLack(wanted, limits)
  return lack === undefined
    ? { kind: 'admitted' }
    : { kind: 'blocked', reason: 'Blocked', message: lack.message, at: requestPath(pod, lack.resource) }
}

/** Names the first neighbour that holds a port of those. */
function blockedByPort(pod: Pod, wanted: HostShares, neighbours: Iterable<Neighbour>): Admission {
  for (const { key, pod: other } of neighbours) {
    const port = findPortClash(wanted, hostShares(other))
    if (port === undefined) continue
    return { kind: 'blocked', reason: 'Blocked', message: portHeld(port, key), at: portPath(pod, port) }
  }
  throw new PoddError('INTERNAL', 'a host port is held by no pod')
}

export function portHeld({ port, protocol }: HostPort, key: string): string {
  return `host port ${port}/${protocol} is held by pod ${key}`
}

function portPath({ spec }: Pod, { port, protocol }: HostPort): FieldPath | undefined {
  for (const list of ['containers', 'initContainers'] as const) {
    for (const [index, { ports }] of spec[list].entries()) {
      const at = ports.findIndex((own) => own.hostPort === port && own.protocol === protocol)
      if (at >= 0) return ['spec', list, index, 'ports', at, 'hostPort']
    }
  }
  return undefined
}

/** Where the pod first asks for a resource. */
function requestPath({ spec }: Pod, resource: string): FieldPath | undefined {
  if (spec.resources?.requests?.[resource] !== undefined) return ['spec', 'resources', 'requests', resource]
  for (const list of ['containers', 'initContainers'] as const) {
    const index = spec[list].findIndex(({ resources }) => resources?.requests?.[resource] !== undefined)
    if (index >= 0) return ['spec', list, index, 'resources', 'requests', resource]
  }
  return undefined
}
