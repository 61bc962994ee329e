import { statSync } from 'node:fs'
import type { WorkloadObject, WorkloadRevisionObject } from '../api/cluster-objects.ts'
import { poddVersion } from '../api/resource.ts'
import type { PodObject } from '../api/resource.ts'
import type { DaemonPlaces, NodeJobStatus, PortStatus, PressureStatus } from '../api/routes.ts'
import type { AppliedPodEntry, SourceObject, UnitObject } from '../api/sources.ts'
import type { ProbeReportObject } from '../api/usage.ts'
import { formatTime, startDeadline } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { PoddError } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { JoinedRuns, mapBounded } from '../base/waits.ts'
import { formatAddress } from '../config/api-options.ts'
import { kubeletConfigOf } from '../config/options.ts'
import type { PoddConfig } from '../config/options.ts'
import type { PodAssembly } from '../control/assemble.ts'
import { createNodeImages } from '../control/images/node-images.ts'
import type { NodeJobReport } from '../control/node/node-jobs.ts'
import type { NodePressure } from '../control/node/pressure.ts'
import type { ProbeReport } from '../control/pod/prober-worker.ts'
import { ClusterObjects } from '../control/serving/cluster-objects.ts'
import type { LocalObjects } from '../control/serving/local-objects.ts'
import type { Reach } from '../control/serving/reach.ts'
import type { ShownResources } from '../control/serving/resource-store.ts'
import { measureNode } from '../control/serving/usage.ts'
import { boundOfSource } from '../control/desired/source-snapshots.ts'
import type { ShownUnit, UpdateGate } from '../control/desired/update-gate.ts'
import { presentWritten, WrittenObjects } from '../control/serving/written-objects.ts'
import { judgeHealth } from '../decide/node/judge-health.ts'
import { describeTrust } from '../decide/updates/describe-unit.ts'
import { unitOfOrigin } from '../decide/updates/unit-content.ts'
import { readMachineInfo } from '../host/facts/host-info.ts'
import { diskBytes } from '../host/host-probe.ts'
import type { SourceSnapshot } from '../pod/objects/document.ts'
import { kindOfSource, parseSourceName, podKey } from '../pod/values/ids.ts'
import type { SourceName } from '../pod/values/ids.ts'
import type { ServedPort } from '../server/http/listen.ts'
import type {
  ApiReaders,
  PageReader,
  ProcessFacts,
  SourceControl,
  UnitControl,
} from '../server/requests/readers.ts'
import type { SourceHolds, SourceState } from '../sources/source-holds.ts'
import type { SourceReport } from '../sources/source.ts'
import { ApiObjects } from '../sources/written/api-objects.ts'
import { PodRecordStore } from '../store/pod-records.ts'
import type { CrashReport } from '../store/reports.ts'
import type { NamedSource } from './create-sources.ts'

export function createReaders(
  config: PoddConfig,
  { hostName, runtime, pods, shown, archives }: PodAssembly,
  facts: {
    readonly reach: Reach
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
    /** Replaces podd's process; the pods keep running. */
    readonly restart: () => void
    /** Undefined without a status page. */
    readonly page: PageReader | undefined
    readonly clock: Clock
  },
): ApiReaders {
  const revised = new JoinedRuns(() => showRevisions(shown, pods.gate))
  return {
    resources: shown,
    whenListed: async (resource) => {
      // Events are there from the start.
      if (resource === 'events') return
      if (resource === 'nodes') return facts.clusterObjects.whenNodeShown()
      await pods.whenShown
      if (resource === 'persistentvolumeclaims') await facts.localObjects.measureClaims()
      if (resource === 'replicasets' || resource === 'controllerrevisions') await revised.run()
    },
    writer: facts.writer,
    health: { checks: () => judgeHealth(pods.healthFacts) },
    probes: { listProbes: (uid) => toProbeReports(pods.probes(uid)) },
    kubelet: {
      nodeName: hostName,
      config: kubeletConfigOf(config),
      measure: (signal) => measureNode(runtime, config.rootDir, facts.clock, signal),
      runtimeMetrics: (signal) => runtime.stats.metrics(signal),
      process: () => processFacts(facts.startedAtMs()),
      counts: () => pods.counts(),
      operations: () => runtime.operations(),
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
          ...(ports !== undefined && { ports: ports.map((port) => showPort(port)) }),
          runtime: {
            endpoint: config.containerRuntimeEndpoint === 'embedded' ? 'embedded' : runtime.endpoint,
            healthy: problem === undefined,
            name: runtime.name,
            calls: runtime.calls,
            ...(runtime.version !== undefined && { version: runtime.version }),
            ...(shown !== undefined && { message: shown }),
          },
          sources: [...facts.sources, ...writtenSource(snapshots)].map(({ name, location }) => {
            const snapshot = snapshots.find(({ source }) => source === name)
            return {
              source: name,
              path: location,
              ready: snapshot?.ready === true,
              pods: snapshot?.pods.length ?? 0,
              heldSince: timeOf(facts.holds.state(name).heldSinceMs),
            }
          }),
          problems: [...runtime.problems(), ...pods.problems()],
          crashes: facts.crashes().map(({ atMs, path }) => ({ time: formatTime(atMs), report: path })),
          ...(pods.node.drain.isDraining ? { draining: true } : {}),
          ...(pods.node.pressure !== undefined && { pressure: showPressure(pods.node.pressure) }),
          jobs: pods.node.jobs.reports().map((report) => showJob(report)),
        }
      },
    },
    sources: createSourceControl(facts, () => ({
      snapshots: pods.snapshots(),
      pods: pods.applied().pods,
      units: pods.gate.units(),
    })),
    units: createUnitControl(pods.gate),
    claims: facts.localObjects,
    drain: pods.node.drain,
    images: createNodeImages({
      runtime: runtime.imageStore,
      archives,
      garbage: pods.node.imageGarbage,
      collectGarbage: (options, signal) => pods.node.collectGarbage(options, signal),
      pull: (request) => pods.pullImage(request),
    }),
    reach: facts.reach,
    restart: facts.restart,
    page: facts.page,
  }
}

/** Shows what stands for the templates that are kept of workloads, as it is now; few clients ask for it. */
export async function showRevisions(
  shown: Pick<
    ShownResources,
    'deployments' | 'statefulsets' | 'daemonsets' | 'replicasets' | 'controllerrevisions'
  >,
  gate: Pick<UpdateGate, 'revisionsOf'>,
): Promise<void> {
  const { deriveRevisions } = await import('../decide/workloads/workload-revisions.ts')
  // A file may have many workloads, and its revisions are read once.
  const units = new Map<
    string,
    { readonly source: SourceName; readonly name: string; of: WorkloadObject[] }
  >()
  for (const store of [shown.deployments, shown.statefulsets, shown.daemonsets])
    for (const workload of store.values()) {
      const { kind, metadata } = workload
      const { 'podd.dev/source': from = '', 'podd.dev/path': path = '' } = metadata.annotations ?? {}
      const source = parseSourceName(from)
      if (source === undefined) continue
      const name = unitOfOrigin(source, path, `${kind}/${podKey(metadata)}`)
      const key = `${source}\n${name}`
      const known = units.get(key)
      if (known === undefined) units.set(key, { source, name, of: [workload] })
      else known.of.push(workload)
    }
  const objects = await mapBounded([...units.values()], async ({ source, name, of }) => {
    const revisions = await gate.revisionsOf(source, name)
    return of.flatMap((workload) => deriveRevisions(workload, revisions))
  })
  const ofKind = (kind: WorkloadRevisionObject['kind']): ReadonlyMap<string, WorkloadRevisionObject> =>
    new Map(
      objects.flat().flatMap((each) => (each.kind === kind ? [[each.metadata.uid, each] as const] : [])),
    )
  shown.replicasets.replaceAll(ofKind('ReplicaSet'))
  shown.controllerrevisions.replaceAll(ofKind('ControllerRevision'))
}

/** The directory for new manifests: the first one configured. */
function manifestDirectoryOf({ staticPodPath, sources }: PoddConfig) {
  const first = sources.find((source) => source.kind === 'file')
  const manifestDirectory = staticPodPath ?? first?.path
  return manifestDirectory === undefined ? {} : { manifestDirectory }
}

/** The source of objects written over the API, once there are any. */
function writtenSource(
  snapshots: readonly SourceSnapshot[],
): readonly Pick<NamedSource, 'name' | 'location'>[] {
  return snapshots.flatMap(({ source, location, pods, objects }) =>
    source === 'api' && pods.length + objects.length > 0 ? [{ name: source, location }] : [],
  )
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
    ...(lastStartMs !== undefined && { lastStartTime: formatTime(lastStartMs) }),
    ...(lastDurationMs !== undefined && { lastDurationMs: Math.round(lastDurationMs) }),
    ...(error !== undefined && { error }),
  }
}

function toProbeReports(reports: readonly ProbeReport[]): readonly ProbeReportObject[] {
  return reports.map(({ container, probe, result, counts, lastFailure }) => ({
    container,
    probe,
    result,
    counts,
    ...(lastFailure !== undefined && {
      lastFailure: { time: formatTime(lastFailure.atMs), message: lastFailure.message },
    }),
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
    ...(staticPodPath !== undefined && { staticPodPath }),
    ...(imageServiceEndpoint !== undefined && { imageServiceEndpoint }),
    ...(cgroupRoot !== undefined && { cgroupRoot }),
  }
}

/** The sources as the API shows them, and holds and resumes them. */
function createSourceControl(
  { sources, holds }: { readonly sources: readonly NamedSource[]; readonly holds: SourceHolds },
  readGiven: () => {
    readonly snapshots: readonly SourceSnapshot[]
    readonly pods: readonly AppliedPodEntry[]
    readonly units: readonly ShownUnit[]
  },
): SourceControl {
  const change = async (text: string, act: (source: NamedSource) => Promise<boolean>): Promise<boolean> => {
    const found = sources.find(({ name }) => name === text)
    return found === undefined ? false : await act(found)
  }
  return {
    list() {
      const { snapshots, pods, units } = readGiven()
      return sources.map((each) => {
        const { name } = each
        const followed = snapshots.find(({ source }) => source === name)
        const unmet = listUnmet(
          pods.filter(({ source }) => source === name),
          units.filter(({ record }) => record.source === name),
        )
        return showSource(each, followed, holds.state(name), each.source.report(), unmet)
      })
    },
    hold: (name) => change(name, (source) => holds.hold(source)),
    resume: (name) => change(name, (source) => holds.resume(source)),
  }
}

/** What a source gives and does not run. */
interface Unmet {
  readonly names: readonly string[]
  /** Why, of those that won't by themselves. */
  readonly failures: readonly string[]
  /** What runs, and would not be taken now. */
  readonly warnings: readonly string[]
}

/** Of one source: pods whose old version still runs, and units of which another revision counts than the newest. */
function listUnmet(pods: readonly AppliedPodEntry[], units: readonly ShownUnit[]): Unmet {
  const outdated = pods.filter(({ isUpToDate, problem }) => !isUpToDate || problem !== undefined)
  const pinned = units.filter(({ record }) => record.active !== record.offered)
  const failed = units.filter(({ state }) => ['Failed', 'RolledBack'].includes(state))
  return {
    names: [...outdated.map(({ key }) => `Pod ${key}`), ...pinned.map(({ record }) => `Unit ${record.unit}`)],
    failures: [
      ...outdated.flatMap(({ key, problem }) => (problem === undefined ? [] : [`${key}: ${problem}`])),
      ...failed.flatMap(({ message }) => message ?? []),
    ],
    warnings: units.flatMap(({ record }) => describeTrust(record) ?? []),
  }
}

/** The units as the API shows them, and has them go back. */
function createUnitControl(gate: UpdateGate): UnitControl {
  const find = (name: string): ShownUnit => {
    const found = gate.units().find(({ record }) => record.unit === name)
    if (found === undefined) throw new PoddError('UPDATE_REFUSED', `there is no unit ${name}`)
    return found
  }
  return {
    list: () => gate.units().map((unit) => showUnit(unit)),
    rollBack: (name, to) => gate.rollBack(find(name).record.source, name, to),
    async resume(name) {
      const { record } = find(name)
      if (record.active === record.offered) return false
      await gate.resume(record.source, name)
      return true
    },
  }
}

/** A unit as the API shows it. */
export function showUnit({ record, judged, state, message }: ShownUnit): UnitObject {
  const { source, unit, active, offered, base, pin, revisions } = record
  return {
    apiVersion: 'podd.dev/v1',
    kind: 'Unit',
    metadata: { name: unit },
    spec: { source },
    status: {
      state,
      active,
      offered,
      lastHealthy: base,
      since: timeOf(pin?.atMs),
      message,
      progressing: judged,
      revisions: revisions.map(({ failure, ...each }) => ({
        number: each.number,
        hash: each.hash,
        written: each.written,
        sourceRevision: each.sourceRevision,
        distrusted: each.isDistrusted === true ? true : undefined,
        time: formatTime(each.atMs),
        verdict: verdictWords[each.verdict],
        pods: each.pods,
        failure: failure && {
          reason: failure.reason,
          message: failure.message,
          time: formatTime(failure.atMs),
          containers: failure.containers,
          workloads: failure.workloads,
        },
      })),
    },
  }
}

const verdictWords = {
  progressing: 'Progressing',
  healthy: 'Healthy',
  failed: 'Failed',
  superseded: 'Superseded',
} as const

/** The most problems that are shown of one text. */
const maxProblems = 100

/** A source as the API shows it: its followed snapshot, its newest one, and how it is read. */
export function showSource(
  { name, location }: Pick<NamedSource, 'name' | 'location'>,
  followed: SourceSnapshot | undefined,
  { newest = followed, errorsSinceMs, heldSinceMs, pending }: SourceState,
  { mode, hash, etag, answeredAtMs, failure }: SourceReport,
  unmet: Unmet,
): SourceObject {
  const problems = newest?.problems ?? []
  const failures = problems.filter(({ severity }) => severity === 'error')
  const isReady = followed?.ready === true
  return {
    apiVersion: 'podd.dev/v1',
    kind: 'Source',
    metadata: { name },
    spec: { type: kindOfSource(name) === 'http' ? 'URL' : 'Directory', place: location },
    status: {
      state: stateOf(isReady, heldSinceMs, failure),
      mode,
      ready: isReady,
      pods: followed?.pods.length ?? 0,
      objects: followed?.objects.length ?? 0,
      errors: failures.length + unmet.failures.length,
      warnings: problems.length - failures.length + unmet.warnings.length,
      hash,
      etag,
      lastAnswerTime: timeOf(answeredAtMs),
      message: [
        failure?.message,
        failures[0]?.message,
        ...unmet.failures,
        ...unmet.warnings,
        problems[0]?.message,
      ].find((text) => text !== undefined),
      failingSince: timeOf(failure?.sinceMs),
      errorsSince: timeOf(errorsSinceMs),
      // Documents that are bad now stay in their last good form, as all do while nothing can be read.
      lastGood: isReady && failures.length > 0,
      heldSince: timeOf(heldSinceMs),
      pending:
        pending ?? (unmet.names.length === 0 ? undefined : { added: [], changed: unmet.names, removed: [] }),
      problems: problems.length === 0 ? undefined : problems.slice(0, maxProblems),
    },
  }
}

function stateOf(
  isReady: boolean,
  heldSinceMs: number | undefined,
  failure: SourceReport['failure'],
): SourceObject['status']['state'] {
  if (heldSinceMs !== undefined) return 'Held'
  if (!isReady) return 'Unread'
  return failure === undefined ? 'Following' : 'Failing'
}

function timeOf(atMs: number | undefined): string | undefined {
  return atMs === undefined ? undefined : formatTime(atMs)
}

/** How long the runtime may take to list its images for the node's status. */
const imagesMs = 10_000

export function createClusterObjects(
  config: PoddConfig,
  { hostInfo, hostName, runtime, hostIps, pods, shown, allocatable }: PodAssembly,
  { written, clock }: { readonly written: ApiObjects; readonly clock: Clock },
): ClusterObjects {
  const { birthtimeMs, ctimeMs } = statSync(config.rootDir)
  const maxPods = String(config.maxPods)
  const hugePages = [...hostInfo.hugePagesBytes].map(([size, bytes]) => [`hugepages-${size}`, String(bytes)])
  return new ClusterObjects({
    shown,
    objects: pods.objects,
    machine: readMachineInfo(),
    hostName,
    runtimeClasses: new Map(Object.entries(config.runtimeClasses)),
    readNode() {
      const storage = String(diskBytes(config.rootDir) ?? 0)
      return {
        bootId: hostInfo.bootId,
        kernel: hostInfo.kernel,
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        addresses: hostIps(),
        podCidrs: config.podCidrs,
        kubeletPort: config.apiListen?.port ?? config.readOnlyPort,
        capacity: {
          ...Object.fromEntries(hugePages),
          cpu: String(hostInfo.cpus),
          'ephemeral-storage': storage,
          memory: `${Math.floor(hostInfo.memoryBytes / 1024)}Ki`,
          pods: maxPods,
        },
        allocatable: { ...allocatable, 'ephemeral-storage': storage, pods: maxPods },
        runtime: { name: runtime.name, version: runtime.version },
        runtimeProblem: pods.runtimeProblem ?? pods.networkProblem,
        pressure: pods.node.pressure?.conditions ?? [],
        draining: pods.node.drain.isDraining,
      }
    },
    async listImages() {
      using patience = startDeadline(clock, imagesMs)
      const images = await runtime.imageStore.listImages(patience.signal)
      return images.map(({ repoDigests, repoTags, size }) => ({
        names: [...repoDigests, ...repoTags],
        sizeBytes: size,
      }))
    },
    written: (kind) => written.list(kind).map(({ manifest }) => manifest),
    writtenNode: () => written.get({ kind: 'Node', namespace: '', name: hostName })?.manifest,
    createdMs: birthtimeMs > 0 ? birthtimeMs : ctimeMs,
    clock,
  })
}

/** The objects that are written over the API; nothing is read yet. */
export function createApiObjects(
  { rootDir, persistSecrets }: PoddConfig,
  { clock, logger }: { readonly clock: Clock; readonly logger: Logger },
): ApiObjects {
  const records = new PodRecordStore(rootDir)
  return new ApiObjects({
    directory: `${rootDir}/api`,
    persistSecrets,
    clock,
    logger,
    findRecorded: (uid) => records.find(uid),
  })
}

/** Presents pods: one that was written over the API is shown as it was written. */
export function presentPod(objects: ApiObjects): (object: PodObject) => PodObject {
  return (object) => {
    if (object.metadata.annotations?.['podd.dev/source'] !== 'api') return object
    const kept = objects.findPod(object.metadata.uid)
    return kept === undefined ? object : presentWritten(object, kept.manifest, kept.document?.manifest)
  }
}

/** Creates the writer of the API, which follows the pods from now on. */
export function createWriting(
  objects: ApiObjects,
  { pods, shown, hostName }: PodAssembly,
  {
    config,
    localObjects,
    logger,
  }: { readonly config: PoddConfig; readonly localObjects: LocalObjects; readonly logger: Logger },
): WrittenObjects {
  const writing = new WrittenObjects({
    objects,
    pods,
    statuses: pods.statuses,
    shown: shown.pods,
    showClaims: () => localObjects.measureClaims(),
    nodeName: hostName,
    maxPods: boundOfSource(config.maxPods),
    logger,
  })
  writing.begin()
  return writing
}
