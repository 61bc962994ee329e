import type { Clock } from '../base/clock.ts'
import type { PoddConfig } from '../config/options.ts'
import { readCgroupChoice } from '../host/cgroups/layout.ts'
import type { CgroupSystem } from '../host/cgroups/layout.ts'
import type { HostInfo } from '../host/facts/host-info.ts'
import { readDiskSpace } from '../host/host-probe.ts'
import { removeLogs } from '../logs/container-log-directories.ts'
import type { ContainerLogDirectories } from '../logs/container-log-directories.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import type { PodUid } from '../pod/values/ids.ts'
import { smallFile } from '../store/state-report.ts'
import type { PulledImages } from './images/pulled-images.ts'
import type { CgroupTrees } from './node/cgroups.ts'
import { drainMark } from './node/drain.ts'
import { podNetworkJob } from './node/follow-host.ts'
import { logLimitBytes } from './node/logs.ts'
import { createPressureSurroundings } from './node/measure-pods.ts'
import type { NodeJob } from './node/node-jobs.ts'
import type { NodeWorkOptions } from './node/node-work.ts'
import { finishPurgesJob, podOrphans } from './node/orphans.ts'
import type { RuntimeAccess } from './runtime/runtime-access.ts'

interface NodeWorkParts {
  readonly config: PoddConfig
  readonly hostInfo: HostInfo
  /** Without hierarchies where the host has no cgroups. */
  readonly cgroups: CgroupSystem
  readonly runtime: RuntimeAccess
  readonly cgroupTrees: CgroupTrees
  readonly logs: ContainerLogDirectories
  readonly pulled: PulledImages
  /** Whether podd has a pod of this uid. */
  readonly isKnown: (uid: PodUid) => boolean
  readonly events: NodeEventRecorder
  readonly clock: Clock
}

type AssembledWork =
  | 'imageGarbage'
  | 'drain'
  | 'pressure'
  | 'logSpace'
  | 'containerPolicy'
  | 'orphans'
  | 'jobs'
  | 'logRotation'

/** What the work about the host reads, removes and is limited to, from the config; nothing is started yet. */
export function assembleNodeWork(parts: NodeWorkParts): Pick<NodeWorkOptions, AssembledWork> {
  const { config, hostInfo, cgroups, runtime, logs, pulled, events } = parts
  return {
    imageGarbage: assembleImageGarbage({ config, runtime, pulled, events }),
    drain: { mark: drainMark(`${config.runDir}/draining`, hostInfo.bootId), events },
    pressure: {
      surroundings: createPressureSurroundings({
        config,
        cgroups,
        imagesPath: (signal) => runtime.imageStore.imagesPath(signal),
        listContainerStats: async (signal) => (await runtime.stats.containers(signal)).stats,
        listPodStats: async (signal) => (await runtime.stats.sandboxes(signal)).stats,
      }),
      events,
    },
    logSpace: {
      measure: (pods) => logs.measure(pods),
      remove: removeLogs,
      totalBytes: () =>
        logLimitBytes(config.containerLogTotalMaxSize, () => readDiskSpace(config.podLogsDir)),
      availableBytes: async () => (await readDiskSpace(config.podLogsDir)).availableBytes,
      keptMs: config.removedPodLogMaxAgeMs,
    },
    containerPolicy: {
      maxPerContainer: config.maximumDeadContainersPerContainer,
      maxTotal: config.maximumDeadContainers,
      minimumAgeMs: config.minimumContainerTtlMs,
    },
    orphans: {
      collectors: [...runtime.orphanCollectors(), ...collectorsOfPods(parts)],
      makingSinceMs: () => runtime.makingSinceMs,
      disturbances: () => runtime.disturbances,
    },
    jobs: [finishPurgesJob(config.rootDir), ...networkJobs(parts)],
    ...(config.containerLogMaxSizeBytes > 0 && {
      logRotation: {
        limits: { maxSizeBytes: config.containerLogMaxSizeBytes, maxFiles: config.containerLogMaxFiles },
        workers: config.containerLogMaxWorkers,
        periodMs: config.containerLogMonitorIntervalMs,
      },
    }),
  }
}

/** They remove the directories, logs and cgroups of pods that no longer exist. */
function collectorsOfPods({
  config,
  hostInfo,
  cgroupTrees,
  logs,
  isKnown,
}: NodeWorkParts): ReturnType<typeof podOrphans> {
  return podOrphans({
    rootDir: config.rootDir,
    logs,
    cgroups: () => {
      const choice = readCgroupChoice(config.rootDir)
      const system = hostInfo.cgroups
      if (choice === undefined || system === undefined) return undefined
      return { tree: cgroupTrees.of(choice), system, isShared: choice.root === '/' }
    },
    isKnown,
  })
}

/** None where the pods' network is not podd's. */
function networkJobs({ config, runtime, clock }: NodeWorkParts): readonly NodeJob[] {
  const network = runtime.podNetworkKeeper()
  if (network === undefined) return []
  return [
    podNetworkJob({
      network,
      sandboxes: () => runtime.calls['RunPodSandbox'] ?? 0,
      isMaking: () => runtime.makingSinceMs !== undefined,
      periodMs: config.syncFrequencyMs,
      clock,
    }),
  ]
}

interface ImageGarbageParts {
  readonly config: PoddConfig
  readonly runtime: RuntimeAccess
  readonly pulled: PulledImages
  readonly events: NodeEventRecorder
}

/** What the garbage collection of images reads and removes, and its limits. */
function assembleImageGarbage({
  config,
  runtime,
  pulled,
  events,
}: ImageGarbageParts): NonNullable<NodeWorkOptions['imageGarbage']> {
  const { imageStore, images: calls, runtime: client } = runtime
  return {
    host: {
      listImages: async (signal) => {
        const { mark } = pulled
        const images = await imageStore.listImages(signal)
        await pulled.prune(images, mark)
        return images
      },
      listContainers: async (signal) => (await client.listContainers({}, { signal })).containers,
      removeImage: async (id) => void (await calls.removeImage({ image: { image: id } })),
      imagesPath: (signal) => imageStore.imagesPath(signal),
      sandboxImage: (signal) => imageStore.sandboxImage(signal),
      readDisk: readDiskSpace,
    },
    policy: {
      highThresholdPercent: config.imageGcHighThresholdPercent,
      lowThresholdPercent: config.imageGcLowThresholdPercent,
      minimumAgeMs: config.imageMinimumGcAgeMs,
      maximumAgeMs: config.imageMaximumGcAgeMs,
    },
    usesFile: smallFile(`${config.rootDir}/image-uses.json`),
    events,
  }
}
