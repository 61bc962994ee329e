/*
 * Whether a pod fits on the host beside the others: ports, claims for one pod alone, and what all together may request.
 */
import { PoddError } from '../../base/errors.ts'
import type { ContainerPort } from '../../pod/schema/container-schema.ts'
import type { FieldPath } from '../../pod/schema/issues.ts'
import { isExtendedResource, podRequests } from '../../pod/schema/pod-resources.ts'
import type { PodClasses, ResourceList } from '../../pod/schema/pod-resources.ts'
import type { Pod, PodSpec } from '../../pod/schema/pod-schema.ts'
import {
  formatQuantity,
  quantityMilliValue,
  quantityNanos,
  quantityValue,
} from '../../pod/values/quantity.ts'

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

/** What the host gives pods together. */
export interface HostLimits {
  readonly maxPods: number
  /** What all pods together may request; a resource that isn't in it is unlimited. */
  readonly allocatable?: ResourceList
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
  const shortage = tally.findLastingShortage(wanted, limits) ?? tally.findPresentShortage(wanted, limits)
  return shortage === undefined
    ? { kind: 'admitted' }
    : {
        kind: 'blocked',
        reason: 'Blocked',
        message: shortage.message,
        at: requestPath(pod, shortage.resource),
      }
}

/** Names the first neighbour that has one of those ports. */
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

/** The resources of the host that a pod holds exclusively. */
export interface HostShares {
  readonly ports: readonly HostPort[]
  /** By the resource's name, in billionths. */
  readonly requests: ReadonlyMap<string, bigint>
}

interface HostPort {
  readonly ip: string
  readonly port: number
  readonly protocol: ContainerPort['protocol']
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

/** Whether two pods can't have these ports together. */
function portsClash(a: HostPort, b: HostPort): boolean {
  if (a.port !== b.port || a.protocol !== b.protocol) return false
  return a.ip === b.ip || anyAddress(a.ip) || anyAddress(b.ip)
}

const anyAddress = (ip: string): boolean => ip === '' || ip === '0.0.0.0' || ip === '::'

/** The sum of several pods' requests. */
interface SharesTotal {
  readonly pods: number
  readonly requests: ReadonlyMap<string, bigint>
}

export function totalShares(all: readonly HostShares[]): SharesTotal {
  const total = new Sum()
  for (const shares of all) total.add(shares)
  return total
}

/** Of each resource the smaller amount of both forms of a pod: it has that much whichever of them runs. */
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

/** A resource of which the host has too little for a pod. */
export interface Shortage {
  /** `pods` for the number of pods. */
  readonly resource: string
  /** The missing amount: billionths, or pods. */
  readonly missing: bigint
  readonly message: string
}

/**
 * What is short on the host for a pod beside `others`; undefined where there is room. Only resources that the pod requests
 * count (`pkg/kubelet/lifecycle/predicate.go`, 1.36). A huge-page size or extended resource that the host doesn't have
 * counts as 0, as there is no scheduler.
 */
export function findShortage(
  wanted: HostShares,
  others: SharesTotal,
  { maxPods, allocatable }: HostLimits,
): Shortage | undefined {
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

/** See `Neighbour`. */
type TalliedPod = Omit<Neighbour, 'key'>

/**
 * What pods have of the host together. Pods that are admitted one after another are added to it, and one that it has is
 * taken out while it is judged, so that each costs the same however many there are.
 */
export class HostTally {
  /** By port and protocol. */
  readonly #ports = new Map<string, HostPort[]>()
  readonly #lasting = new Sum()
  readonly #present = new Sum()

  constructor(neighbours: Iterable<TalliedPod>) {
    for (const neighbour of neighbours) this.add(neighbour)
  }

  add(pod: TalliedPod): void {
    const shares = hostShares(pod.pod)
    for (const port of shares.ports) {
      const key = portKey(port)
      const held = this.#ports.get(key)
      if (held === undefined) this.#ports.set(key, [port])
      else held.push(port)
    }
    this.#count(pod, shares, 1)
  }

  /** @param pod as it was added */
  remove(pod: TalliedPod): void {
    const shares = hostShares(pod.pod)
    for (const port of shares.ports) {
      const held = this.#ports.get(portKey(port)) ?? []
      const at = held.findIndex(({ ip }) => ip === port.ip)
      if (at !== -1) held.splice(at, 1)
    }
    this.#count(pod, shares, -1)
  }

  #count({ hasEnded, isEnding, isPromised, next }: TalliedPod, shares: HostShares, times: 1 | -1): void {
    if (hasEnded === true) return
    if (isEnding !== true)
      this.#lasting.add(next === undefined ? shares : smallerShares(shares, hostShares(next)), times)
    if (isPromised !== true) this.#present.add(shares, times)
  }

  /** Whether a port that a pod requests is held. */
  holdsPortOf({ ports }: HostShares): boolean {
    return ports.some(
      (port) => this.#ports.get(portKey(port))?.some((held) => portsClash(port, held)) === true,
    )
  }

  /** What is short for a pod even when those that are ending are gone. */
  findLastingShortage(wanted: HostShares, limits: HostLimits): Shortage | undefined {
    return findShortage(wanted, this.#lasting, limits)
  }

  /** What is short for a pod as things are. */
  findPresentShortage(wanted: HostShares, limits: HostLimits): Shortage | undefined {
    return findShortage(wanted, this.#present, limits)
  }
}

/** A sum of shares that grows, and shrinks by what was added. */
class Sum implements SharesTotal {
  pods = 0
  readonly requests = new Map<string, bigint>()

  add({ requests }: HostShares, times: 1 | -1 = 1): void {
    this.pods += times
    for (const [name, amount] of requests)
      this.requests.set(name, (this.requests.get(name) ?? 0n) + amount * BigInt(times))
  }
}

function portKey({ port, protocol }: HostPort): string {
  return `${port}/${protocol}`
}

/** The machine's capacity. */
export interface HostCapacity {
  readonly cpus: number
  readonly memoryBytes: number
  /** Set aside by the kernel, by the size of a page as Kubernetes names it (`2Mi`), in bytes. */
  readonly hugePagesBytes: ReadonlyMap<string, number>
}

/**
 * What all pods together may request: the machine without what is kept for the system and for podd
 * itself (`pkg/kubelet/cm/node_container_manager_linux.go`, 1.36). Huge pages are no memory for anything
 * else.
 */
export function computeAllocatable(
  capacity: HostCapacity,
  reserved: readonly ResourceList[],
): ResourceList & { readonly cpu: string; readonly memory: string } {
  const total = (name: string, count: (quantity: string) => number): number =>
    reserved.reduce((sum, list) => sum + count(list[name] ?? '0'), 0)
  const milliCpu = capacity.cpus * 1000 - total('cpu', quantityMilliValue)
  const hugePages = [...capacity.hugePagesBytes]
  const hugeBytes = hugePages.reduce((sum, [, bytes]) => sum + bytes, 0)
  const memoryBytes = capacity.memoryBytes - hugeBytes - total('memory', quantityValue)
  return {
    ...Object.fromEntries(hugePages.map(([size, bytes]) => [`hugepages-${size}`, String(bytes)])),
    cpu: `${Math.max(0, milliCpu)}m`,
    memory: String(Math.max(0, memoryBytes)),
  }
}

type Blocked = Extract<Admission, { readonly kind: 'blocked' }>

/**
 * Why a pod has to wait for another one that uses the same claim, whose access mode is ReadWriteOncePod; undefined
 * where it doesn't. A pod that replaces one of the same name does not wait for it here: it starts when that one has
 * ended (`pkg/scheduler/framework/plugins/volumerestrictions` and `pkg/kubelet/volumemanager/cache`, AddPodToVolume,
 * 1.36).
 * @param isExclusive whether the claim of that name, in the pod's namespace, is for one pod alone
 */
export function exclusiveClaimProblem(
  pod: { readonly metadata: { readonly name: string; readonly namespace: string }; readonly spec: PodSpec },
  neighbours: Iterable<Neighbour>,
  isExclusive: (name: string) => boolean,
): Blocked | undefined {
  const { name: ownName, namespace } = pod.metadata
  const claims = claimsOf(pod.spec).filter((name) => isExclusive(name))
  for (const { key, pod: other } of claims.length === 0 ? [] : neighbours) {
    if (other.metadata.namespace !== namespace || other.metadata.name === ownName) continue
    const shared = claimsOf(other.spec).find((name) => claims.includes(name))
    if (shared === undefined) continue
    const message = `persistentvolumeclaim "${shared}" uses the ReadWriteOncePod access mode and is already in use by pod ${key}`
    const volume = pod.spec.volumes.findIndex(
      ({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === shared,
    )
    const at = ['spec', 'volumes', volume, 'persistentVolumeClaim', 'claimName']
    return { kind: 'blocked', reason: 'Blocked', message, at }
  }
  return undefined
}

/** Names of the claims that a pod uses. */
export function claimsOf({ volumes }: PodSpec): readonly string[] {
  return volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? [])
}
