import { networkInterfaces } from 'node:os'
import { makeDirectory } from '../base/atomic-file.ts'
import { sleepUnlessAborted, systemClock } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { errorMessage, PoddError } from '../base/errors.ts'
import { createLogger } from '../base/logger.ts'
import type { Logger } from '../base/logger.ts'
import type { PoddConfig } from '../config/options.ts'
import { apiSocketPath } from '../config/places.ts'
import { assemblePods } from '../control/assemble.ts'
import type { PodAssembly } from '../control/assemble.ts'
import { savePodLogsDir } from '../control/node/logs.ts'
import { LocalObjects, showKept } from '../control/serving/local-objects.ts'
import { Reach } from '../control/serving/reach.ts'
import { ownNodeOf } from '../decide/writing/own-node.ts'
import { extendTimeout, takeServiceManager } from '../host/service-manager.ts'
import type { ServiceManager } from '../host/service-manager.ts'
import type { Problem } from '../pod/objects/document.ts'
import { startApiServer } from '../server/api-server.ts'
import { holdInstanceLock } from '../server/http/listen.ts'
import type { ServedPort } from '../server/http/listen.ts'
import type { NetworkOptions } from '../server/network-api.ts'
import { createStateReport } from '../store/state-report.ts'
import type { StateReport } from '../store/state-report.ts'
import { CrashGuard } from './crash-guard.ts'
import {
  createApiObjects,
  createClusterObjects,
  createReaders,
  createWriting,
  presentPod,
} from './create-api.ts'
import { createHolds, createReporter, createSources, createTrials, sourceNames } from './create-sources.ts'
import { createDaemonJobs, openPage } from './daemon-jobs.ts'
import { describeSelf, serviceStatus, tellManager } from './watch-self.ts'

/** The request of `podd run` (see cli/arguments/verb.ts). */
export interface DaemonRequest {
  readonly config: PoddConfig
  readonly warnings: readonly Problem[]
}

/**
 * Runs podd until SIGTERM or SIGINT, and leaves the pods running then. Resolves with the exit code; throws PoddError
 * where it can't start.
 *
 * Start: directories and locks, the socket (so that the CLI can ask from the first moment), records, sources and the
 * loop, and concurrently the runtime: pods are shown before it is available, and started once it was listed. End: the
 * loops stop, events are flushed, the socket is removed last.
 */
export async function startDaemon({ config, warnings }: DaemonRequest): Promise<number> {
  const allocator = takeAllocatorSettings(process.env)
  const clock = systemClock
  const logger = createLogger(config.logLevel)
  const startedUpMs = clock.uptimeMs()
  const stop = new AbortController()
  const release = await takePlaces(config)
  const manager = takeServiceManager(process.env, process.pid)
  const restarts = takeRestarts(process.env)
  for (const { message, place } of warnings)
    logger.warn({ path: place.path, reason: message }, 'configuration')

  const apiObjects = createApiObjects(config, { clock, logger })
  const assembly = assemblePods({
    config,
    sources: [...sourceNames(config), 'api'],
    presentPod: presentPod(apiObjects),
    extended: (name) => ownNodeOf(apiObjects.get({ kind: 'Node', namespace: '', name })?.manifest).capacity,
    clock,
    logger,
  })
  const { runtime, events, pods } = assembly
  const guard = new CrashGuard({
    rootDir: config.rootDir,
    clock,
    logger,
    replaceProcess: (memoryRestarts) =>
      replaceProcess({ ...manager?.environment, ...allocator }, memoryRestarts),
    describe: () => describeSelf(pods),
    onDelay: (delayMs) =>
      void tellManager(
        manager,
        logger,
        'WATCHDOG=1',
        // It may still be starting.
        extendTimeout(2 * delayMs),
        'STATUS=podd crashes repeatedly',
      ),
  })
  guard.begin(clock.wallMs())
  const report = createStateReport(events, logger)
  const guardEnv = { assembly, report, clock, logger }
  const sources = createSources(config, guardEnv)
  await events.load()
  try {
    savePodLogsDir(config.rootDir, assembly.podLogsDir, report)
  } catch (error) {
    // A full disk must not prevent the start.
    logger.warn({ err: error, path: config.rootDir }, 'cannot record where pods log to')
  }
  const holds = createHolds(config, guardEnv)
  const trials = createTrials(config, { sources, holds, crashes: guard.reports() }, guardEnv)
  const reach = new Reach(runtime, pods, config, clock)
  const localObjects = new LocalObjects({
    objects: pods.objects,
    shown: assembly.shown,
    rootDir: config.rootDir,
    pods: () => pods.allPods(),
    clock,
    logger,
  })
  localObjects.begin()
  const clusterObjects = createClusterObjects(config, assembly, { written: apiObjects, clock })
  clusterObjects.begin()
  const writing = createWriting(apiObjects, assembly, { config, localObjects, logger })
  const renew = (count: number, reason: string): void =>
    guard.renew(count, () => stop.abort(new PoddError('STOPPED', reason)))
  /** Set once podd has tried to listen at them; the socket answers before. */
  let ports: readonly ServedPort[] | undefined
  const readers = createReaders(config, assembly, {
    clusterObjects,
    reach,
    localObjects,
    writer: writing,
    sources,
    holds,
    // By the wall clock as it is set now.
    startedAtMs: () => clock.wallMs() - (clock.uptimeMs() - startedUpMs),
    crashes: () => guard.reports(),
    ports: () => ports,
    // The answer goes out first.
    restart: () => void clock.startTimer(letGoMs, () => renew(0, 'podd restarts on request')),
    page: config.apiPage ? await openPage(assembly, reach) : undefined,
    clock,
  })
  const reporter = await createReporter(config, assembly, readers, clock)
  const socketPath = apiSocketPath(config.runDir)
  const server = await startApiServer({
    socketPath,
    podLogsDir: assembly.podLogsDir,
    readers,
    network: networkOf(config, assembly.hostName, report),
    readOnly: config.readOnlyPort === 0 ? undefined : { host: config.address, port: config.readOnlyPort },
    clock,
    logger,
  })
  ports = server.ports

  let stopping: Promise<void> | undefined
  const jobs = createDaemonJobs({
    config,
    assembly,
    manager,
    server,
    socketPath,
    restarts,
    restart: renew,
    signal: stop.signal,
    clock,
    logger,
  })
  for (const job of jobs) pods.node.jobs.add(job)
  try {
    const onSignal = (): void => {
      guard.noteStop()
      stopping ??= tellManager(manager, logger, 'STOPPING=1')
      stop.abort(new PoddError('STOPPED', 'podd is stopping'))
    }
    guard.watch((error) => stop.abort(new PoddError('CRASHED', 'podd crashed', { cause: error })))
    process.once('SIGTERM', onSignal)
    process.once('SIGINT', onSignal)
    logger.info({ path: socketPath }, 'podd started')
    await holds.begin()
    await trials.begin()
    if (trials.hasCrashedRepeatedly) pods.gate.distrustNew(config.sourceTrialPeriodMs)
    const running = sources.map((source) =>
      trials.wrap(source).run((snapshot) => {
        pods.offerSnapshot(snapshot)
        reporter?.note()
      }, stop.signal),
    )
    reporter?.follow(stop.signal)
    if (manager !== undefined) void tellStart(manager, assembly, { clock, logger }, stop.signal)
    const keeping = apiObjects.run(async (snapshot, isSame) => {
      if (!isSame) await pods.takeSnapshot(snapshot)
      showKept(assembly.shown, (kind) => apiObjects.list(kind).map(({ manifest }) => manifest))
      clusterObjects.showWritten()
    }, stop.signal)
    // No pod is admitted before the node's extended resources are known.
    const loaded = apiObjects.whenLoaded.then(() => writing.showHeld())
    const opened = loaded.then(() => openRuntime(assembly, reach, stop.signal))
    void pods.whenListed.then(() => writing.settle())
    const watching = opened.then(() => runtime.watch((found) => pods.reportRuntime(found), stop.signal))
    await Promise.all([pods.run(stop.signal, opened), watching, keeping, ...running])
  } catch (error) {
    // A PoddError is a reason why podd can't start; anything else is a defect.
    if (!stop.signal.aborted && (error instanceof PoddError || !guard.crash(error, 'run'))) throw error
  } finally {
    if (stop.signal.aborted && !guard.hasCrashed) await trials.noteEnd()
    stop.abort(new PoddError('STOPPED', 'podd stops'))
    // What has just failed may have come of a shutdown.
    await assembly.shutdown.look()
    await events.flush()
    await server.close()
    reach.close()
    runtime.close()
    await stopping
    // A podd that restarts keeps its locks until its process is replaced.
    if (!guard.mustRestart) release()
  }
  if (guard.mustRestart) return guard.restart()
  logger.info({}, 'podd stopped; the pods keep running')
  return 0
}

/** Undefined where the API is served on the socket only. */
function networkOf(config: PoddConfig, hostName: string, report: StateReport): NetworkOptions | undefined {
  const { apiListen: address, apiTokenFile: tokenFile, rootDir } = config
  if (address === undefined) return undefined
  const isAny = address.host === '0.0.0.0' || address.host === '::'
  const addresses = isAny
    ? Object.values(networkInterfaces()).flatMap((list = []) => list.map((found) => found.address))
    : [address.host]
  // A link-local address has a zone, which no certificate can contain.
  const reachable = addresses.filter((found) => !found.startsWith('fe80:'))
  const names = new Set(['localhost', hostName, '127.0.0.1', ...reachable])
  return { address, names: [...names], rootDir, tokenFile, report }
}

/**
 * Notifies the service manager once the API answers, with what podd waits for, and again when the runtime was listed.
 */
async function tellStart(
  manager: ServiceManager,
  assembly: PodAssembly,
  parts: { readonly clock: Clock; readonly logger: Logger },
  signal: AbortSignal,
): Promise<void> {
  const { pods } = assembly
  const status = (): string =>
    `STATUS=starting${pods.runtimeProblem === undefined ? '' : `: ${pods.runtimeProblem}`}`
  await announceReady({ manager, status, ...parts }, signal)
  await pods.whenListed
  if (!signal.aborted) await tellManager(manager, parts.logger, serviceStatus(assembly))
}

/** Opens the runtime while pods are already shown. An unavailable one is reported, and `watch` waits for it. */
async function openRuntime({ runtime, pods }: PodAssembly, reach: Reach, signal: AbortSignal): Promise<void> {
  try {
    const problem = await runtime.open(signal)
    if (problem !== undefined) pods.reportRuntime(problem)
    else void reach.sweep()
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/**
 * Makes podd's directories and locks them against a second podd. Returns the function that unlocks them; throws
 * PoddError where one can't be made or another podd holds it.
 */
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
      throw new PoddError('DIRECTORY', `cannot create ${path}: ${errorMessage(error)}`, {
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

export interface ReadyNotice {
  readonly manager: Pick<ServiceManager, 'notify'>
  /** What podd is currently waiting for, as `STATUS=…`. */
  readonly status: () => string
  readonly clock: Clock
  readonly logger: Logger
}

const firstDelayMs = 1000
const longestDelayMs = 15_000

/**
 * Notifies the service manager that podd is ready, and retries until it has received that: it kills a service without
 * READY=1 after TimeoutStartSec. `systemd-notify` gives up after five seconds on a busy manager, as during the boot of
 * a slow board, and a message from a process that has exited is dropped. Never rejects; gives up when the signal is
 * aborted.
 */
export async function announceReady(
  { manager, status, clock, logger }: ReadyNotice,
  signal: AbortSignal,
): Promise<void> {
  let delayMs = firstDelayMs
  while (!signal.aborted) {
    try {
      await manager.notify('READY=1', status())
      return
    } catch (error) {
      logger.warn(
        { reason: errorMessage(error), durationMs: delayMs },
        'cannot tell the service manager that podd is ready, trying again',
      )
    }
    await sleepUnlessAborted(clock, delayMs, signal)
    delayMs = Math.min(2 * delayMs, longestDelayMs)
  }
}

/** Between the answer to a request for a restart and that. */
const letGoMs = 200

/** How many restarts for its memory led to this podd, one after the other. */
const restartsVariable = 'PODD_MEMORY_RESTARTS'

/** Reads and removes what an earlier podd in this process left in the environment. */
function takeRestarts(env: Record<string, string | undefined>): number {
  const count = Number(env[restartsVariable] ?? 0)
  delete env[restartsVariable]
  return Number.isInteger(count) && count > 0 ? count : 0
}

/**
 * Restarts the same program in this process; the pid stays the same, so that a supervisor notices no exit. Returns only
 * by throwing: PoddError INTERNAL, or the system's error.
 * @param environment added to that of this process
 */
function replaceProcess(environment: Readonly<Record<string, string>>, restarts: number): void {
  if (process.execve === undefined) throw new PoddError('INTERNAL', 'this Node.js cannot replace its process')
  const args = [process.execPath, ...process.execArgv, ...process.argv.slice(1)]
  process.execve(process.execPath, args, {
    ...process.env,
    ...environment,
    ...(restarts === 0 ? {} : { [restartsVariable]: String(restarts) }),
  })
}

/** What the launcher tells the C library's allocator, which reads it once, when a program starts. */
const variables: readonly string[] = ['MALLOC_ARENA_MAX', 'MALLOC_TRIM_THRESHOLD_']

/**
 * Takes the allocator's settings out of this environment: they are for podd alone, and no program that it runs inherits
 * them. Gives them for a podd that takes this one's place.
 */
export function takeAllocatorSettings(
  env: Record<string, string | undefined>,
): Readonly<Record<string, string>> {
  const taken: Record<string, string> = {}
  for (const name of variables) {
    const value = env[name]
    if (value !== undefined) taken[name] = value
    delete env[name]
  }
  return taken
}
