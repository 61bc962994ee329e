import { addQuantities, compareQuantities } from './quantity.ts'
import type { ContainerSpec } from './schema/container-schema.ts'
import type { PodSpec } from './schema/pod-schema.ts'

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

/** An init container that keeps running beside the main ones. */
export function isSidecar(
  spec: { readonly initContainers: readonly { readonly name: string }[] },
  container: Pick<ContainerSpec, 'name' | 'restartPolicy'>,
): boolean {
  return (
    container.restartPolicy === 'Always' && spec.initContainers.some(({ name }) => name === container.name)
  )
}

/** The resources that a running container can be given anew. */
export const resizableNames = ['cpu', 'memory'] as const

/** cpu and memory alone. */
export function resizableResources({ limits, requests }: ResourceLists): ResourceLists {
  const only = (list: ResourceList): ResourceList =>
    Object.fromEntries(
      resizableNames.flatMap((name) => (list[name] === undefined ? [] : [[name, list[name]] as const])),
    )
  return { limits: only(limits), requests: only(requests) }
}

/** A container's requests, a limit standing in for a request that isn't given. */
export function containerRequests({ resources }: Pick<ContainerSpec, 'resources'>): ResourceList {
  return { ...resources.limits, ...resources.requests }
}

/**
 * What the whole pod asks for: its main containers and sidecars together, or its neediest init container
 * with the sidecars started before it, whichever is more; what the pod level says comes first
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

/** As podRequests, of the limits; overhead counts only where there is a limit to be added to. */
export function podLimits(spec: ResourcedSpec, overhead: 'with-overhead' | 'without-overhead'): ResourceList {
  const total = { ...aggregate(spec, ({ resources }) => resources.limits), ...spec.resources?.limits }
  if (overhead === 'without-overhead') return total
  const limited = Object.entries(spec.overhead ?? {}).filter(([name]) => isPositive(total[name]))
  return add(total, Object.fromEntries(limited))
}

function aggregate(spec: ResourcedSpec, of: (container: ResourcedContainer) => ResourceList): ResourceList {
  let running = spec.containers.map((container) => of(container)).reduce(add, {})
  let sidecars: ResourceList = {}
  let initializing: ResourceList = {}
  for (const container of spec.initContainers) {
    const own = of(container)
    if (isSidecar(spec, container)) {
      running = add(running, own)
      sidecars = add(sidecars, own)
      initializing = max(initializing, sidecars)
    } else initializing = max(initializing, add(own, sidecars))
  }
  return max(running, initializing)
}

export function isPositive(quantity: string | undefined): quantity is string {
  return quantity !== undefined && compareQuantities(quantity, '0') > 0
}

function combine(
  a: ResourceList,
  b: ResourceList,
  both: (left: string, right: string) => string,
): ResourceList {
  const sum: Record<string, string> = { ...a }
  for (const [name, right] of Object.entries(b)) {
    const left = a[name]
    sum[name] = left === undefined ? right : both(left, right)
  }
  return sum
}

function add(a: ResourceList, b: ResourceList): ResourceList {
  return combine(a, b, (left, right) => addQuantities(left, right))
}

function max(a: ResourceList, b: ResourceList): ResourceList {
  return combine(a, b, (left, right) => (compareQuantities(left, right) < 0 ? right : left))
}
