import type { Clock } from '../../base/clock.ts'
import { systemClock } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import type { PoddConfig } from '../../config/options.ts'
import { apiSocketPath } from '../../config/places.ts'
import { gatherEmbeddedFacts } from '../../containerd/setup/gather-embedded-facts.ts'
import type { DaemonAnswer } from '../../containerd/setup/gather-embedded-facts.ts'
import { checkHost } from '../../decide/doctor/doctor-checks.ts'
import type { DoctorFinding, RuntimeFacts } from '../../decide/doctor/host-facts.ts'
import { gatherHostFacts } from '../../host/facts/gather-host-facts.ts'
import { systemHostProbe } from '../../host/host-probe.ts'
import type { HostProbe } from '../../host/host-probe.ts'
import { findPauseProgram } from '../../images/sandbox-image.ts'
import { listCrashReports } from '../../store/crash-reports.ts'
import { readHoldsAt } from '../../store/hold-record.ts'
import { askStatus } from '../client/ask-status.ts'
import { gatherExternalFacts } from './gather-external-facts.ts'
import { gatherPortFacts } from './gather-port-facts.ts'
import type { DaemonKnowledge } from './gather-port-facts.ts'

/** The environment of `podd doctor`; tests pass a fake host. */
export interface DoctorDeps {
  readonly probe: HostProbe
  readonly clock: Clock
  readonly isRoot: boolean
}

const systemDeps = (): DoctorDeps => ({
  probe: systemHostProbe,
  clock: systemClock,
  isRoot: process.getuid?.() === 0,
})

/**
 * Examines the host as `podd run` with this config would find it: one or more findings for each check. Needs no daemon,
 * and changes nothing.
 */
export async function runDoctor(
  config: PoddConfig,
  signal: AbortSignal,
  deps: DoctorDeps = systemDeps(),
): Promise<readonly DoctorFinding[]> {
  const runtime = await gatherRuntimeFacts(config, deps, signal)
  const host = await gatherHostFacts(deps.probe, {
    clock: deps.clock,
    isRoot: deps.isRoot,
    rootDir: config.rootDir,
    runDir: config.runDir,
    podLogsDir: config.podLogsDir,
    manifestPath: config.staticPodPath,
    cgroupDriver: config.cgroupDriver,
    ociRuntimes: config.ociRuntimes,
    runtimeDriver: runtime.kind === 'external' ? runtime.cgroupDriver : undefined,
  })
  const holds = readHoldsAt(config.rootDir)
  const crashes = listCrashReports(config.rootDir)
  const newest = crashes.at(-1)
  return checkHost({
    ...host,
    runtime,
    ports: await gatherPortFacts(config, () => askForJobs(config, deps.clock, signal)),
    holds: [...holds].map(([source, { sinceMs }]) => ({ source, sinceMs })),
    crash: newest === undefined ? undefined : { ...newest, count: crashes.length },
  })
}

async function gatherRuntimeFacts(
  config: PoddConfig,
  deps: DoctorDeps,
  signal: AbortSignal,
): Promise<RuntimeFacts> {
  if (config.containerRuntimeEndpoint !== 'embedded') {
    return gatherExternalFacts(config.containerRuntimeEndpoint, deps.clock, signal)
  }
  const pause = await findPauseProgram(deps.probe.find)
  return gatherEmbeddedFacts({
    rootDir: config.rootDir,
    runDir: config.runDir,
    askDaemon: () => askDaemon(config, deps.clock, signal),
    clock: deps.clock,
    isRoot: deps.isRoot,
    podCidrs: config.podCidrs,
    registryConfigDir: config.registryConfigDir,
    pauseProgram: pause?.hostPath,
  })
}

async function askForJobs(
  { runDir }: PoddConfig,
  clock: Clock,
  signal: AbortSignal,
): Promise<DaemonKnowledge> {
  try {
    return await askStatus(apiSocketPath(runDir), signal, clock)
  } catch (error) {
    signal.throwIfAborted()
    return errorCode(error) === 'SOCKET_DENIED' ? 'unknown' : 'none'
  }
}

async function askDaemon({ runDir }: PoddConfig, clock: Clock, signal: AbortSignal): Promise<DaemonAnswer> {
  try {
    const { runtime } = await askStatus(apiSocketPath(runDir), signal, clock)
    return { kind: 'runs', message: runtime.message ?? '' }
  } catch (error) {
    signal.throwIfAborted()
    return { kind: errorCode(error) === 'SOCKET_DENIED' ? 'unknown' : 'none' }
  }
}
