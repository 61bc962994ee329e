import type { ProbeReportObject } from '../api/usage.ts'
import type { DaemonPlaces, NodeJobStatus, PortStatus, PressureStatus } from '../api/routes.ts'
import { poddVersion } from '../api/resource.ts'
import { formatTime } from '../base/clock.ts'
import { formatAddress } from '../config/api-options.ts'
import { kubeletConfigOf } from '../config/options.ts'
import type { PoddConfig } from '../config/options.ts'
import type { PodAssembly } from '../control/assemble.ts'
import type { NodeJobReport } from '../control/node/node-jobs.ts'
import type { NodePressure } from '../control/node/pressure.ts'
import type { ProbeReport } from '../control/pod/prober-worker.ts'
import { judgeHealth } from '../decide/node/judge-health.ts'
import type { ClusterObjects } from '../control/serving/cluster-objects.ts'
import type { LocalObjects } from '../control/serving/local-objects.ts'
import type { NodeMeter } from '../control/serving/usage.ts'
import { NodeImages } from '../control/images/node-images.ts'
import type { WrittenObjects } from '../control/serving/written-objects.ts'
import type { Reach } from '../control/serving/reach.ts'
import type { TerminationCounter } from '../control/serving/status-store.ts'
import type { SourceName, SourceSnapshot } from '../pod/objects/document.ts'
import type { ServedPort } from '../server/listeners/port-opener.ts'
import type { ApiReaders, Drainer, PageReader, ProcessFacts } from '../server/requests/readers.ts'
import type { SourceHolds } from '../sources/source-holds.ts'
import type { CrashReport } from '../store/reports.ts'
import type { NamedSource } from './create-sources.ts'
import { createSourceControl } from './show-source.ts'

/** Used where the host is never drained. */
const noDrain: Drainer = { run: async () => ({ ended: 0, stuck: [] }), undo: async () => {} }

/** The API's readers, over the daemon's parts. */
export function createReaders(
  config: PoddConfig,
  { hostName, runtime, pods, shown, archives }: PodAssembly,
  facts: {
    readonly reach: Reach
    readonly meter: NodeMeter
    readonly terminations: TerminationCounter
    readonly localObjects: LocalObjects
    readonly clusterObjects: ClusterObjects
    readonly writer: WrittenObjects
    readonly sources: readonly NamedSource[]
    readonly holds: SourceHolds
    /** By the wall clock as it is set now. */
    readonly startedAtMs: () => number
    readonly crashes: () => readonly CrashReport[]
    /** Undefined before podd has tried to listen at them. */
    readonly ports: () => readonly ServedPort[] | undefined
    /** Undefined without a status page. */
    readonly page: PageReader | undefined
  },
): ApiReaders {
  const whenShown = (): Promise<void> => pods.whenShown
  return {
    resources: {
      pods: { reader: shown.pods, whenListed: whenShown },
      events: { reader: shown.events, whenListed: async () => {} },
      configmaps: { reader: shown.configmaps, whenListed: whenShown },
      secrets: { reader: shown.secrets, whenListed: whenShown },
      persistentvolumeclaims: {
        reader: shown.persistentvolumeclaims,
        whenListed: () => whenShown().then(() => facts.localObjects.measureClaims()),
      },
      namespaces: { reader: shown.namespaces, whenListed: whenShown },
      serviceaccounts: { reader: shown.serviceaccounts, whenListed: whenShown },
      nodes: { reader: shown.nodes, whenListed: () => facts.clusterObjects.whenNodeShown() },
      priorityclasses: { reader: shown.priorityclasses, whenListed: whenShown },
      runtimeclasses: { reader: shown.runtimeclasses, whenListed: whenShown },
      leases: { reader: shown.leases, whenListed: whenShown },
      podtemplates: { reader: shown.podtemplates, whenListed: whenShown },
    },
    writer: facts.writer,
    health: { checks: () => judgeHealth(pods.healthFacts) },
    probes: { listProbes: (uid) => toProbeReports(pods.probes(uid)) },
    kubelet: {
      nodeName: hostName,
      config: kubeletConfigOf(config),
      measure: (signal) => facts.meter.read(signal),
      process: () => processFacts(facts.startedAtMs()),
      terminations: () => facts.terminations.counts(),
    },
    status: {
      applied: () => ({
        ...pods.applied(),
        ...manifestDirectoryOf(config),
        podNameSuffix: config.podNameSuffix === 'node' ? `-${hostName}` : '',
      }),
      daemonStatus() {
        const problem = pods.runtimeProblem
        const shown = problem ?? pods.networkProblem
        const snapshots = pods.snapshots()
        const ports = facts.ports()
        return {
          version: poddVersion,
          pid: process.pid,
          startedAt: formatTime(facts.startedAtMs()),
          places: placesOf(config),
          nodeName: hostName,
          ...(ports === undefined ? {} : { ports: ports.map((port) => showPort(port)) }),
          runtime: {
            endpoint: config.containerRuntimeEndpoint === 'embedded' ? 'embedded' : runtime.endpoint,
            healthy: problem === undefined,
            name: runtime.name,
            calls: runtime.calls,
            ...(runtime.version === undefined ? {} : { version: runtime.version }),
            ...(shown === undefined ? {} : { message: shown }),
          },
          sources: [...facts.sources, ...writtenSource(snapshots)].map(({ name, location }) => {
            const snapshot = snapshots.find(({ source }) => source === name)
            return {
              source: name,
              path: location,
              ready: snapshot?.ready === true,
              pods: snapshot?.pods.length ?? 0,
              heldSince: heldSinceOf(facts.holds, name),
            }
          }),
          problems: [...runtime.problems(), ...pods.problems()],
          crashes: facts.crashes().map(({ atMs, path }) => ({ time: formatTime(atMs), report: path })),
          ...(pods.node.drain?.isDraining === true ? { draining: true } : {}),
          ...(pods.node.pressure === undefined ? {} : { pressure: showPressure(pods.node.pressure) }),
          jobs: pods.node.jobs.reports().map((report) => showJob(report)),
        }
      },
    },
    sources: createSourceControl(facts, () => pods.snapshots()),
    claims: facts.localObjects,
    drain: pods.node.drain ?? noDrain,
    images: new NodeImages({
      runtime: runtime.imageStore,
      archives,
      garbage: () => pods.node.imageGarbage,
      collectGarbage: (options, signal) => pods.node.collectGarbage(options, signal),
      pull: (request) => pods.pullImage(request),
    }),
    reach: facts.reach,
    page: facts.page,
  }
}

/** The directory for new manifests: the first one configured. */
function manifestDirectoryOf({ staticPodPath, sources }: PoddConfig): {
  readonly manifestDirectory?: string
} {
  const first = sources.find((source) => source.kind === 'file')
  const directory = staticPodPath ?? (first?.kind === 'file' ? first.path : undefined)
  return directory === undefined ? {} : { manifestDirectory: directory }
}

/** The source of objects written over the API, once there are any. */
function writtenSource(
  snapshots: readonly SourceSnapshot[],
): readonly Pick<NamedSource, 'name' | 'location'>[] {
  return snapshots.flatMap(({ source, location, pods, objects }) =>
    source === 'api' && pods.length + objects.length > 0 ? [{ name: source, location }] : [],
  )
}

function heldSinceOf(holds: SourceHolds, name: SourceName): string | undefined {
  const { heldSinceMs } = holds.state(name)
  return heldSinceMs === undefined ? undefined : formatTime(heldSinceMs)
}

function processFacts(startedAtMs: number): ProcessFacts {
  const { user, system } = process.cpuUsage()
  return {
    cpuSeconds: (user + system) / 1e6,
    residentBytes: process.memoryUsage.rss(),
    startedAtSeconds: startedAtMs / 1000,
  }
}

function showPressure({ conditions, observations }: NodePressure): PressureStatus {
  const signals = [...observations].map(([signal, { available, capacity }]) => ({
    signal,
    available,
    capacity,
  }))
  return { conditions, signals }
}

function showPort({ option, address, problem }: ServedPort): PortStatus {
  const port = { option, address: formatAddress(address) }
  return problem === undefined ? port : { ...port, error: problem }
}

function showJob({
  name,
  periodMs,
  running,
  runs,
  lastStartMs,
  lastDurationMs,
  error,
}: NodeJobReport): NodeJobStatus {
  return {
    name,
    periodSeconds: periodMs / 1000,
    running,
    runs,
    ...(lastStartMs === undefined ? {} : { lastStartTime: formatTime(lastStartMs) }),
    ...(lastDurationMs === undefined ? {} : { lastDurationMs: Math.round(lastDurationMs) }),
    ...(error === undefined ? {} : { error }),
  }
}

/** The reports on a pod's probes in the API's form. */
function toProbeReports(reports: readonly ProbeReport[]): readonly ProbeReportObject[] {
  return reports.map(({ container, probe, result, counts, lastFailure }) => ({
    container,
    probe,
    result,
    counts,
    ...(lastFailure === undefined
      ? {}
      : { lastFailure: { time: formatTime(lastFailure.atMs), message: lastFailure.message } }),
  }))
}

function placesOf({ imageServiceEndpoint, cgroupRoot, staticPodPath, ...config }: PoddConfig): DaemonPlaces {
  const { rootDir, runDir, podLogsDir, containerLogsDir, containerRuntimeEndpoint, cgroupDriver } = config
  const { podCidrs, registryConfigDir, ociRuntimes } = config
  return {
    rootDir,
    runDir,
    podLogsDir,
    containerLogsDir,
    containerRuntimeEndpoint,
    cgroupDriver,
    podCidrs,
    registryConfigDir,
    ociRuntimes,
    ...(staticPodPath === undefined ? {} : { staticPodPath }),
    ...(imageServiceEndpoint === undefined ? {} : { imageServiceEndpoint }),
    ...(cgroupRoot === undefined ? {} : { cgroupRoot }),
  }
}
