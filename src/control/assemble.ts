import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { kubernetesVersion } from '../api/resource.ts'
import type { PodObject } from '../api/resource.ts'
import { makeDirectory } from '../base/atomic-file.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { systemRandom } from '../base/random.ts'
import type { PoddConfig } from '../config/options.ts'
import { readCgroupChoice } from '../host/cgroups/layout.ts'
import type { CgroupSystem } from '../host/cgroups/layout.ts'
import { managerSocket, readHostStopping } from '../host/cgroups/systemd-bus.ts'
import { readHostInfo } from '../host/facts/host-info.ts'
import type { HostInfo } from '../host/facts/host-info.ts'
import { diskBytes, readDiskSpace } from '../host/host-probe.ts'
import { followResolver, readHostResolver } from '../host/resolver.ts'
import { HostShutdown } from '../host/shutdown.ts'
import { isImageList, listArchives, readImageList } from '../images/archive-directory.ts'
import { readImageArchive } from '../images/image-archive.ts'
import { ContainerLogDirectories, removeLogs } from '../logs/container-log-directories.ts'
import type { ResourceList } from '../pod/schema/pod-resources.ts'
import type { PodUid, SourceName } from '../pod/values/ids.ts'
import { normalizeImageName } from '../pod/values/image-name.ts'
import { createProbeRunner } from '../probes/run-probe.ts'
import { HeldExec } from '../runtime/containerd/exec.ts'
import { killShim } from '../runtime/containerd/process.ts'
import { watchDirectory } from '../sources/watch-directory.ts'
import { PodRecordStore } from '../store/pod-records.ts'
import { createRevisionStore } from '../store/revisions.ts'
import { createStateReport, smallFile } from '../store/state-report.ts'
import { execLimits } from '../translate/environment.ts'
import type { ResolvConf } from '../translate/network.ts'
import type { ResourceFacts } from '../translate/resources.ts'
import { admissionRules, objectRules } from './desired/pod-admission.ts'
import { ImageArchives } from './images/archives.ts'
import { createImageAccess } from './images/image-access.ts'
import type { ImageGarbageSetup } from './images/image-garbage.ts'
import { isImageInUse } from './images/image-uses.ts'
import type { PulledImages } from './images/pulled-images.ts'
import { cgroupTree, keepCgroups, openCgroupTree } from './node/cgroups.ts'
import { drainMark } from './node/drain.ts'
import { nodeAddresses, podNetworkJob } from './node/follow-host.ts'
import { keepPodLogsDir, logLimitBytes } from './node/logs.ts'
import { createPressureMeter } from './node/measure-pods.ts'
import type { NodeJob } from './node/node-jobs.ts'
import type { NodeSetup } from './node/node-work.ts'
import { finishPurgesJob, podOrphans } from './node/orphans.ts'
import { PodSystem } from './pod-system.ts'
import { createHooks } from './pod/hooks.ts'
import { createPodCgroups, createPodVolumes, readIfThere } from './pod/host.ts'
import { execProbes } from './pod/prober.ts'
import { RuntimeAccess } from './runtime/runtime-access.ts'
import { RingEventRecorder } from './serving/event-recorder.ts'
import { ObjectStore } from './serving/object-store.ts'
import { createShown } from './serving/resource-store.ts'

/** A host without cgroups: podd doctor says so, and the runtime will too. */
const noCgroups: CgroupSystem = { version: 1, hierarchies: [] }

export type PodAssembly = ReturnType<typeof assemblePods>

/** Constructs everything that runs pods, from the config; nothing is started yet. */
export function assemblePods(wanted: {
  readonly config: PoddConfig
  readonly sources: readonly SourceName[]
  readonly presentPod?: (object: PodObject) => PodObject
  /** The extended resources of the node; left out, it has none. */
  readonly extended?: (nodeName: string) => ResourceList
  readonly clock: Clock
  readonly logger: Logger
}) {
  const { clock, logger, extended = () => ({}) } = wanted
  const hostInfo = readHostInfo()
  const cgroups = hostInfo.cgroups ?? noCgroups
  const kept = keepCgroups(wanted.config, cgroups)
  if (kept.warning !== undefined) logger.warn({ reason: kept.warning }, 'the cgroups keep their place')
  const { config, warning } = keepPodLogsDir(kept.config)
  if (warning !== undefined) logger.warn({ reason: warning }, 'the logs keep their place')
  const { rootDir, runDir } = config
  const hostName = config.hostnameOverride ?? hostInfo.hostname
  const shown = createShown(clock.wallMs())
  const hasSystemd = existsSync(managerSocket)
  const shutdown = new HostShutdown(hasSystemd ? () => readHostStopping(clock) : undefined, clock, logger)
  const { bootId } = hostInfo
  const events = new RingEventRecorder({ rootDir, hostName, bootId }, shown, shutdown, clock, logger)
  const report = createStateReport(events, logger)
  const runtime = new RuntimeAccess({ config, hostInfo, events, clock, logger })
  const client = runtime.runtime
  const ground = { config, hostInfo, cgroups, runtime, events, report, clock, logger }
  const resources = resourceFacts(config, hostInfo)
  const hostIps = config.nodeIps.length > 0 ? () => config.nodeIps : nodeAddresses(clock)
  const rules = admissionRules(config, hostInfo, diskBytes(rootDir))
  const admission = { ...rules, extended: () => extended(hostName) }
  const objects = new ObjectStore(objectRules(config))
  const { access, pulled } = createImageAccess(config, objects, runtime.images, ground)
  const capacity = { ...admission.limits.allocatable }
  const logs = new ContainerLogDirectories({
    ...config,
    removed: { keptMs: config.removedPodLogMaxAgeMs, owner: rootDir, clock },
  })
  const archives = assembleArchives(ground, pulled, () => pods)
  const held = new HeldExec(runtime.connection, `${runDir}/hooks`, clock)
  const cgroupOrphans = () => {
    const choice = readCgroupChoice(rootDir)
    const system = hostInfo.cgroups
    if (choice === undefined || system === undefined) return undefined
    return { tree: cgroupTree(system, clock, choice), system, isShared: choice.root === '/' }
  }
  const isKnown = (uid: PodUid): boolean => pods.knowsPod(uid)
  const orphans = podOrphans({ rootDir, logs, cgroups: cgroupOrphans, isKnown })
  const pods: PodSystem = new PodSystem({
    host: {
      archives,
      calls: client,
      cgroups: createPodCgroups({
        openTree: () => openCgroupTree(ground),
        livePods: () => pods.livePods(),
        resources,
        cpus: hostInfo.cpus,
        pidsLimit: config.podPidsLimit > 0 ? config.podPidsLimit : undefined,
      }),
      killShim,
      volumes: createPodVolumes({ rootDir, resources, objects, capacity, hostName, clock }),
      logs,
      hooks: createHooks(client.execSync, () => (runtime.isContainerd ? held : undefined), events, clock),
      instance: runtime.instance,
      hostName,
      readHostsFile: () => readIfThere('/etc/hosts'),
      readResolver: () => readResolver(config.resolvConf),
      followResolver: (onHint, signal) =>
        followResolver(config.resolvConf ?? '/etc/resolv.conf', clock, onHint, signal),
      hostIps,
      shutdown,
      bootId: hostInfo.bootId,
      selinux: hostInfo.selinux,
      resources,
      capacity,
      execLimits: execLimits(hostInfo.pageBytes),
      objects,
      sandboxSeccompPath: () => runtime.sandboxSeccompPath(),
      security: {
        seccompRoot: `${rootDir}/seccomp`,
        seccompDefault: config.seccompDefault,
        appArmor: hostInfo.appArmor,
      },
    },
    objects,
    archives,
    runtime: client,
    pulse: runtime.pulse,
    onRuntimeSilence: runtime.noteSilence,
    images: runtime.images,
    pullContent: runtime.content,
    credentials: access,
    runtimeEvents: runtime.events(),
    records: new PodRecordStore(rootDir, report),
    revisions: createRevisionStore(join(rootDir, 'revisions'), {
      persistSecrets: config.persistSecrets,
      most: config.updateHistory,
      report,
    }),
    batchFile: smallFile(join(rootDir, 'jobs.json')),
    events,
    shown,
    runProbe: createProbeRunner({
      clock,
      kubernetesVersion,
      pulse: runtime.pulse,
      execSync: execProbes(client),
    }),
    clock,
    random: systemRandom,
    logger,
    sources: wanted.sources,
    presentPod: wanted.presentPod,
    runtimeName: () => runtime.name,
    settings: config,
    admission,
    containerPolicy: {
      maxPerContainer: config.maximumDeadContainersPerContainer,
      maxTotal: config.maximumDeadContainers,
      minimumAgeMs: config.minimumContainerTtlMs,
    },
    node: assembleNode(ground, pulled, logs, orphans),
  })
  // Rules may have been lost while nobody looked.
  runtime.onStart(() => pods.node.jobs.wake('keep-network'))
  return {
    hostInfo,
    hostName,
    shutdown,
    runtime,
    events,
    shown,
    pods,
    archives,
    /** Where pods log to: after a change of the setting the directory of before, until no pod is left there. */
    podLogsDir: config.podLogsDir,
    /** The node's addresses, which are its pods' `hostIPs` too. */
    hostIps,
    /** What all pods together may request of CPU, memory and huge pages. */
    allocatable: admission.limits.allocatable ?? {},
    /** Removes the levels above the pods' cgroups once they are empty; gives what would not go. */
    removeCgroups: async () => (await openCgroupTree(ground)).removeQosTree(),
  }
}

/** What all that is constructed stands on. */
interface Ground {
  readonly config: PoddConfig
  readonly hostInfo: HostInfo
  /** Without hierarchies where the host has no cgroups. */
  readonly cgroups: CgroupSystem
  readonly runtime: RuntimeAccess
  readonly events: RingEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/**
 * What the work about the host reads, removes and is limited to.
 * @param orphans those of the directories, logs and cgroups of pods
 */
function assembleNode(
  ground: Ground,
  pulled: PulledImages,
  logs: ContainerLogDirectories,
  orphans: ReturnType<typeof podOrphans>,
): NodeSetup {
  const { config, hostInfo, cgroups, runtime } = ground
  return {
    imageGarbage: assembleImageGarbage(config, runtime, pulled),
    drainMark: drainMark(`${config.runDir}/draining`, hostInfo.bootId),
    pressure: createPressureMeter(config, cgroups, runtime),
    logSpace: {
      measure: (pods) => logs.measure(pods),
      remove: removeLogs,
      totalBytes: () =>
        logLimitBytes(config.containerLogTotalMaxSize, () => readDiskSpace(config.podLogsDir)),
      keptMs: config.removedPodLogMaxAgeMs,
    },
    orphans: {
      collectors: [...runtime.orphanCollectors(), ...orphans],
      makingSinceMs: () => runtime.makingSinceMs,
      disturbances: () => runtime.disturbances,
    },
    jobs: [finishPurgesJob(config.rootDir), ...networkJobs(ground)],
    logRotation:
      config.containerLogMaxSizeBytes > 0
        ? {
            limits: { maxSizeBytes: config.containerLogMaxSizeBytes, maxFiles: config.containerLogMaxFiles },
            workers: config.containerLogMaxWorkers,
            periodMs: config.containerLogMonitorIntervalMs,
          }
        : undefined,
  }
}

/** None where the pods' network is not podd's. */
function networkJobs({ config, runtime }: Ground): readonly NodeJob[] {
  const network = runtime.podNetworkKeeper()
  return network === undefined ? [] : [podNetworkJob(network.check, config.syncFrequencyMs)]
}

/** What the garbage collection of images reads and removes, and its limits. */
function assembleImageGarbage(
  config: PoddConfig,
  { imageStore, images: calls, runtime: client }: RuntimeAccess,
  pulled: PulledImages,
): ImageGarbageSetup {
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
  }
}

/** An empty setting gives pods no servers (the kubelet's `resolvConf`). */
async function readResolver(path: string | undefined): Promise<ResolvConf> {
  return path === undefined ? { servers: [], searches: [], options: [] } : readHostResolver(path)
}

/** What containers' resources are translated by, of the host and of the config. */
function resourceFacts(config: PoddConfig, hostInfo: HostInfo): ResourceFacts {
  return {
    cgroupVersion: hostInfo.cgroups?.version ?? 1,
    memoryCapacityBytes: hostInfo.memoryBytes,
    minOomScoreAdj: hostInfo.minOomScoreAdj,
    cpuCfsQuota: config.cpuCfsQuota,
    cpuCfsQuotaPeriodUs: config.cpuCfsQuotaPeriodMs * 1000,
    swapController: hostInfo.swapController,
    swapBytes: config.swapBehavior === 'LimitedSwap' ? hostInfo.swapBytes : 0,
    oomKillsGroup: !config.singleProcessOomKill,
    hugePageSizes: hostInfo.hugePageSizes,
  }
}

/** The follower of `<root-dir>/images`; nothing is started yet. */
function assembleArchives(ground: Ground, pulled: PulledImages, pods: () => PodSystem): ImageArchives {
  const { config, runtime, events, clock, logger } = ground
  const { imageStore, images } = runtime
  const directory = join(config.rootDir, 'images')
  return new ImageArchives({
    host: {
      directory,
      prepare: () => makeDirectory(directory, 0o755),
      list: () => listArchives(directory),
      read: (name) => {
        const path = join(directory, name)
        return isImageList(name) ? readImageList(path) : readImageArchive(path)
      },
      // A watch that fails is stood in for by looks at the directory from time to time.
      watch: (onHint) =>
        watchDirectory(directory, { onHint, onFailure: () => onHint({ kind: 'directory' }) }),
      unsupported: imageStore.takesArchives
        ? undefined
        : 'images can be imported into the embedded containerd only; use `ctr -n k8s.io images import` with yours',
      importArchive: (name, signal) => imageStore.importImages(join(directory, name), { pin: false, signal }),
      isUsed: async (image, signal) =>
        (await pulled.mayHavePulled(image)) || isImageInUse(images, runtime.runtime, image, signal),
      discard: (image) => imageStore.discardName(image),
      pull: async (image, signal) => void (await pods().pullImage({ image, signal })),
      pin: (image, pinned) => imageStore.pinName(image, pinned),
      pinnedImages: () => imageStore.pinnedNames(),
      presentImages: async (signal) => {
        const listed = await images.listImages({}, { signal })
        const names = listed.images.flatMap(({ repoTags, repoDigests }) => repoTags.concat(repoDigests))
        return new Set(names.map((name) => normalizeImageName(name)))
      },
      availableBytes: async () => {
        const path = (await imageStore.imagesPath()) ?? config.rootDir
        return (await readDiskSpace(path)).availableBytes
      },
    },
    stateFile: smallFile(join(config.rootDir, 'image-archives.json')),
    events,
    clock,
    logger,
    onImported: (names) => pulled.noteImported(names),
    onImages: (names) => pods().reviewImages(names),
  })
}
