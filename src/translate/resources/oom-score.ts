import {
  containerRequests,
  isSidecar,
  podRequests,
  nodeCriticalPriority,
  computeQosClass,
} from '../../pod/schema/pod-resources.ts'
import { quantityValue } from '../../pod/values/quantity.ts'
import type { ContainerView, PodSpecView } from '../spec/spec-view.ts'

const guaranteed = -997
const bestEffort = 1000

/**
 * How readily the kernel kills a container when memory runs out, from -1000 (never) to 1000 (first)
 * (`pkg/kubelet/qos/policy.go`, GetContainerOOMScoreAdjust, 1.36).
 * @param memoryCapacityBytes the host's memory
 */
export function computeOomScoreAdj(
  spec: PodSpecView,
  container: ContainerView,
  memoryCapacityBytes: number,
): number {
  const qosClass = computeQosClass(spec)
  if (isNodeCritical(spec) || qosClass === 'Guaranteed') return guaranteed
  if (qosClass === 'BestEffort') return bestEffort
  const shareBytes = unassignedShareBytes(spec)
  const score = scoreOf(memoryRequestBytes(container) + shareBytes, memoryCapacityBytes)
  // A sidecar is never killed before the containers that it serves.
  const least = isSidecar(spec, container)
    ? Math.min(...spec.containers.map((main) => memoryRequestBytes(main)))
    : 0
  const spared = least > 0 ? Math.min(score, scoreOf(least + shareBytes, memoryCapacityBytes)) : score
  return Math.min(Math.max(spared, 1000 + guaranteed), bestEffort - 1)
}

/**
 * Clamps a score to what this host allows: without CAP_SYS_RESOURCE it may not be lower than podd's own, and runc would
 * fail.
 */
export function clampOomScoreAdj(score: number, minOomScoreAdj: number): number {
  return Math.max(score, minOomScoreAdj)
}

function isNodeCritical({ priority, priorityClassName }: PodSpecView): boolean {
  return priorityClassName === 'system-node-critical' || (priority ?? 0) >= nodeCriticalPriority
}

/** Each container's part of what the pod as a whole requests beyond its containers (remainingPodMemReqPerContainer). */
function unassignedShareBytes(spec: PodSpecView): number {
  const { resources, initContainers, containers } = spec
  const podBytes = quantityValue(resources?.requests['memory'] ?? '0')
  if (podBytes === 0) return 0
  const askedBytes = quantityValue(
    podRequests({ initContainers, containers }, 'without-overhead')['memory'] ?? '0',
  )
  return Math.trunc((podBytes - askedBytes) / (containers.length + initContainers.length))
}

function memoryRequestBytes(container: ContainerView): number {
  return quantityValue(containerRequests(container)['memory'] ?? '0')
}

function scoreOf(requestBytes: number, capacityBytes: number): number {
  return 1000 - Math.floor((1000 * requestBytes) / capacityBytes)
}
