import type * as cri from '../../../cri-types/cri-v1.ts'
import type {
  StarvedResource,
  ContainerConsumption,
  EvictionCandidate,
} from '../../../decide/node/judge-pressure.ts'
import type { Pod } from '../../../pod/schema/pod-schema.ts'
import { isCritical, containerRequests, podRequests } from '../../../pod/schema/pod-resources.ts'
import type { ResourceList } from '../../../pod/schema/pod-resources.ts'
import type { PodRef, PodUid } from '../../../pod/values/ids.ts'
import { quantityValue } from '../../../pod/values/quantity.ts'
import { labelKeys } from '../../../translate/identity.ts'

/** The disk usage of a directory. */
export interface DiskUsage {
  readonly bytes: number
  readonly inodes: number
}

export interface PodMeter {
  readonly listContainerStats: (signal: AbortSignal) => Promise<readonly cri.ContainerStats[]>
  readonly listPodStats: (signal: AbortSignal) => Promise<readonly cri.PodSandboxStats[]>
  /** By the pod's cgroup; undefined without one. */
  readonly podMemoryBytes: (pod: PodRef, spec: Pod['spec']) => number | undefined
  readonly logDirectory: (pod: PodRef, container: string) => string
  /** The pod's volumes that are on the node's disk and are removed with it. */
  readonly volumeDirectories: (pod: PodRef, spec: Pod['spec']) => readonly string[]
  readonly measureDirectory: (path: string) => Promise<DiskUsage>
}

/**
 * The disk that is short: `node` holds logs and volumes, `image` images and writable layers; `both` where they are one.
 */
export type StarvedDisk = 'node' | 'image' | 'both'

/**
 * What pods use of a resource, as the kubelet counts it (`pkg/kubelet/eviction/helpers.go`, podDiskUsage, 1.36), but
 * for hostPath volumes, whose data would stay. Pods that can't be measured are left out. Throws the runtime's errors.
 */
export async function measurePods(
  meter: PodMeter,
  pods: readonly { readonly ref: PodRef; readonly pod: Pod }[],
  { resource, disk }: { readonly resource: StarvedResource; readonly disk: StarvedDisk },
  signal: AbortSignal,
): Promise<readonly EvictionCandidate[]> {
  const isDisk = resource === 'ephemeral-storage' || resource === 'inodes'
  const stats = resource === 'pids' ? [] : await meter.listContainerStats(signal)
  const wholes = isDisk ? new Map<PodUid, number>() : await measureWholes(meter, resource, signal)
  const candidates: EvictionCandidate[] = []
  for (const { ref, pod } of pods) {
    signal.throwIfAborted()
    const own = stats.filter(({ attributes }) => attributes?.labels[labelKeys.podUid] === ref.uid)
    const used =
      resource === 'memory'
        ? // What a container that is gone has written to a volume in memory is the pod's.
          Math.max(
            sum(own.map((each) => memoryOf(each))),
            wholes.get(ref.uid) ?? meter.podMemoryBytes(ref, pod.spec) ?? 0,
          )
        : wholes.get(ref.uid)
    if (!isDisk) {
      candidates.push(describe(ref, pod, { resource, used, containers: own, logs: new Map() }))
      continue
    }
    const unit = resource === 'inodes' ? 'inodes' : 'bytes'
    const logs = new Map<string, DiskUsage>()
    const volumes: (DiskUsage | undefined)[] = []
    if (disk !== 'image') {
      for (const { name } of [...pod.spec.containers, ...pod.spec.initContainers]) {
        const usage = await measureIfPossible(meter, meter.logDirectory(ref, name))
        if (usage !== undefined) logs.set(name, usage)
      }
      for (const path of meter.volumeDirectories(ref, pod.spec))
        volumes.push(await measureIfPossible(meter, path))
    }
    const layers = disk === 'node' ? [] : own.map((each) => layerOf(each, unit))
    const rest = [...logs.values(), ...volumes].map((usage) => usage?.[unit])
    candidates.push(describe(ref, pod, { resource, used: sum([...layers, ...rest]), containers: own, logs }))
  }
  return candidates
}

/** An unreadable directory doesn't affect the others. */
async function measureIfPossible(meter: PodMeter, path: string): Promise<DiskUsage | undefined> {
  try {
    return await meter.measureDirectory(path)
  } catch {
    // It counts as nothing: other pods are evicted first, and one of them must be.
    return undefined
  }
}

/** By pod: its processes, or its memory. Some runtimes don't report that, and none does for a pod whose shim hangs. */
async function measureWholes(
  meter: PodMeter,
  resource: StarvedResource,
  signal: AbortSignal,
): Promise<ReadonlyMap<PodUid, number>> {
  const stats = await meter.listPodStats(signal).catch((error: unknown) => {
    if (resource === 'pids') throw error
    return []
  })
  return new Map(
    stats.flatMap(({ attributes, linux }) => {
      const uid = attributes?.metadata?.uid
      const amount =
        resource === 'pids' ? linux?.process?.processCount?.value : linux?.memory?.workingSetBytes?.value
      return uid === undefined || amount === undefined ? [] : [[uid, amount] as const]
    }),
  )
}

interface Measured {
  readonly resource: StarvedResource
  readonly used: number | undefined
  readonly containers: readonly cri.ContainerStats[]
  readonly logs: ReadonlyMap<string, DiskUsage>
}

function describe({ namespace, name }: PodRef, pod: Pod, measured: Measured): EvictionCandidate {
  const { spec } = pod
  const { resource, used, containers, logs } = measured
  const specs = [...spec.containers, ...spec.initContainers]
  return {
    key: `${namespace}/${name}`,
    name,
    priority: spec.priority ?? 0,
    isCritical: isCritical(spec),
    used: used === undefined ? {} : { [resource]: used },
    requested: amounts(podRequests(spec, 'with-overhead')),
    podLevelMemory: spec.resources?.requests['memory'] !== undefined,
    containers: containers.flatMap<ContainerConsumption>((stats) => {
      const container = specs.find((one) => one.name === stats.attributes?.labels[labelKeys.containerName])
      if (container === undefined) return []
      return [
        {
          name: container.name,
          memoryBytes: memoryOf(stats),
          diskBytes: sum([layerOf(stats, 'bytes'), logs.get(container.name)?.bytes]),
          requests: amounts(containerRequests(container)),
        },
      ]
    }),
  }
}

function layerOf({ writableLayer }: cri.ContainerStats, unit: 'bytes' | 'inodes'): number | undefined {
  return (unit === 'bytes' ? writableLayer?.usedBytes : writableLayer?.inodesUsed)?.value
}

function amounts(list: ResourceList): EvictionCandidate['requested'] {
  const names = ['memory', 'ephemeral-storage'] as const
  return Object.fromEntries(
    names.flatMap((name) => (list[name] === undefined ? [] : [[name, quantityValue(list[name])] as const])),
  )
}

function memoryOf({ memory }: cri.ContainerStats): number | undefined {
  return memory?.workingSetBytes?.value ?? memory?.usageBytes?.value
}

function sum(numbers: readonly (number | undefined)[]): number {
  return numbers.reduce<number>((total, number) => total + (number ?? 0), 0)
}
