import { kubernetesVersion } from '../api/version.ts'
import type { PodObject } from '../api/objects.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { protoPath } from '../base/proto-path.ts'
import { systemRandom } from '../base/random.ts'
import type { PoddConfig } from '../config/options.ts'
import { CgroupfsPodCgroups } from '../host/cgroups/cgroupfs.ts'
import type { CgroupSystem } from '../host/cgroups/layout.ts'
import { createSystemdCaller } from '../host/cgroups/systemd-bus.ts'
import { SystemdPodCgroups } from '../host/cgroups/systemd.ts'
import type { PodCgroups } from '../host/cgroups/cgroups.ts'
import { HeldExec } from '../containerd/client/held-exec.ts'
import { diskBytes, readDiskSpace } from '../host/disk-space.ts'
import { followResolver } from '../host/network/follow-resolver.ts'
import { readHostInfo } from '../host/facts/host-info.ts'
import type { HostInfo } from '../host/facts/host-info.ts'
import { readHostResolver } from '../host/network/host-resolver.ts'
import { readCgroupChoice, saveCgroupChoice } from '../host/cgroups/kept-cgroups.ts'
import type { CgroupChoice } from '../host/cgroups/kept-cgroups.ts'
import { readNodeAddress } from '../host/network/node-address.ts'
import { ContainerLogDirectories } from '../logs/container-log-directories.ts'
import { removeLogs } from '../logs/removed-pod-logs.ts'
import type { SourceName } from '../pod/objects/document.ts'
import type { ResourceList } from '../pod/spec/pod-resources.ts'
import { createProbeRunner } from '../probes/run-probe.ts'
import { isCriError } from '../cri/cri-error.ts'
import { loadProto } from '../cri/load-proto.ts'
import { callDeadlineMs } from '../cri/runtime-service.ts'
import { PodRecordStore } from '../store/pod-records.ts'
import { smallFile } from '../store/small-file.ts'
import { createStateReport } from '../store/state-report.ts'
import type { ResolvConf } from '../translate/network/dns.ts'
import { execLimits } from '../translate/environment/exec-limits.ts'
import type { ResourceFacts } from '../translate/resources/resources.ts'
import { admissionRules, objectRules } from './desired/admission-rules.ts'
import { RingEventRecorder } from './status/event-recorder.ts'
import { ShownResources } from './status/shown-resources.ts'
import { logLimitBytes } from './node/limit-logs.ts'
import { keepCgroups, rootOf } from './node/keep-cgroups.ts'
import { createImageAccess } from './images/create-image-access.ts'
import { isImageInUse } from './images/image-in-use.ts'
import { createHookRunner } from './actions/lifecycle-hooks.ts'
import { createPodVolumes, readIfThere } from './node/local-pod-host.ts'
import { finishPurgesJob } from './node/finish-purges.ts'
import { podNetworkJob } from './node/keep-network.ts'
import { createPodCgroups } from './node/pod-cgroups.ts'
import { drainMark } from './node/drain-mark.ts'
import { createPressureSurroundings } from './node/pressure/pressure-surroundings.ts'
import { assembleArchives } from './assemble-archives.ts'
import { podOrphans } from './node/garbage/pod-orphans.ts'
import { ObjectStore } from './objects/object-store.ts'
import type { ImageArchives } from './archives/image-archives.ts'
import { PodSystem } from './pod-system.ts'
import { RuntimeAccess } from './runtime/runtime-access.ts'

/** A host without cgroups: podd doctor says so, and the runtime will too. */
const noCgroups: CgroupSystem = { version: 1, hierarchies: [] }

/** The host's address may change; it is looked up again after this. */
const addressAgeMs = 5_000

export interface PodAssembly {
  readonly hostInfo: HostInfo
  readonly hostName: string
  readonly runtime: RuntimeAccess
  readonly events: RingEventRecorder
  /** What the API shows. */
  readonly shown: ShownResources
  readonly pods: PodSystem
  readonly archives: ImageArchives
  /** What all pods together may request of CPU, memory and huge pages. */
  readonly allocatable: ResourceList
  /** Removes the levels above the pods' cgroups once they are empty; gives what would not go. */
  readonly removeCgroups: () => Promise<readonly string[]>
}

export interface AssemblyOptions {
  readonly config: PoddConfig
  readonly sources: readonly SourceName[]
  readonly presentPod?: (object: PodObject) => PodObject
  readonly clock: Clock
  readonly logger: Logger
}

/** Constructs everything that runs pods, from the config; nothing is started yet. */
export function assemblePods(options: AssemblyOptions): PodAssembly {
  const { clock, logger } = options
  const hostInfo = readHostInfo()
  const { config, warning } = keepCgroups(options.config, hostInfo.cgroups ?? noCgroups)
  if (warning !== undefined) logger.warn({ reason: warning }, 'the cgroups keep their place')
  const hostName = config.hostnameOverride ?? hostInfo.hostname
  const shown = new ShownResources(clock.wallMs())
  const events = new RingEventRecorder({ rootDir: config.rootDir, hostName, shown, clock, logger })
  const report = createStateReport(events, logger)
  const runtime = new RuntimeAccess({ config, hostInfo, events, clock, logger })
  const resources: ResourceFacts = {
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
  const treeOf = ({ root, driver }: CgroupChoice): PodCgroups => {
    const where = { system: hostInfo.cgroups ?? noCgroups, root, clock }
    return driver === 'systemd'
      ? new SystemdPodCgroups(where, createSystemdCaller(clock))
      : new CgroupfsPodCgroups(where)
  }
  const openTree = async (): Promise<PodCgroups> => {
    const root = rootOf(config)
    const driver = await runtime.askCgroupDriver()
    const before = readCgroupChoice(config.rootDir)
    if (before !== undefined && (before.root !== root || before.driver !== driver)) {
      // No pod is left there, or it would have been kept to.
      const left = await treeOf(before).removeQosTree()
      if (left.length > 0) logger.warn({ path: left.join(', ') }, 'the old cgroups are still in use')
    }
    try {
      saveCgroupChoice(config.rootDir, { root, driver }, report)
    } catch (error) {
      // A full disk must not keep pods from being ended: that is what makes room.
      logger.warn({ err: error, path: config.rootDir }, 'cannot record which cgroups are used')
    }
    return treeOf({ root, driver })
  }
  const client = runtime.runtime
  const admission = admissionRules(config, hostInfo)
  const objects = new ObjectStore(objectRules(config))
  const { access, pulled } = createImageAccess(config, {
    objects,
    calls: runtime.images,
    events,
    report,
    clock,
    logger,
  })
  const diskSize = diskBytes(config.rootDir)
  const capacity = {
    ...admission.limits.allocatable,
    ...(diskSize === undefined ? {} : { 'ephemeral-storage': String(diskSize) }),
  }
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
  const network = runtime.podNetworkKeeper()
  const held = new HeldExec({
    channel: runtime.connection,
    tasks: loadProto('containerd-tasks.proto'),
    containers: loadProto('containerd-containers.proto'),
    directory: `${config.runDir}/hooks`,
    clock,
  })
  const pods = new PodSystem({
    host: {
      archives,
      calls: client,
      cgroups: createPodCgroups({
        openTree,
        livePods: () => pods.livePods(),
        resources,
        cpus: hostInfo.cpus,
        pidsLimit: config.podPidsLimit > 0 ? config.podPidsLimit : undefined,
      }),
      volumes: createPodVolumes({
        rootDir: config.rootDir,
        resources,
        objects,
        capacity,
        hostName,
        clock,
      }),
      logs,
      hooks: createHookRunner({
        execSync: client.execSync,
        held: () => (runtime.name === 'containerd' ? held : undefined),
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
      hostIps: config.nodeIps.length > 0 ? () => config.nodeIps : rememberAddress(clock),
      bootId: hostInfo.bootId,
      selinux: hostInfo.selinux,
      resources,
      capacity,
      execLimits: execLimits(hostInfo.pageBytes),
      objects,
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
      healthProtoPath: protoPath('grpc-health.proto'),
      pulse: runtime.pulse,
      execSync: async ({ containerId, cmd, timeoutMs, signal, onSent }) => {
        try {
          const timeout = Math.max(1, Math.ceil(timeoutMs / 1000))
          const { exitCode, stdout, stderr } = await client.execSync(
            { containerId, cmd, timeout },
            { signal, onSent, deadlineMs: timeoutMs + callDeadlineMs },
          )
          return { exitCode, output: Buffer.concat([stdout, stderr]).toString('utf8') }
        } catch (error) {
          // The runtime's own word, and not that there was none.
          const isAnswer = isCriError(error, 'RUNTIME_TIMEOUT') && error.grpcCode !== undefined
          if (isAnswer) return { exitCode: -1, output: '', timedOut: true }
          throw error
        }
      },
    }),
    clock,
    random: systemRandom,
    logger,
    sources: options.sources,
    ...(options.presentPod !== undefined && { presentPod: options.presentPod }),
    runtimeName: () => runtime.name,
    settings: config,
    admission,
    imageGarbage: {
      host: {
        listImages: async (signal) => {
          const { mark } = pulled
          const images = await runtime.imageStore.listImages(signal)
          await pulled.prune(images, mark)
          return images
        },
        listContainers: async (signal) => (await client.listContainers({}, { signal })).containers,
        removeImage: async (id) => void (await runtime.images.removeImage({ image: { image: id } })),
        imagesPath: (signal) => runtime.imageStore.imagesPath(signal),
        sandboxImage: (signal) => runtime.imageStore.sandboxImage(signal),
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
    },
    drain: { mark: drainMark(`${config.runDir}/draining`, hostInfo.bootId), events },
    pressure: {
      surroundings: createPressureSurroundings({
        config,
        cgroups: hostInfo.cgroups ?? noCgroups,
        imagesPath: (signal) => runtime.imageStore.imagesPath(signal),
        listContainerStats: async (signal) => (await client.listContainerStats({}, { signal })).stats,
        listPodStats: async (signal) => (await client.listPodSandboxStats({}, { signal })).stats,
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
      collectors: [
        ...runtime.orphanCollectors(),
        ...podOrphans({
          rootDir: config.rootDir,
          logs,
          cgroups: () => {
            const choice = readCgroupChoice(config.rootDir)
            const system = hostInfo.cgroups
            if (choice === undefined || system === undefined) return undefined
            return { tree: treeOf(choice), system, isShared: choice.root === '/' }
          },
          isKnown: (uid) => pods.knowsPod(uid),
        }),
      ],
      makingSinceMs: () => runtime.makingSinceMs,
      disturbances: () => runtime.disturbances,
    },
    jobs: [
      finishPurgesJob(config.rootDir),
      ...(network === undefined
        ? []
        : [
            podNetworkJob({
              network,
              sandboxes: () => runtime.calls['RunPodSandbox'] ?? 0,
              periodMs: config.syncFrequencyMs,
              clock,
            }),
          ]),
    ],
    ...(config.containerLogMaxSizeBytes > 0 && {
      logRotation: {
        limits: { maxSizeBytes: config.containerLogMaxSizeBytes, maxFiles: config.containerLogMaxFiles },
        workers: config.containerLogMaxWorkers,
        periodMs: config.containerLogMonitorIntervalMs,
      },
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
    allocatable: admission.limits.allocatable ?? {},
    removeCgroups: async () => (await openTree()).removeQosTree(),
  }
}

/** An empty setting gives pods no servers (the kubelet's `resolvConf`). */
async function readResolver(path: string | undefined): Promise<ResolvConf> {
  return path === undefined ? { servers: [], searches: [], options: [] } : readHostResolver(path)
}

function rememberAddress(clock: Clock): () => readonly string[] {
  let addresses: readonly string[] = []
  let readAtMs = -Infinity
  return () => {
    const nowMs = clock.monotonicMs()
    if (nowMs - readAtMs > addressAgeMs) {
      addresses = [readNodeAddress()]
      readAtMs = nowMs
    }
    return addresses
  }
}
