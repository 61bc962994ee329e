/* Requests and limits as CRI and cgroups have them: of a container, the sandbox, and the levels above. */
import type * as cri from '../cri-types/cri-v1.ts'
import {
  boundLimits,
  computeQosClass,
  containerRequests,
  isCritical,
  isPodLimited,
  isSidecar,
  nodeCriticalPriority,
  podLimits,
  podRequests,
} from '../pod/schema/pod-resources.ts'
import { quantityMilliValue, quantityValue } from '../pod/values/quantity.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { PodSpec } from '../pod/schema/pod-schema.ts'
import type { ResourceList } from '../pod/schema/pod-resources.ts'

/** The host facts for translating a pod's resources. */
export interface ResourceFacts {
  readonly cgroupVersion: 1 | 2
  readonly memoryCapacityBytes: number
  /** The lowest oom_score_adj a container may be given: -1000 with CAP_SYS_RESOURCE. */
  readonly minOomScoreAdj: number
  /** Whether CPU limits are enforced (the kubelet's cpuCFSQuota). */
  readonly cpuCfsQuota: boolean
  readonly cpuCfsQuotaPeriodUs: number
  /** The kernel counts swap for cgroups (memory.swap.max, or memory.memsw on version 1). */
  readonly swapController: boolean
  /** The host's swap that burstable pods share (LimitedSwap); 0: no pod swaps. */
  readonly swapBytes: number
  /** Whether an OOM kill ends the whole container (memory.oom.group, version 2 only). */
  readonly oomKillsGroup: boolean
  /** The host's huge page sizes as cgroups name them: `2MB`, `1GB`. */
  readonly hugePageSizes: readonly string[]
}

const minShares = 2
const maxShares = 262_144
const minQuotaUs = 1000

/** CPU requests in cgroup v1's shares, which CRI uses for both versions (`cm/helpers_linux.go`, 1.36). */
export function milliCpuToShares(milliCpu: number): number {
  return Math.min(Math.max(Math.floor((milliCpu * 1024) / 1000), minShares), maxShares)
}

/** Microseconds of CPU per period; 0 for no limit. */
export function milliCpuToQuotaUs(milliCpu: number, periodUs: number): number {
  return milliCpu === 0 ? 0 : Math.max(Math.floor((milliCpu * periodUs) / 1000), minQuotaUs)
}

/**
 * cgroup v2's weight for v1's shares, as runc and the kubelet convert (`opencontainers/cgroups`,
 * ConvertCPUSharesToCgroupV2Value).
 */
export function sharesToWeight(shares: number): number {
  return Math.floor(1 + ((shares - 2) * 9999) / 262_142)
}

function cpuAndMemory(
  requests: ResourceList,
  limits: ResourceList,
  facts: ResourceFacts,
): cri.Sent<cri.LinuxContainerResources> {
  const cpuLimitMilli = quantityMilliValue(limits['cpu'] ?? '0')
  const memoryLimitBytes = quantityValue(limits['memory'] ?? '0')
  return {
    cpuShares: milliCpuToShares(quantityMilliValue(requests['cpu'] ?? limits['cpu'] ?? '0')),
    ...(facts.cpuCfsQuota && {
      cpuPeriod: facts.cpuCfsQuotaPeriodUs,
      cpuQuota: milliCpuToQuotaUs(cpuLimitMilli, facts.cpuCfsQuotaPeriodUs),
    }),
    ...(memoryLimitBytes !== 0 && { memoryLimitInBytes: memoryLimitBytes }),
    // An OOM kill ends the whole container, so that no part of it lingers.
    ...(facts.cgroupVersion === 2 && facts.oomKillsGroup && { unified: { 'memory.oom.group': '1' } }),
  }
}

/** `kuberuntime_container_linux.go`, generateLinuxContainerResources (1.36). */
export function containerResources(
  spec: PodSpec,
  container: ContainerSpec,
  facts: ResourceFacts,
): cri.Sent<cri.LinuxContainerResources> {
  const { requests } = container.resources
  const limits = boundLimits(container.resources.limits, spec.resources?.limits ?? {})
  const base = cpuAndMemory(requests, limits, facts)
  const oomScoreAdj = computeOomScoreAdj(spec, container, facts.memoryCapacityBytes)
  return {
    ...base,
    ...swapLimit(base, facts, swapShareBytes(spec, container, facts)),
    // Without CAP_SYS_RESOURCE it may not be lower than podd's own, and runc would fail.
    oomScoreAdj: Math.max(oomScoreAdj, facts.minOomScoreAdj),
    hugepageLimits: hugePageLimits(container.resources.limits, facts.hugePageSizes),
  }
}

/**
 * How much of the swap a container may use: under LimitedSwap, burstable pods' containers have theirs in
 * proportion to the memory that they request. One whose request is its limit, or that requests none, has
 * none, and so have critical pods (`kuberuntime_container_linux.go`, swapConfigurationHelper, 1.36).
 */
function swapShareBytes(spec: PodSpec, container: ContainerSpec, facts: ResourceFacts): number {
  const request = quantityValue(container.resources.requests['memory'] ?? '0')
  const limit = quantityValue(container.resources.limits['memory'] ?? '0')
  const eligible =
    computeQosClass(spec) === 'Burstable' && !isCritical(spec) && request > 0 && request !== limit
  return eligible ? Math.floor((request / facts.memoryCapacityBytes) * facts.swapBytes) : 0
}

function swapLimit(
  base: cri.Sent<cri.LinuxContainerResources>,
  facts: ResourceFacts,
  swapBytes: number,
): cri.Sent<cri.LinuxContainerResources> {
  if (!facts.swapController) return {}
  // Version 1 counts memory and swap together: the same number for both leaves none for swap.
  if (facts.cgroupVersion === 1) return { memorySwapLimitInBytes: base.memoryLimitInBytes ?? 0 }
  return { unified: { ...base.unified, 'memory.swap.max': String(swapBytes) } }
}

/** Every size the host has, 0 where the container asks for none. */
export function hugePageLimits(
  limits: ResourceList,
  hostSizes: readonly string[],
): readonly cri.Sent<cri.HugepageLimit>[] {
  const asked = new Map(
    Object.entries(limits)
      .filter(([name]) => name.startsWith('hugepages-'))
      .map(([name, limit]) => [hugePageSizeName(name.slice('hugepages-'.length)), quantityValue(limit)]),
  )
  return hostSizes.map((pageSize) => ({ pageSize, limit: asked.get(pageSize) ?? 0 }))
}

/** `2Mi` as cgroups write it: `2MB`. */
export function hugePageSizeName(quantity: string): string {
  let size = quantityValue(quantity)
  for (const unit of ['B', 'KB', 'MB', 'GB', 'TB']) {
    if (size < 1024 || size % 1024 !== 0) return `${size}${unit}`
    size /= 1024
  }
  return `${size}PB`
}

/**
 * The resources of the pod as a whole, as the sandbox gets them, for runtimes that size a virtual machine by it
 * (`kuberuntime_sandbox_linux.go`, 1.36).
 */
export function sandboxResources(
  spec: PodSpec,
  facts: ResourceFacts,
): Pick<cri.Sent<cri.LinuxPodSandboxConfig>, 'resources' | 'overhead'> {
  const { overhead } = spec
  const [requests, limits] = [podRequests(spec, 'without-overhead'), podLimits(spec, 'without-overhead')]
  return {
    resources: cpuAndMemory(requests, limits, facts),
    overhead: overhead === undefined ? {} : cpuAndMemory(overhead, overhead, facts),
  }
}

/** The settings of a pod's own cgroup; undefined means unlimited. */
export interface PodCgroupResources {
  readonly cpuShares: number
  readonly cpuQuotaUs: number | undefined
  readonly cpuPeriodUs: number
  readonly memoryLimitBytes: number | undefined
  readonly pidsLimit: number | undefined
  readonly hugepageLimits: readonly { readonly pageSize: string; readonly limitBytes: number }[]
}

/** `cm/helpers_linux.go`, ResourceConfigForPod (1.36): a limit holds for the pod only if every container has one. */
export function podCgroupResources(
  spec: PodSpec,
  facts: ResourceFacts,
  pidsLimit: number | undefined,
): PodCgroupResources {
  const requests = podRequests(spec, 'with-overhead')
  const limits = podLimits(spec, 'with-overhead')
  const cpuLimitMilli = quantityMilliValue(limits['cpu'] ?? '0')
  const qosClass = computeQosClass(spec)
  return {
    cpuShares:
      qosClass === 'BestEffort'
        ? minShares
        : milliCpuToShares(quantityMilliValue(requests['cpu'] ?? limits['cpu'] ?? '0')),
    cpuQuotaUs:
      facts.cpuCfsQuota && isPodLimited(spec, 'cpu')
        ? milliCpuToQuotaUs(cpuLimitMilli, facts.cpuCfsQuotaPeriodUs)
        : undefined,
    cpuPeriodUs: facts.cpuCfsQuotaPeriodUs,
    memoryLimitBytes: isPodLimited(spec, 'memory') ? quantityValue(limits['memory'] ?? '0') : undefined,
    pidsLimit,
    hugepageLimits: hugePageLimits(limits, facts.hugePageSizes).map(({ pageSize = '', limit = 0 }) => ({
      pageSize,
      limitBytes: limit,
    })),
  }
}

/** The larger of both, for the time in which a pod's containers change from one to the other. */
export function largerPodResources(a: PodCgroupResources, b: PodCgroupResources): PodCgroupResources {
  const larger = (x: number | undefined, y: number | undefined): number | undefined =>
    x === undefined || y === undefined ? undefined : Math.max(x, y)
  return {
    ...b,
    cpuShares: Math.max(a.cpuShares, b.cpuShares),
    cpuQuotaUs: larger(a.cpuQuotaUs, b.cpuQuotaUs),
    memoryLimitBytes: larger(a.memoryLimitBytes, b.memoryLimitBytes),
  }
}

/** What a pod adds to the CPU requests of the burstable pods, in thousandths of a CPU. */
export function burstableMilliCpu(spec: PodSpec): number {
  if (computeQosClass(spec) !== 'Burstable') return 0
  return quantityMilliValue(podRequests(spec, 'with-overhead')['cpu'] ?? '0')
}

const guaranteed = -997
const bestEffort = 1000

/**
 * How readily the kernel kills a container when memory runs out, from -1000 (never) to 1000 (first)
 * (`pkg/kubelet/qos/policy.go`, GetContainerOOMScoreAdjust, 1.36).
 * @param memoryCapacityBytes the host's memory
 */
export function computeOomScoreAdj(
  spec: PodSpec,
  container: ContainerSpec,
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

function isNodeCritical({ priority, priorityClassName }: PodSpec): boolean {
  return priorityClassName === 'system-node-critical' || (priority ?? 0) >= nodeCriticalPriority
}

/** Each container's part of what the pod as a whole requests beyond its containers (remainingPodMemReqPerContainer). */
function unassignedShareBytes(spec: PodSpec): number {
  const { resources, initContainers, containers } = spec
  const podBytes = quantityValue(resources?.requests['memory'] ?? '0')
  if (podBytes === 0) return 0
  const askedBytes = quantityValue(
    podRequests({ initContainers, containers }, 'without-overhead')['memory'] ?? '0',
  )
  return Math.trunc((podBytes - askedBytes) / (containers.length + initContainers.length))
}

function memoryRequestBytes(container: ContainerSpec): number {
  return quantityValue(containerRequests(container)['memory'] ?? '0')
}

function scoreOf(requestBytes: number, capacityBytes: number): number {
  return 1000 - Math.floor((1000 * requestBytes) / capacityBytes)
}
