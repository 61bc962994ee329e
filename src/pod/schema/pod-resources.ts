/* What a pod's spec says of resources: requests and limits in sum, QoS class, priority, and what its classes add. */
import { addQuantities, compareQuantities } from '../values/quantity.ts'
import type { ContainerSpec, ResourceRequirements } from './container-schema.ts'
import type { Pod, PodSpec } from './pod-schema.ts'

/** Quantities by the resource's name: `cpu`, `memory`, `hugepages-2Mi`. */
export type ResourceList = Readonly<Record<string, string>>

export interface ResourceLists {
  readonly limits: ResourceList
  readonly requests: ResourceList
}

type ResourcedContainer = Pick<ContainerSpec, 'name' | 'resources' | 'restartPolicy'>
type ResourcedSpec = Pick<PodSpec, 'resources' | 'overhead'> & {
  readonly containers: readonly ResourcedContainer[]
  readonly initContainers: readonly ResourcedContainer[]
}

/**
 * The requests of the whole pod: the sum of its main containers and sidecars, or its largest init container with the
 * sidecars started before it, whichever is more; pod-level requests take precedence
 * (`k8s.io/component-helpers/resource/helpers.go`, PodRequests, 1.36).
 */
export function podRequests(
  spec: ResourcedSpec,
  overhead: 'with-overhead' | 'without-overhead',
): ResourceList {
  const total = {
    ...aggregate(spec, containerRequests),
    ...spec.resources?.limits,
    ...spec.resources?.requests,
  }
  return overhead === 'with-overhead' ? add(total, spec.overhead ?? {}) : total
}

/** As podRequests, for limits; overhead is only added to an existing limit. */
export function podLimits(spec: ResourcedSpec, overhead: 'with-overhead' | 'without-overhead'): ResourceList {
  const total = { ...aggregate(spec, ({ resources }) => resources.limits), ...spec.resources?.limits }
  if (overhead === 'without-overhead') return total
  const limited = Object.entries(spec.overhead ?? {}).filter(([name]) => isPositive(total[name]))
  return add(total, Object.fromEntries(limited))
}

/** A container's requests, with limits in place of absent requests. */
export function containerRequests({ resources }: Pick<ContainerSpec, 'resources'>): ResourceList {
  return { ...resources.limits, ...resources.requests }
}

function aggregate(spec: ResourcedSpec, of: (container: ResourcedContainer) => ResourceList): ResourceList {
  const running = new Map<string, string>()
  for (const container of spec.containers) addTo(running, of(container))
  const sidecars = new Map<string, string>()
  const initializing = new Map<string, string>()
  for (const container of spec.initContainers) {
    const own = of(container)
    if (container.restartPolicy === 'Always') {
      addTo(running, own)
      addTo(sidecars, own)
    }
    // For resources that the container doesn't name, the sidecars' share is already counted.
    for (const [name, amount] of Object.entries(own)) {
      const beside = sidecars.get(name)
      const isCounted = container.restartPolicy === 'Always' || beside === undefined
      const total = isCounted ? (beside ?? amount) : addQuantities(amount, beside)
      initializing.set(name, larger(initializing.get(name), total))
    }
  }
  for (const [name, amount] of initializing) running.set(name, larger(running.get(name), amount))
  return Object.fromEntries(running)
}

function addTo(sum: Map<string, string>, list: ResourceList): void {
  for (const [name, amount] of Object.entries(list)) {
    const before = sum.get(name)
    sum.set(name, before === undefined ? amount : addQuantities(before, amount))
  }
}

function larger(a: string | undefined, b: string): string {
  return a === undefined || compareQuantities(a, b) < 0 ? b : a
}

function add(a: ResourceList, b: ResourceList): ResourceList {
  const sum = new Map(Object.entries(a))
  addTo(sum, b)
  return Object.fromEntries(sum)
}

export function isPositive(quantity: string | undefined): quantity is string {
  return quantity !== undefined && compareQuantities(quantity, '0') > 0
}

/**
 * A container's limits, and for cpu and memory the pod's own where it has none
 * (`pkg/kubelet/util/util.go`, GetLimits, 1.36).
 */
export function boundLimits(container: ResourceList, pod: ResourceList): ResourceList {
  const bound = resizableNames.flatMap((name) => {
    const limit = isPositive(container[name]) ? container[name] : pod[name]
    return limit === undefined ? [] : [[name, limit] as const]
  })
  return { ...container, ...Object.fromEntries(bound) }
}

/**
 * Whether the cgroup of the pod is limited: by the pod itself, or because each of its containers is
 * (`pkg/kubelet/cm/helpers_linux.go`, ResourceConfigForPod, 1.36).
 */
export function isPodLimited(
  spec: Pick<PodSpec, 'containers' | 'initContainers' | 'resources'>,
  name: (typeof resizableNames)[number],
): boolean {
  // Its containers may be limited where its own resources have neither cpu nor memory.
  if (computeQosClass(spec) === 'BestEffort') return false
  if (isPositive(spec.resources?.limits[name])) return true
  return [...spec.initContainers, ...spec.containers].every(({ resources }) =>
    isPositive(resources.limits[name]),
  )
}

/**
 * One that is neither Kubernetes' own nor of its groups: a device, say (`pkg/apis/core/v1/helper`,
 * IsExtendedResourceName, 1.36).
 */
export function isExtendedResource(name: string): boolean {
  return name.includes('/') && !name.includes('kubernetes.io/') && !name.startsWith('requests.')
}

/** The resources of a running container that can be resized in place. */
export const resizableNames = ['cpu', 'memory'] as const

/** cpu and memory alone. */
export function resizableResources({ limits, requests }: ResourceLists): ResourceLists {
  const only = (list: ResourceList): ResourceList =>
    Object.fromEntries(
      resizableNames.flatMap((name) => (list[name] === undefined ? [] : [[name, list[name]] as const])),
    )
  return { limits: only(limits), requests: only(requests) }
}

/**
 * Whether an init container's cpu and memory may be resized: a container that runs once can't be restarted for it
 * (`pkg/apis/core/validation` ValidatePodResize, 1.36).
 */
export function isResizableInit({ restartPolicy, resizePolicy }: ContainerSpec): boolean {
  return restartPolicy === 'Always' || resizePolicy.every((policy) => policy.restartPolicy === 'NotRequired')
}

/** Init, main and ephemeral containers, in this order. */
export function allContainers({
  initContainers,
  containers,
  ephemeralContainers,
}: PodSpec): readonly ContainerSpec[] {
  return [...initContainers, ...containers, ...ephemeralContainers]
}

/** An init container that keeps running beside the main ones. */
export function isSidecar(
  spec: { readonly initContainers: readonly { readonly name: string }[] },
  container: Pick<ContainerSpec, 'name' | 'restartPolicy'>,
): boolean {
  return (
    container.restartPolicy === 'Always' && spec.initContainers.some(({ name }) => name === container.name)
  )
}

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort'

/**
 * The class that decides cgroup placement, OOM score and eviction order. Ephemeral containers don't
 * count. Source: pkg/apis/core/v1/helper/qos (ComputePodQOS), 1.36.
 */
export function computeQosClass(
  spec: Pick<PodSpec, 'containers' | 'initContainers'> & { readonly resources?: ResourceRequirements },
): QosClass {
  const all =
    spec.resources === undefined
      ? [...spec.containers, ...spec.initContainers].map((container) => container.resources)
      : [spec.resources]
  const nothingAsked = all.every(({ requests, limits }) =>
    resizableNames.every((name) => !isPositive(requests[name]) && !isPositive(limits[name])),
  )
  if (nothingAsked) return 'BestEffort'
  const allFixed = all.every(({ requests, limits }) =>
    resizableNames.every((name) => {
      const limit = limits[name]
      return isPositive(limit) && compareQuantities(requests[name] ?? limit, limit) === 0
    }),
  )
  return allFixed ? 'Guaranteed' : 'Burstable'
}

/** The priority of system-cluster-critical (`pkg/apis/scheduling/types.go`, SystemCriticalPriority, 1.36). */
export const clusterCriticalPriority = 2_000_000_000
/** The priority of system-node-critical, from which on a pod is spared like a guaranteed one. */
export const nodeCriticalPriority = 2_000_001_000

/** Those that every cluster has (`pkg/apis/scheduling/types.go`, 1.36). */
export const systemPriorities: ReadonlyMap<string, { readonly value: number; readonly description: string }> =
  new Map([
    [
      'system-node-critical',
      { value: nodeCriticalPriority, description: 'For critical pods that must stay on their node.' },
    ],
    [
      'system-cluster-critical',
      { value: clusterCriticalPriority, description: 'For critical pods that may run on any node.' },
    ],
  ])

/** Whether a pod is critical by its priority (`pkg/kubelet/types/pod_update.go`, IsCriticalPodBasedOnPriority, 1.36). */
export function isCritical({ priority }: { readonly priority?: number | undefined }): boolean {
  return (priority ?? 0) >= clusterCriticalPriority
}

/**
 * What a pod took from its RuntimeClass and PriorityClass when it was admitted. As in Kubernetes, a class that changes
 * later changes no existing pod.
 */
export interface PodClasses {
  /** The runtime's handler; empty for its default. */
  readonly runtimeHandler: string
  readonly overhead?: ResourceList | undefined
  readonly priority?: number | undefined
}

/** The pod with what its classes add, as in an API server. */
export function withClasses(pod: Pod, classes: PodClasses | undefined): Pod {
  const { overhead, priority } = classes ?? {}
  if (overhead === undefined && priority === undefined) return pod
  const spec = { ...pod.spec, ...(overhead && { overhead }), ...(priority !== undefined && { priority }) }
  return { ...pod, spec }
}
