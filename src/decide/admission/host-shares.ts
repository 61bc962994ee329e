import { isExtendedResource, podRequests } from '../../pod/schema/pod-resources.ts'
import type { ResourceList } from '../../pod/schema/pod-resources.ts'
import {
  formatQuantity,
  quantityMilliValue,
  quantityNanos,
  quantityValue,
} from '../../pod/values/quantity.ts'
import type { ContainerPort } from '../../pod/schema/container-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'

/** The resources of the host that a pod holds exclusively. */
export interface HostShares {
  readonly ports: readonly HostPort[]
  /** By the resource's name, in billionths. */
  readonly requests: ReadonlyMap<string, bigint>
}

export interface HostPort {
  readonly ip: string
  readonly port: number
  readonly protocol: ContainerPort['protocol']
}

/** What the host gives pods; see allocatable.ts. */
export interface HostLimits {
  readonly maxPods: number
  /** What all pods together may request; a resource that isn't in it is unlimited. */
  readonly allocatable?: ResourceList
}

/** A resource of which the host lacks some. */
export interface RoomLack {
  /** `pods` for the number of pods. */
  readonly resource: string
  /** The missing amount: billionths, or pods. */
  readonly missing: bigint
  readonly message: string
}

/** Takes a pod with what its classes add. */
export function hostShares(pod: Pod): HostShares {
  const { initContainers, containers } = pod.spec
  const ports = [...initContainers, ...containers].flatMap((container) =>
    container.ports.flatMap(({ hostPort, hostIP, protocol }) =>
      hostPort === undefined || hostPort === 0 ? [] : [{ ip: hostIP ?? '', port: hostPort, protocol }],
    ),
  )
  const requests = Object.entries(podRequests(pod.spec, 'with-overhead'))
  return { ports, requests: new Map(requests.map(([name, quantity]) => [name, quantityNanos(quantity)])) }
}

/** The first of the pod's ports that another pod holds. */
export function findPortClash(wanted: HostShares, held: HostShares): HostPort | undefined {
  return held.ports.find((port) => wanted.ports.some((want) => portsClash(want, port)))
}

const anyAddress = (ip: string): boolean => ip === '' || ip === '0.0.0.0' || ip === '::'

/** Whether two pods can't have these ports together. */
export function portsClash(a: HostPort, b: HostPort): boolean {
  if (a.port !== b.port || a.protocol !== b.protocol) return false
  return a.ip === b.ip || anyAddress(a.ip) || anyAddress(b.ip)
}

/** The sum of several pods' requests. */
export interface SharesTotal {
  readonly pods: number
  readonly requests: ReadonlyMap<string, bigint>
}

export function totalShares(all: readonly HostShares[]): SharesTotal {
  const requests = new Map<string, bigint>()
  for (const { requests: own } of all)
    for (const [name, amount] of own) requests.set(name, (requests.get(name) ?? 0n) + amount)
  return { pods: all.length, requests }
}

/** The shares with the larger amount of each resource from both forms of the pod. */
export function smallerShares({ ports, requests }: HostShares, other: HostShares): HostShares {
  const least = [...requests].map(([name, amount]) => {
    const next = other.requests.get(name) ?? 0n
    return [name, next < amount ? next : amount] as const
  })
  return { ports, requests: new Map(least) }
}

/** A total without one of its pods. */
export function withoutShares({ pods, requests }: SharesTotal, { requests: own }: HostShares): SharesTotal {
  const left = [...requests].map(([name, amount]) => [name, amount - (own.get(name) ?? 0n)] as const)
  return { pods: pods - 1, requests: new Map(left) }
}

/**
 * What the host lacks for a pod beside `others`; undefined where there is room. Only resources that the pod requests
 * count (`pkg/kubelet/lifecycle/predicate.go`, 1.36). A huge-page size or extended resource that the host doesn't have
 * counts as 0, as there is no scheduler.
 */
export function findRoomLack(
  wanted: HostShares,
  others: SharesTotal,
  { maxPods, allocatable }: HostLimits,
): RoomLack | undefined {
  if (others.pods >= maxPods) {
    const message = `Node didn't have enough resource: pods, requested: 1, used: ${others.pods}, capacity: ${maxPods}`
    return { resource: 'pods', missing: BigInt(others.pods + 1 - maxPods), message }
  }
  if (allocatable === undefined) return undefined
  const unknown = [...wanted.requests.keys()].filter(
    (name) => (name.startsWith('hugepages-') || isExtendedResource(name)) && allocatable[name] === undefined,
  )
  for (const resource of [...Object.keys(allocatable), ...unknown]) {
    const requested = wanted.requests.get(resource) ?? 0n
    if (requested <= 0n) continue
    const used = others.requests.get(resource) ?? 0n
    const capacity = quantityNanos(allocatable[resource] ?? '0')
    if (used + requested <= capacity) continue
    const [want, have, limit] = [requested, used, capacity].map((nanos) => inUnits(resource, nanos))
    const message = `Node didn't have enough resource: ${resource}, requested: ${want}, used: ${have}, capacity: ${limit}`
    return { resource, missing: used + requested - capacity, message }
  }
  return undefined
}

function inUnits(resource: string, nanos: bigint): number {
  const text = formatQuantity({ nanos, format: 'DecimalSI' })
  return resource === 'cpu' ? quantityMilliValue(text) : quantityValue(text)
}
