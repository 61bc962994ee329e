import { stat } from 'node:fs/promises'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { EvictionSignal } from '../../config/node-options.ts'
import type { PoddConfig } from '../../config/options.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { isStorageLimited, judgeStorage } from '../../decide/node/judge-pressure.ts'
import type {
  ContainerConsumption,
  EvictionCandidate,
  Observation,
  Observations,
  StarvedResource,
  StorageUse,
} from '../../decide/node/judge-pressure.ts'
import { readPodMemory, readPodsMemory } from '../../host/cgroups/files.ts'
import type { PodsCgroup } from '../../host/cgroups/files.ts'
import { readCgroupChoice } from '../../host/cgroups/layout.ts'
import type { CgroupChoice, CgroupSystem } from '../../host/cgroups/layout.ts'
import { readFileSystem, readMemoryAmount, readProcessAmount } from '../../host/facts/host-stats.ts'
import type { Amount } from '../../host/facts/host-stats.ts'
import {
  computeQosClass,
  containerRequests,
  isCritical,
  podRequests,
} from '../../pod/schema/pod-resources.ts'
import type { ResourceList } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodRef, PodUid } from '../../pod/values/ids.ts'
import { quantityValue } from '../../pod/values/quantity.ts'
import { labelKeys, podLogDirectory } from '../../translate/identity.ts'
import { measureDirectory } from '../../volumes/open-inside.ts'
import { volumeDirectory } from '../../volumes/pod-directory.ts'
import type { PodWorker } from '../pod/worker.ts'
import type { RuntimeAccess } from '../runtime/runtime-access.ts'
import type { NodeJob } from './node-jobs.ts'

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
type StarvedDisk = 'node' | 'image' | 'both'

/**
 * What pods use of a resource, as the kubelet counts it (`pkg/kubelet/eviction/helpers.go`, podDiskUsage, 1.36), but
 * for hostPath volumes, whose data would stay. What can't be measured of a pod counts as nothing. Throws the runtime's errors.
 */
export async function measurePods<Measured extends { readonly ref: PodRef; readonly pod: Pod }>(
  meter: PodMeter,
  pods: readonly Measured[],
  { resource, disk }: { readonly resource: StarvedResource; readonly disk: StarvedDisk },
  signal: AbortSignal,
): Promise<ReadonlyMap<Measured, EvictionCandidate>> {
  const isDisk = resource === 'ephemeral-storage' || resource === 'inodes'
  const stats = resource === 'pids' ? [] : await meter.listContainerStats(signal)
  const wholes = isDisk ? new Map<PodUid, number>() : await measureWholes(meter, resource, signal)
  const candidates = new Map<Measured, EvictionCandidate>()
  for (const measured of pods) {
    const { ref, pod } = measured
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
      candidates.set(measured, describe(ref, pod, { resource, used, containers: own, logs: new Map() }))
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
    const disks = sum([...layers, ...rest])
    candidates.set(measured, describe(ref, pod, { resource, used: disks, containers: own, logs }))
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

/** Reads the available amounts on this host, and the pods' usage. */
export interface PressureMeter extends PodMeter {
  /** The signals that can be read. */
  readonly observe: (signals: ReadonlySet<EvictionSignal>, signal: AbortSignal) => Promise<Observations>
  /** The disk of a signal; `both` where images and volumes share one. */
  readonly diskOf: (signal: EvictionSignal) => Promise<StarvedDisk>
}

export function createPressureMeter(
  { rootDir, podLogsDir }: Pick<PoddConfig, 'rootDir' | 'podLogsDir'>,
  system: CgroupSystem,
  runtime: RuntimeAccess,
): PressureMeter {
  let imagesPath: string | undefined
  let choice: CgroupChoice | undefined
  const findImages = async (signal: AbortSignal): Promise<string | undefined> => {
    imagesPath ??= await runtime.imageStore.imagesPath(signal)
    return imagesPath
  }
  const podsCgroup = (): PodsCgroup | undefined => {
    // It is settled when the first pod is made.
    choice ??= readCgroupChoice(rootDir)
    return choice && { ...choice, system }
  }
  const podsMemory = (): Amount | undefined => {
    const cgroup = podsCgroup()
    return cgroup && readPodsMemory(cgroup)
  }
  return {
    listContainerStats: async (signal) => (await runtime.stats.containers(signal)).stats,
    listPodStats: async (signal) => (await runtime.stats.sandboxes(signal)).stats,
    measureDirectory,
    podMemoryBytes(pod, spec) {
      const cgroup = podsCgroup()
      return cgroup && readPodMemory(cgroup, computeQosClass(spec), pod.uid)
    },
    logDirectory: (pod, container) => `${podLogDirectory(podLogsDir, pod)}/${container}`,
    volumeDirectories: ({ uid }, { volumes }) =>
      volumes.flatMap(({ name, emptyDir }) =>
        emptyDir === undefined || emptyDir.medium !== ''
          ? []
          : [volumeDirectory(rootDir, uid, 'empty-dir', name)],
      ),
    async observe(signals, signal) {
      const found = new Map<EvictionSignal, Observation>()
      const note = (name: EvictionSignal, amount: Amount | undefined): void => {
        if (amount !== undefined && signals.has(name)) found.set(name, amount)
      }
      const readers: readonly (readonly [readonly EvictionSignal[], () => Promise<void>])[] = [
        [['memory.available'], async () => note('memory.available', readMemoryAmount())],
        [['allocatableMemory.available'], async () => note('allocatableMemory.available', podsMemory())],
        [['pid.available'], async () => note('pid.available', readProcessAmount())],
        [
          ['nodefs.available', 'nodefs.inodesFree'],
          async () => {
            const { bytes, inodes } = await readFileSystem(rootDir)
            note('nodefs.available', bytes)
            note('nodefs.inodesFree', inodes)
          },
        ],
        [
          ['imagefs.available', 'imagefs.inodesFree'],
          async () => {
            const path = await findImages(signal)
            if (path === undefined) return
            const { bytes, inodes } = await readFileSystem(path)
            note('imagefs.available', bytes)
            note('imagefs.inodesFree', inodes)
          },
        ],
      ]
      const wanted = readers.filter(([names]) => names.some((name) => signals.has(name)))
      // Unreadable signals are left out: the others still count.
      await Promise.allSettled(wanted.map(([, read]) => read()))
      signal.throwIfAborted()
      return found
    },
    async diskOf(signal) {
      const own = signal.startsWith('nodefs.') ? 'node' : 'image'
      if (imagesPath === undefined) return own === 'node' ? 'both' : own
      const [node, image] = await Promise.all([stat(rootDir), stat(imagesPath)])
      return node.dev === image.dev ? 'both' : own
    },
  }
}

/**
 * Measures a pod's usage of the node's disk. Writable layers on a disk of their own don't count
 * (`pkg/kubelet/eviction/eviction_manager.go`, containerEphemeralStorageLimitEviction, 1.36).
 */
export function storageMeter(
  meter: PressureMeter,
): (worker: PodWorker, signal: AbortSignal) => Promise<StorageUse> {
  return async ({ ref, state }, signal) => {
    const disk = await meter.diskOf('nodefs.available')
    const own = { ref, pod: state.pod }
    const resource = 'ephemeral-storage'
    const found = (await measurePods(meter, [own], { resource, disk }, signal)).get(own)
    return {
      podBytes: found?.used['ephemeral-storage'] ?? 0,
      // Where layers are elsewhere, only the pod's total is judged.
      containers: new Map(
        disk === 'node' ? [] : found?.containers.map(({ name, diskBytes = 0 }) => [name, diskBytes]),
      ),
    }
  }
}

/** The kubelet's interval (`pkg/kubelet/kubelet.go`, evictionMonitoringPeriod, 1.36). */
const periodMs = 10_000
/** The deadline of measuring all volumes; a large one takes minutes on a slow disk. */
const deadlineMs = 1_800_000
/** Large volumes are measured less often: measuring takes a twentieth of the time at most. */
const restFactor = 20
/** And of all pods together a fifth. */
const roundRestFactor = 4

export interface VolumeMeasures {
  readonly workers: () => Iterable<PodWorker>
  /** The bytes that an emptyDir on disk takes. */
  readonly measure: (uid: PodUid, volume: string) => Promise<number>
  readonly measureStorage: (worker: PodWorker, signal: AbortSignal) => Promise<StorageUse>
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * Evicts pods that use more of an emptyDir on disk than its sizeLimit, or of the disk than their limits of
 * `ephemeral-storage` (`pkg/kubelet/eviction/eviction_manager.go` localStorageEviction, 1.36). The kubelet doesn't for
 * static pods.
 */
export function volumeLimitsJob(measures: VolumeMeasures): NodeJob {
  const { clock } = measures
  let restUntilMs = new Map<PodUid, number>()
  return {
    name: 'limit-volumes',
    periodMs,
    deadlineMs,
    async run(signal) {
      const next = new Map<PodUid, number>()
      let measuredMs = 0
      for (const worker of measures.workers()) {
        signal.throwIfAborted()
        const { name: pod, uid } = worker.ref
        const startMs = clock.monotonicMs()
        const resting = restUntilMs.get(uid) ?? 0
        if (startMs < resting) {
          next.set(uid, resting)
          continue
        }
        try {
          await check(worker, measures, signal)
        } catch (error) {
          measures.logger.warn({ pod, uid, err: error }, 'cannot measure what a pod takes of the disk')
        }
        const nowMs = clock.monotonicMs()
        measuredMs += nowMs - startMs
        next.set(uid, nowMs + (nowMs - startMs) * restFactor)
      }
      restUntilMs = next
      // However many they are.
      return measuredMs * roundRestFactor
    },
  }
}

async function check(
  worker: PodWorker,
  { measure, measureStorage }: VolumeMeasures,
  signal: AbortSignal,
): Promise<void> {
  if (worker.state.stage !== 'active' || worker.state.isOver) return
  for (const { name, emptyDir } of worker.state.pod.spec.volumes) {
    if (emptyDir?.sizeLimit === undefined || emptyDir.medium !== '') continue
    const limitBytes = quantityValue(emptyDir.sizeLimit)
    if (limitBytes <= 0 || (await measure(worker.ref.uid, name)) <= limitBytes) continue
    worker.evict({
      reason: 'Evicted',
      message: `Usage of EmptyDir volume "${name}" exceeds the limit "${emptyDir.sizeLimit}". `,
      graceSeconds: 1,
    })
    return
  }
  const { spec } = worker.state.pod
  if (!isStorageLimited(spec)) return
  const message = judgeStorage(spec, await measureStorage(worker, signal))
  if (message !== undefined) worker.evict({ reason: 'Evicted', message, graceSeconds: 1 })
}
