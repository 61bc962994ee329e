import { join } from 'node:path'
import { kubernetesVersion } from '../api/resource.ts'
import type { PodObject } from '../api/resource.ts'
import { makeDirectory } from '../base/atomic-file.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { systemRandom } from '../base/random.ts'
import type { PoddConfig } from '../config/options.ts'
import type { CgroupSystem } from '../host/cgroups/layout.ts'
import { readHostInfo } from '../host/facts/host-info.ts'
import type { HostInfo } from '../host/facts/host-info.ts'
import { diskBytes, readDiskSpace } from '../host/host-probe.ts'
import { followResolver, readHostResolver } from '../host/resolver.ts'
import { isImageList, listArchives, readImageList } from '../images/archive-directory.ts'
import { readImageArchive } from '../images/image-archive.ts'
import { ContainerLogDirectories } from '../logs/container-log-directories.ts'
import type { ResourceList } from '../pod/schema/pod-resources.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import type { SourceName } from '../pod/values/ids.ts'
import { normalizeImageName } from '../pod/values/image-name.ts'
import { createProbeRunner } from '../probes/run-probe.ts'
import { HeldExec } from '../runtime/containerd/exec.ts'
import { killShim } from '../runtime/containerd/process.ts'
import { watchDirectory } from '../sources/watch-directory.ts'
import { PodRecordStore } from '../store/pod-records.ts'
import { createStateReport, smallFile } from '../store/state-report.ts'
import { execLimits } from '../translate/environment.ts'
import type { ResolvConf } from '../translate/network.ts'
import type { ResourceFacts } from '../translate/resources.ts'
import { assembleNodeWork } from './assemble-node.ts'
import { admissionRules, objectRules } from './desired/pod-admission.ts'
import { ImageArchives } from './images/archives.ts'
import { createImageAccess } from './images/image-access.ts'
import { isImageInUse } from './images/image-uses.ts'
import { CgroupTrees, createPodCgroups, keepCgroups } from './node/cgroups.ts'
import { nodeAddresses } from './node/follow-host.ts'
import { keepPodLogsDir } from './node/logs.ts'
import { PodSystem } from './pod-system.ts'
import { HookRunner } from './pod/hooks.ts'
import { PodVolumes, readIfThere } from './pod/host.ts'
import { execProbes } from './pod/prober.ts'
import { RuntimeAccess } from './runtime/runtime-access.ts'
import { RingEventRecorder } from './serving/event-recorder.ts'
import { ObjectStore } from './serving/object-store.ts'
import { ShownResources } from './serving/resource-store.ts'

/** A host without cgroups: podd doctor says so, and the runtime will too. */
const noCgroups: CgroupSystem = { version: 1, hierarchies: [] }

export interface PodAssembly {
  readonly hostInfo: HostInfo
  readonly hostName: string
  readonly runtime: RuntimeAccess
  readonly events: RingEventRecorder
  /** What the API shows. */
  readonly shown: ShownResources
  readonly pods: PodSystem
  readonly archives: ImageArchives
  /** Where pods log to: after a change of the setting the directory of before, until no pod is left there. */
  readonly podLogsDir: string
  /** The node's addresses, which are its pods' `hostIPs` too. */
  readonly hostIps: () => readonly string[]
  /** What all pods together may request of CPU, memory and huge pages. */
  readonly allocatable: ResourceList
  /** Removes the levels above the pods' cgroups once they are empty; gives what would not go. */
  readonly removeCgroups: () => Promise<readonly string[]>
}

export interface AssemblyOptions {
  readonly config: PoddConfig
  readonly sources: readonly SourceName[]
  readonly presentPod?: (object: PodObject) => PodObject
  /** The extended resources of the node; left out, it has none. */
  readonly extended?: (nodeName: string) => ResourceList
  readonly clock: Clock
  readonly logger: Logger
}

/** Constructs everything that runs pods, from the config; nothing is started yet. */
export function assemblePods(options: AssemblyOptions): PodAssembly {
  const { clock, logger } = options
  const hostInfo = readHostInfo()
  const cgroups = hostInfo.cgroups ?? noCgroups
  const kept = keepCgroups(options.config, cgroups)
  if (kept.warning !== undefined) logger.warn({ reason: kept.warning }, 'the cgroups keep their place')
  const { config, warning } = keepPodLogsDir(kept.config)
  if (warning !== undefined) logger.warn({ reason: warning }, 'the logs keep their place')
  const hostName = config.hostnameOverride ?? hostInfo.hostname
  const shown = new ShownResources(clock.wallMs())
  const events = new RingEventRecorder({ rootDir: config.rootDir, hostName, shown, clock, logger })
  const report = createStateReport(events, logger)
  const runtime = new RuntimeAccess({ config, hostInfo, events, clock, logger })
  const resources = resourceFacts(config, hostInfo)
  const cgroupTrees = new CgroupTrees({
    config,
    system: cgroups,
    runtime,
    report,
    clock,
    logger,
  })
  const client = runtime.runtime
  const hostIps = config.nodeIps.length > 0 ? () => config.nodeIps : nodeAddresses(clock)
  const { extended = () => ({}) } = options
  const diskSize = diskBytes(config.rootDir)
  const admission = { ...admissionRules(config, hostInfo, diskSize), extended: () => extended(hostName) }
  const objects = new ObjectStore(objectRules(config))
  const { access, pulled } = createImageAccess(config, {
    objects,
    calls: runtime.images,
    events,
    report,
    clock,
    logger,
  })
  const capacity = { ...admission.limits.allocatable }
  const logs = new ContainerLogDirectories({
    ...config,
    removed: { keptMs: config.removedPodLogMaxAgeMs, owner: config.rootDir, clock },
  })
  const archives = assembleArchives({
    config,
    runtime,
    events,
    clock,
    logger,
    pull: async (image, signal) => void (await pods.pullImage({ image, signal })),
    onImported: (names) => pulled.noteImported(names),
    onImages: (names) => pods.reviewImages(names),
    isUsed: async (image, signal) =>
      (await pulled.mayHavePulled(image)) ||
      isImageInUse(
        {
          imageStatus: (request, call) => runtime.images.imageStatus(request, call),
          listContainers: (request, call) => client.listContainers(request, call),
        },
        image,
        signal,
      ),
  })
  const held = new HeldExec(runtime.connection, `${config.runDir}/hooks`, clock)
  const pods = new PodSystem({
    host: {
      archives,
      calls: client,
      cgroups: createPodCgroups({
        openTree: () => cgroupTrees.open(),
        livePods: () => pods.livePods(),
        resources,
        cpus: hostInfo.cpus,
        pidsLimit: config.podPidsLimit > 0 ? config.podPidsLimit : undefined,
      }),
      killShim,
      volumes: new PodVolumes({
        rootDir: config.rootDir,
        resources,
        objects,
        capacity,
        hostName,
        clock,
      }),
      logs,
      hooks: new HookRunner({
        execSync: client.execSync,
        held: () => (runtime.isContainerd ? held : undefined),
        events,
        clock,
        kubernetesVersion,
      }),
      instance: runtime.instance,
      hostName,
      readHostsFile: () => readIfThere('/etc/hosts'),
      readResolver: () => readResolver(config.resolvConf),
      followResolver: (onHint, signal) =>
        followResolver({ path: config.resolvConf ?? '/etc/resolv.conf', clock, onHint }, signal),
      hostIps,
      bootId: hostInfo.bootId,
      selinux: hostInfo.selinux,
      resources,
      capacity,
      execLimits: execLimits(hostInfo.pageBytes),
      objects,
      sandboxSeccompPath: () => runtime.sandboxSeccompPath(),
      security: {
        seccompRoot: `${config.rootDir}/seccomp`,
        seccompDefault: config.seccompDefault,
        appArmor: hostInfo.appArmor,
      },
    },
    objects,
    archives,
    runtime: client,
    pulse: runtime.pulse,
    onRuntimeFrozen: runtime.endFrozen,
    images: runtime.images,
    pullContent: runtime.content,
    credentials: access,
    runtimeEvents: runtime.events(),
    records: new PodRecordStore(config.rootDir, report),
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
    sources: options.sources,
    ...(options.presentPod !== undefined && { presentPod: options.presentPod }),
    runtimeName: () => runtime.name,
    settings: config,
    admission,
    ...assembleNodeWork({
      config,
      hostInfo,
      cgroups,
      runtime,
      cgroupTrees,
      logs,
      pulled,
      isKnown: (uid) => pods.knowsPod(uid),
      events,
      clock,
    }),
  })
  runtime.onSandbox(() => pods.node.jobs.wake('keep-network'))
  return {
    hostInfo,
    hostName,
    runtime,
    events,
    shown,
    pods,
    archives,
    podLogsDir: config.podLogsDir,
    hostIps,
    allocatable: admission.limits.allocatable ?? {},
    removeCgroups: async () => (await cgroupTrees.open()).removeQosTree(),
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

export interface ArchiveAssembly {
  readonly config: Pick<PoddConfig, 'rootDir'>
  readonly runtime: RuntimeAccess
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
  readonly onImported: (names: readonly string[]) => Promise<void>
  readonly onImages: (names: readonly string[]) => void
  /** Whether a container has this image, or a pull has or may have brought it. */
  readonly isUsed: (image: string, signal: AbortSignal) => Promise<boolean>
  readonly pull: (image: string, signal: AbortSignal) => Promise<void>
}

/** The follower of `<root-dir>/images`; nothing is started yet. */
function assembleArchives(options: ArchiveAssembly): ImageArchives {
  const { config, runtime, events, clock, logger, onImported, onImages, isUsed, pull } = options
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
      unsupported: runtime.imageStore.takesArchives
        ? undefined
        : 'images can be imported into the embedded containerd only; use `ctr -n k8s.io images import` with yours',
      importArchive: (name, signal) =>
        runtime.imageStore.importImages(join(directory, name), { pin: false, signal }),
      isUsed,
      discard: (image) => runtime.imageStore.discardName(image),
      pull,
      pin: (image, pinned) => runtime.imageStore.pinName(image, pinned),
      pinnedImages: () => runtime.imageStore.pinnedNames(),
      presentImages: async (signal) => {
        const { images } = await runtime.images.listImages({}, { signal })
        const names = images.flatMap(({ repoTags, repoDigests }) => repoTags.concat(repoDigests))
        return new Set(names.map((name) => normalizeImageName(name)))
      },
      availableBytes: async () => {
        const path = (await runtime.imageStore.imagesPath()) ?? config.rootDir
        return (await readDiskSpace(path)).availableBytes
      },
    },
    stateFile: smallFile(join(config.rootDir, 'image-archives.json')),
    events,
    clock,
    logger,
    onImported,
    onImages,
  })
}
