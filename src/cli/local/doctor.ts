import { join } from 'node:path'
import { hostname } from 'node:os'
import type { DaemonStatus } from '../../api/routes.ts'
import type { Clock } from '../../base/clock.ts'
import { systemClock } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import type { PoddConfig } from '../../config/options.ts'
import { apiSocketPath } from '../../config/places.ts'
import { gatherEmbeddedFacts } from '../../runtime/embedded-facts.ts'
import type { DaemonAnswer } from '../../runtime/embedded-facts.ts'
import { checkHost } from '../../decide/doctor/doctor-checks.ts'
import type { DoctorFinding, RuntimeFacts } from '../../decide/doctor/host-facts.ts'
import { gatherHostFacts } from '../../host/facts/gather-host-facts.ts'
import { systemHostProbe } from '../../host/host-probe.ts'
import type { HostProbe } from '../../host/host-probe.ts'
import { findPauseProgram } from '../../images/sandbox-image.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { passedOverProblem, unreadableNameProblem } from '../../sources/directory/directory-problems.ts'
import { listManifests } from '../../sources/read-manifest-file.ts'
import { listCrashReports } from '../../store/reports.ts'
import { readHoldsAt } from '../../store/source-records.ts'
import { askStatus } from '../client/ask-status.ts'
import { gatherExternalFacts } from './gather-external-facts.ts'
import { gatherPortFacts } from './gather-port-facts.ts'
import type { DaemonPorts } from './gather-port-facts.ts'

/** The environment of `podd doctor`. */
interface DoctorDeps {
  readonly probe: HostProbe
  readonly clock: Clock
  readonly isRoot: boolean
}

/**
 * Examines the host as `podd run` with this config would find it: one or more findings for each check. Needs no daemon,
 * and changes nothing.
 * @param options.isOther the config has the places of a running podd, and is not the one that it was started with
 */
export async function runDoctor(
  config: PoddConfig,
  signal: AbortSignal,
  { isOther }: { readonly isOther: boolean } = { isOther: false },
): Promise<readonly DoctorFinding[]> {
  const deps = { probe: systemHostProbe, clock: systemClock, isRoot: process.getuid?.() === 0 }
  const askDaemon = askLazily(config, deps.clock, signal)
  const runtime = await gatherRuntimeFacts(config, deps, { askDaemon, signal })
  const host = await gatherHostFacts(deps.probe, {
    clock: deps.clock,
    isRoot: deps.isRoot,
    rootDir: config.rootDir,
    runDir: config.runDir,
    podLogsDir: config.podLogsDir,
    manifestPath: config.staticPodPath,
    cgroupDriver: config.cgroupDriver,
    ociRuntimes: config.ociRuntimes,
    hostName: hostname(),
    hostnameOverride: config.hostnameOverride,
    resolvConf: config.resolvConf,
    runtimeDriver: runtime.kind === 'external' ? runtime.cgroupDriver : undefined,
  })
  const holds = readHoldsAt(config.rootDir)
  const crashes = listCrashReports(config.rootDir)
  const newest = crashes.at(-1)
  return checkHost({
    ...host,
    manifests: host.manifests && {
      ...host.manifests,
      problems: await findNameProblems(host.manifests.path),
    },
    runtime,
    ports: await gatherPortFacts(isOther ? undefined : config, async () => portsOf(await askDaemon())),
    holds: [...holds].map(([source, { sinceMs }]) => ({ source, sinceMs })),
    crash: newest === undefined ? undefined : { ...newest, count: crashes.length },
  })
}

/** What the source says of files whose names keep them from being read. */
async function findNameProblems(path: string): Promise<readonly Problem[]> {
  const passedOver: string[] = []
  const problems: Problem[] = []
  try {
    await listManifests(path, false, {
      onPassedOver: (name) => void passedOver.push(name),
      onUnreadableName: (name) => void problems.push(unreadableNameProblem(join(path, name))),
    })
  } catch {
    // It is a single file, or can't be listed: the source tells of that.
    return []
  }
  return passedOver.length === 0 ? problems : [...problems, passedOverProblem(path, passedOver)]
}

async function gatherRuntimeFacts(
  config: PoddConfig,
  deps: DoctorDeps,
  { askDaemon, signal }: { readonly askDaemon: () => Promise<Asked>; readonly signal: AbortSignal },
): Promise<RuntimeFacts> {
  if (config.containerRuntimeEndpoint !== 'embedded') {
    return gatherExternalFacts(config.containerRuntimeEndpoint, deps.clock, signal)
  }
  const pause = await findPauseProgram(deps.probe.find)
  return gatherEmbeddedFacts({
    rootDir: config.rootDir,
    runDir: config.runDir,
    askDaemon: async () => containerdOf(await askDaemon()),
    clock: deps.clock,
    isRoot: deps.isRoot,
    podCidrs: config.podCidrs,
    registryConfigDir: config.registryConfigDir,
    pauseProgram: pause?.hostPath,
  })
}

type Asked = { readonly status: DaemonStatus } | { readonly error: unknown }

/** Asks the daemon when its answer is first needed, and once: one that hangs takes its time. Throws the signal's reason. */
function askLazily({ runDir }: PoddConfig, clock: Clock, signal: AbortSignal): () => Promise<Asked> {
  let asked: Promise<Asked> | undefined
  const ask = async (): Promise<Asked> => {
    try {
      return { status: await askStatus(apiSocketPath(runDir), signal, clock) }
    } catch (error) {
      signal.throwIfAborted()
      return { error }
    }
  }
  return () => (asked ??= ask())
}

function portsOf(asked: Asked): DaemonPorts {
  if ('status' in asked) {
    const { ports } = asked.status
    if (ports !== undefined) return { kind: 'known', ports }
    return { kind: 'unknown', reason: 'it does not say; it is just starting, or of an older version' }
  }
  switch (errorCode(asked.error)) {
    case 'DAEMON_NOT_RUNNING':
      return { kind: 'none' }
    case 'SOCKET_DENIED':
      return { kind: 'unknown', reason: 'only root can ask it' }
    default:
      return { kind: 'unknown', reason: errorMessage(asked.error) }
  }
}

function containerdOf(asked: Asked): DaemonAnswer {
  if ('status' in asked) return { kind: 'runs', message: asked.status.runtime.message ?? '' }
  switch (errorCode(asked.error)) {
    case 'SOCKET_DENIED':
      return { kind: 'unknown' }
    case 'DAEMON_SILENT':
      return { kind: 'runs', message: errorMessage(asked.error) }
    default:
      return { kind: 'none' }
  }
}
