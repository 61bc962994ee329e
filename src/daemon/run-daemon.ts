import type { DaemonPlaces, NodeJobStatus, PressureStatus } from '../api/routes.ts'
import { poddVersion } from '../api/version.ts'
import { formatTime, systemClock } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { PoddError, errorMessage } from '../base/errors.ts'
import { CrashGuard } from './crash-guard.ts'
import type { CrashReport } from './crash-guard.ts'
import { createLogger } from '../base/logger.ts'
import type { Logger } from '../base/logger.ts'
import { makeDirectory } from '../base/make-directory.ts'
import { apiSocketPath } from '../config/places.ts'
import type { PoddConfig } from '../config/options.ts'
import { LocalObjects } from '../control/serving/local-objects.ts'
import { assemblePods } from '../control/assemble-pods.ts'
import type { PodAssembly } from '../control/assemble-pods.ts'
import type { NodeJobReport } from '../control/node/node-jobs.ts'
import type { NodePressure } from '../control/node/node-pressure.ts'
import { NodeImages } from '../control/serving/node-images.ts'
import { toProbeReports } from '../control/serving/probe-reports.ts'
import { Reach } from '../control/serving/reach.ts'
import type { Problem, SourceName } from '../pod/objects/document.ts'
import { startApiServer } from '../server/api-server.ts'
import type { ApiReaders } from '../server/requests/readers.ts'
import { holdInstanceLock } from '../server/listeners/instance-lock.ts'
import { createDecodeSource } from '../sources/decode-source.ts'
import { createDirectorySource } from '../sources/directory.ts'
import { createHttpSource, showUrl } from '../sources/http.ts'
import type { Source } from '../sources/source.ts'
import { createLastGoodStore } from '../store/last-good.ts'
import { finishPurges } from '../volumes/plugins/claim-directory.ts'

/** What `podd run` was told (see cli/deps.ts). */
export interface DaemonRequest {
  readonly config: PoddConfig
  readonly warnings: readonly Problem[]
}

/**
 * Runs podd until SIGTERM or SIGINT, and leaves the pods running then. Resolves with the exit code;
 * throws PoddError where it can't start.
 *
 * Start: directories and locks, the socket (so that the CLI can ask from the first moment), records,
 * sources and the loop, and beside them the runtime: pods are shown before it is there, and begun when
 * it was listed. End: the loops let go of the pods, events are flushed, the socket goes last.
 */
export async function startDaemon({ config, warnings }: DaemonRequest): Promise<number> {
  const clock = systemClock
  const logger = createLogger(config.logLevel)
  const stop = new AbortController()
  const release = await takePlaces(config)
  const guard = new CrashGuard({ rootDir: config.rootDir, clock, logger, replaceProcess })
  for (const { message, place } of warnings)
    logger.warn({ path: place.path, reason: message }, 'configuration')

  const sources = createSources(config, { clock, logger })
  const assembly = assemblePods({ config, sources: sources.map(({ name }) => name), clock, logger })
  const { runtime, events, pods } = assembly
  await events.load()
  const reach = new Reach({
    runtime: runtime.runtime,
    connection: runtime.connection,
    findPod: (uid) => pods.findPod(uid),
    runtimeProblem: () => pods.runtimeProblem,
    runDir: config.runDir,
    clock,
  })
  const localObjects = new LocalObjects({
    objects: pods.objects,
    shown: assembly.shown,
    rootDir: config.rootDir,
    pods: () => pods.allPods(),
    logger,
  })
  localObjects.begin()
  const readers = createReaders(config, assembly, {
    reach,
    localObjects,
    sources,
    startedAtMs: clock.wallMs(),
    crashes: () => guard.reports(),
  })
  const socketPath = apiSocketPath(config.runDir)
  const server = await startApiServer({ socketPath, podLogsDir: config.podLogsDir, readers, clock, logger })

  try {
    const onSignal = (): void => {
      guard.noteStop()
      stop.abort(new PoddError('STOPPED', 'podd is stopping'))
    }
    guard.watch((error) => stop.abort(new PoddError('CRASHED', 'podd crashed', { cause: error })))
    process.once('SIGTERM', onSignal)
    process.once('SIGINT', onSignal)
    logger.info({ path: socketPath }, 'podd started')
    void finishPurges(config.rootDir).catch((error: unknown) =>
      logger.warn({ err: error }, 'cannot delete the remaining data of purged claims'),
    )
    const running = sources.map(({ source }) =>
      source.run((snapshot) => pods.offerSnapshot(snapshot), stop.signal),
    )
    const opened = openRuntime(assembly, reach, stop.signal)
    const watching = opened.then(() => runtime.watch((found) => pods.reportRuntime(found), stop.signal))
    await Promise.all([pods.run(stop.signal, opened), watching, ...running])
  } catch (error) {
    if (!stop.signal.aborted) throw error
  } finally {
    stop.abort(new PoddError('STOPPED', 'podd stops'))
    await events.flush()
    await server.close()
    reach.close()
    runtime.close()
    // The places of one that starts anew stay its own; they go with the process that is replaced.
    if (!guard.mustRestart) release()
  }
  if (guard.mustRestart) return guard.restart()
  logger.info({}, 'podd stopped; the pods keep running')
  return 0
}

/** Pods are shown meanwhile. A runtime that isn't there is reported, and waited for by `watch`. */
async function openRuntime({ runtime, pods }: PodAssembly, reach: Reach, signal: AbortSignal): Promise<void> {
  try {
    const problem = await runtime.open(signal)
    if (problem !== undefined) pods.reportRuntime(problem)
    else void reach.sweep()
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** Makes podd's directories and holds them against a second podd. */
async function takePlaces(config: PoddConfig): Promise<() => void> {
  const directories: readonly (readonly [path: string, mode: number])[] = [
    [config.rootDir, 0o711],
    [config.runDir, 0o711],
    [config.podLogsDir, 0o755],
    [config.containerLogsDir, 0o755],
  ]
  for (const [path, mode] of directories) {
    try {
      await makeDirectory(path, mode)
    } catch (error) {
      throw new PoddError('DIRECTORY', `cannot make ${path}: ${errorMessage(error)}`, {
        cause: error,
        hint: 'podd runs as root and needs these directories on disks that are writable; see `podd run --help` to move them.',
      })
    }
  }
  const locks = [holdInstanceLock(config.rootDir), holdInstanceLock(config.runDir)]
  return () => {
    for (const unlock of locks) unlock()
  }
}

const warmUpManifest = `apiVersion: v1
kind: Pod
metadata: {name: warm-up}
spec: {containers: [{name: main, image: localhost/warm-up}]}
`

interface NamedSource {
  readonly name: SourceName
  readonly location: string
  readonly source: Source
}

function createSources(
  config: PoddConfig,
  { clock, logger }: { clock: Clock; logger: Logger },
): readonly NamedSource[] {
  const lastGood = createLastGoodStore(`${config.rootDir}/sources`, {
    persistSecrets: config.persistSecrets,
  })
  const decode = createDecodeSource(clock)
  // The YAML parser is loaded with the first text: now, so that the first manifest dropped need not wait for it.
  void decode(Buffer.from(warmUpManifest), { path: 'warm-up' }).catch(() => undefined)
  const { fieldValidation } = config
  const found: NamedSource[] = []
  if (config.staticPodPath !== undefined) {
    const path = config.staticPodPath
    const rescanMs = config.fileCheckFrequencyMs
    const source = createDirectorySource({ path, clock, logger, lastGood, decode, fieldValidation, rescanMs })
    found.push({ name: 'file', location: path, source })
  }
  if (config.staticPodUrl !== undefined) {
    const source = createHttpSource({
      url: config.staticPodUrl,
      headers: config.staticPodUrlHeader,
      periodMs: config.httpCheckFrequencyMs,
      clock,
      logger,
      lastGood,
      decode,
      fieldValidation,
    })
    found.push({ name: 'http', location: showUrl(config.staticPodUrl), source })
  }
  return found
}

function placesOf({ imageServiceEndpoint, cgroupRoot, ...config }: PoddConfig): DaemonPlaces {
  const { rootDir, runDir, podLogsDir, containerLogsDir, containerRuntimeEndpoint, cgroupDriver } = config
  return {
    rootDir,
    runDir,
    podLogsDir,
    containerLogsDir,
    containerRuntimeEndpoint,
    cgroupDriver,
    ...(imageServiceEndpoint === undefined ? {} : { imageServiceEndpoint }),
    ...(cgroupRoot === undefined ? {} : { cgroupRoot }),
  }
}

function createReaders(
  config: PoddConfig,
  { hostName, runtime, pods, shown, archives }: PodAssembly,
  facts: {
    readonly reach: Reach
    readonly localObjects: LocalObjects
    readonly sources: readonly NamedSource[]
    readonly startedAtMs: number
    readonly crashes: () => readonly CrashReport[]
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
    },
    probes: { listProbes: (uid) => toProbeReports(pods.probes(uid)) },
    status: {
      applied: () => ({
        ...pods.applied(),
        ...(config.staticPodPath === undefined ? {} : { manifestDirectory: config.staticPodPath }),
        podNameSuffix: config.podNameSuffix === 'node' ? `-${hostName}` : '',
      }),
      daemonStatus() {
        const problem = pods.runtimeProblem
        const snapshots = pods.snapshots()
        return {
          version: poddVersion,
          pid: process.pid,
          startedAt: formatTime(facts.startedAtMs),
          places: placesOf(config),
          runtime: {
            endpoint: config.containerRuntimeEndpoint === 'embedded' ? 'embedded' : runtime.endpoint,
            healthy: problem === undefined,
            name: runtime.name,
            calls: runtime.calls,
            ...(runtime.version === undefined ? {} : { version: runtime.version }),
            ...(problem === undefined ? {} : { message: problem }),
          },
          sources: facts.sources.map(({ name, location }) => {
            const snapshot = snapshots.find(({ source }) => source === name)
            return {
              source: name,
              path: location,
              ready: snapshot?.ready === true,
              pods: snapshot?.pods.length ?? 0,
            }
          }),
          problems: pods.problems(),
          crashes: facts.crashes().map(({ atMs, path }) => ({ time: formatTime(atMs), report: path })),
          ...(pods.pressure === undefined ? {} : { pressure: showPressure(pods.pressure) }),
          jobs: pods.jobs().map((report) => showJob(report)),
        }
      },
    },
    claims: facts.localObjects,
    images: new NodeImages({ runtime: runtime.imageStore, archives, garbage: () => pods.imageGarbage }),
    reach: facts.reach,
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

/** The pid stays the same, so that whoever supervises the daemon sees no end. */
function replaceProcess(): void {
  if (process.execve === undefined) throw new PoddError('INTERNAL', 'this Node.js cannot replace its process')
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, args, process.env)
}
