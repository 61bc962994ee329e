import { podRequests } from '../pod/pod-resources.ts'
import type { ResourceList } from '../pod/pod-resources.ts'
import type { PodClasses } from '../pod/pod-classes.ts'
import { addQuantities, compareQuantities, quantityMilliValue, quantityValue } from '../pod/quantity.ts'
import type { ContainerPort } from '../pod/schema/container-schema.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'

/** Another pod that holds things on this host. */
export interface Neighbour {
  /** `namespace/name` */
  readonly key: string
  readonly pod: Pod
  /** Nothing of it will run again: until its sandbox is stopped it holds its ports, and nothing else. */
  readonly hasEnded?: boolean
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

interface HeldPort {
  readonly ip: string
  readonly port: number
  readonly protocol: ContainerPort['protocol']
}

function heldPorts(pod: Pod): HeldPort[] {
  return [...pod.spec.initContainers, ...pod.spec.containers].flatMap((container) =>
    container.ports.flatMap(({ hostPort, hostIP, protocol }) =>
      hostPort === undefined || hostPort === 0 ? [] : [{ ip: hostIP ?? '', port: hostPort, protocol }],
    ),
  )
}

/** Of all that is counted. Huge pages of a size that the host hasn't set aside are none. */
function capacities(
  requested: ResourceList,
  { allocatable }: HostLimits,
): readonly (readonly [name: string, capacity: string])[] {
  if (allocatable === undefined) return []
  const missing = Object.keys(requested).filter(
    (name) => name.startsWith('hugepages-') && allocatable[name] === undefined,
  )
  return [...Object.entries(allocatable), ...missing.map((name) => [name, '0'] as const)]
}

const anyAddress = (ip: string): boolean => ip === '' || ip === '0.0.0.0' || ip === '::'

function clash(a: HeldPort, b: HeldPort): boolean {
  if (a.port !== b.port || a.protocol !== b.protocol) return false
  return a.ip === b.ip || anyAddress(a.ip) || anyAddress(b.ip)
}

/** What the host gives pods; see allocatable.ts. */
export interface HostLimits {
  readonly maxPods: number
  /** What all pods together may request; a resource that isn't in it is given freely. */
  readonly allocatable?: ResourceList
}

/**
 * Whether `pod` may start beside its neighbours. Those that are ending still hold what they hold. Pods
 * come with what their classes add. Resources: `pkg/kubelet/lifecycle/predicate.go` (1.36).
 */
export function admitPod(pod: Pod, neighbours: readonly Neighbour[], limits: HostLimits): Admission {
  const wanted = heldPorts(pod)
  for (const neighbour of neighbours) {
    for (const held of heldPorts(neighbour.pod)) {
      if (!wanted.some((want) => clash(want, held))) continue
      const message = `host port ${held.port}/${held.protocol} is held by pod ${neighbour.key}`
      return { kind: 'blocked', reason: 'Blocked', message }
    }
  }
  const living = neighbours.filter(({ hasEnded }) => hasEnded !== true)
  if (living.length >= limits.maxPods) {
    const message = `Node didn't have enough resource: pods, requested: 1, used: ${living.length}, capacity: ${limits.maxPods}`
    return { kind: 'rejected', reason: 'OutOfpods', message }
  }
  const requested = podRequests(pod.spec, 'with-overhead')
  for (const [name, capacity] of capacities(requested, limits)) {
    const wanted = requested[name] ?? '0'
    if (compareQuantities(wanted, '0') <= 0) continue
    const held = living.map((other) => podRequests(other.pod.spec, 'with-overhead')[name] ?? '0')
    const used = addQuantities('0', ...held)
    if (compareQuantities(addQuantities(used, wanted), capacity) <= 0) continue
    const count = name === 'cpu' ? quantityMilliValue : quantityValue
    const message = `Node didn't have enough resource: ${name}, requested: ${count(wanted)}, used: ${count(used)}, capacity: ${count(capacity)}`
    return { kind: 'rejected', reason: `OutOf${name}`, message }
  }
  return { kind: 'admitted' }
}
