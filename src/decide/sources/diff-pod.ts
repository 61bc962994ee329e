import { canonicalJson, sameData } from '../../base/json.ts'
import { isResizableInit, resizableNames, computeQosClass } from '../../pod/schema/pod-resources.ts'
import type { ResourceLists } from '../../pod/schema/pod-resources.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import { withPodResources, withResizable } from '../plan/resize.ts'

/** The effect of a new manifest on the existing pod. */
export type PodDiff = 'same' | 'in-place' | 'replace'

/**
 * Compares two manifests of one pod, both with their defaults. Kubernetes lets a container's image, its cpu and memory
 * and those of the pod, labels, annotations, tolerations and activeDeadlineSeconds change in place, and ephemeral
 * containers be added (`pkg/apis/core/validation` ValidatePodUpdate, ValidatePodResize and
 * ValidatePodEphemeralContainersUpdate, Kubernetes 1.36); anything else, including a changed or removed ephemeral
 * container, makes a new pod. imagePullPolicy may change with the image: its default follows the tag, and it acts only
 * when a container starts.
 */
export function diffPod(before: Pod, after: Pod): PodDiff {
  if (sameData(before, after)) return 'same'
  const mayResize = isResize(before, after)
  const { ephemeralContainers: debuggers } = before.spec
  const known = (container: ContainerSpec): boolean => debuggers.some(({ name }) => name === container.name)
  const frozen = (pod: Pod): string =>
    canonicalJson({
      ...(mayResize ? withPodResources(pod.spec, { limits: {}, requests: {} }) : pod.spec),
      activeDeadlineSeconds: undefined,
      tolerations: undefined,
      // Of no effect.
      preemptionPolicy: undefined,
      initContainers: pod.spec.initContainers.map((c) => frozenContainer(c, mayResize && isResizableInit(c))),
      containers: pod.spec.containers.map((c) => frozenContainer(c, mayResize)),
      ephemeralContainers: pod.spec.ephemeralContainers.filter((c) => known(c)).toSorted(byName),
    })
  return frozen(before) === frozen(after) ? 'in-place' : 'replace'
}

/**
 * Whether a manifest makes a new pod. As with static pods of the kubelet, any change of the spec does where the pod can
 * no longer change in place: it was rejected, has ended or is terminating.
 */
export function makesNewPod(before: Pod, after: Pod, isPastChange: boolean): boolean {
  return (isPastChange && !sameData(before.spec, after.spec)) || diffPod(before, after) === 'replace'
}

function byName(a: ContainerSpec, b: ContainerSpec): number {
  return a.name < b.name ? -1 : 1
}

function frozenContainer(container: ContainerSpec, mayResize: boolean): object {
  const resources = mayResize
    ? withResizable(container.resources, { limits: {}, requests: {} })
    : container.resources
  return { ...container, resources, image: undefined, imagePullPolicy: undefined }
}

/**
 * Whether cpu and memory may change as they do, of containers and of the pod: the QoS class stays, and nothing that was
 * set is removed.
 */
function isResize(before: Pod, after: Pod): boolean {
  if (computeQosClass(before.spec) !== computeQosClass(after.spec)) return false
  if (before.spec.resources !== undefined && !keepsAll(before.spec.resources, after.spec.resources))
    return false
  const all = (pod: Pod): readonly ContainerSpec[] => [...pod.spec.initContainers, ...pod.spec.containers]
  const successors = new Map(all(after).map((container) => [container.name, container.resources]))
  return all(before).every(({ name, resources }) => keepsAll(resources, successors.get(name)))
}

/** Whether each limit and request of cpu and memory is still set. */
function keepsAll(before: ResourceLists, after: ResourceLists | undefined): boolean {
  return (['limits', 'requests'] as const).every((list) =>
    resizableNames.every(
      (resource) => before[list][resource] === undefined || after?.[list][resource] !== undefined,
    ),
  )
}
