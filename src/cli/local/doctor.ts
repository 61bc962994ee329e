import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { DaemonStatus, PortOption, PortStatus } from '../../api/routes.ts'
import { systemClock } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { jsonAt, parseJson } from '../../base/json.ts'
import { formatAddress } from '../../config/api-options.ts'
import type { ListenAddress } from '../../config/api-options.ts'
import type { PoddConfig } from '../../config/options.ts'
import { apiSocketPath } from '../../config/places.ts'
import { checkHost } from '../../decide/doctor/doctor-checks.ts'
import type { DoctorFinding } from '../../decide/doctor/doctor-finding.ts'
import type { ExternalRuntimeFacts, PortFacts, RuntimeFacts } from '../../decide/doctor/host-facts.ts'
import { listenProblem } from '../../host/addresses.ts'
import { gatherHostFacts } from '../../host/facts/gather-host-facts.ts'
import { systemHostProbe } from '../../host/host-probe.ts'
import { findPauseProgram } from '../../images/sandbox-image.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { askCgroupDriver, CriClient } from '../../runtime/cri-client.ts'
import { gatherEmbeddedFacts } from '../../runtime/embedded-facts.ts'
import type { DaemonAnswer } from '../../runtime/embedded-facts.ts'
import { passedOverProblem, unreadableNameProblem } from '../../sources/directory/directory-problems.ts'
import { listManifests } from '../../sources/read-manifest-file.ts'
import { listCrashReports } from '../../store/reports.ts'
import { readHoldsAt } from '../../store/source-records.ts'
import { readCniPlaces } from '../../translate/observe.ts'
import { askStatus } from '../client/client.ts'

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
  const isRoot = process.getuid?.() === 0
  const askDaemon = askLazily(config, signal)
  const runtime = await gatherRuntimeFacts(config, isRoot, askDaemon, signal)
  const host = await gatherHostFacts(systemHostProbe, {
    clock: systemClock,
    isRoot,
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
  isRoot: boolean,
  askDaemon: () => Promise<Asked>,
  signal: AbortSignal,
): Promise<RuntimeFacts> {
  if (config.containerRuntimeEndpoint !== 'embedded') {
    return gatherExternalFacts(config.containerRuntimeEndpoint, systemClock, signal)
  }
  const pause = await findPauseProgram(systemHostProbe.find)
  const ask = async (): Promise<DaemonAnswer> => containerdOf(await askDaemon())
  return gatherEmbeddedFacts(config, ask, isRoot, pause?.hostPath, systemClock)
}

type Asked = { readonly status: DaemonStatus } | { readonly error: unknown }

/** Asks the daemon when its answer is first needed, and once: one that hangs takes its time. Throws the signal's reason. */
function askLazily({ runDir }: PoddConfig, signal: AbortSignal): () => Promise<Asked> {
  let asked: Promise<Asked> | undefined
  const ask = async (): Promise<Asked> => {
    try {
      return { status: await askStatus(apiSocketPath(runDir), signal, systemClock) }
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

const embeddedFlag = '--container-runtime-endpoint embedded'

/** The timeout of each call to the runtime. */
const deadlineMs = 5_000

/** Asks a runtime about itself. One that doesn't answer is a fact too: this never throws. */
export async function gatherExternalFacts(
  endpoint: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<ExternalRuntimeFacts> {
  const silent = {
    kind: 'external',
    endpoint,
    name: '',
    version: '',
    conditions: [],
    cniPluginDirs: [],
  } as const
  const unknown = { cniConfDir: undefined, cgroupDriver: undefined, sandboxImage: undefined }
  const socketPath = /^unix:\/\/(.+)$/.exec(endpoint)?.[1]
  if (socketPath !== undefined && !existsSync(socketPath)) {
    const how = existsSync('/run/systemd/system') ? ' (systemctl start containerd)' : ''
    const hint = `Start the runtime${how}, or let podd run one: ${embeddedFlag}.`
    return { ...silent, ...unknown, failure: { message: `there is no socket at ${socketPath}`, hint } }
  }
  try {
    const client = new CriClient({ endpoint, clock, reconnectWaitMs: 0 })
    try {
      return await askRuntime(client, endpoint, signal)
    } finally {
      client.close()
    }
  } catch (error) {
    const said = error instanceof PoddError && error.hint !== undefined ? `${error.hint}\n` : ''
    const hint = `${said}Or let podd run a containerd of its own: ${embeddedFlag}.`
    return { ...silent, ...unknown, failure: { message: errorMessage(error), hint } }
  }
}

async function askRuntime(
  client: CriClient,
  endpoint: string,
  signal: AbortSignal,
): Promise<ExternalRuntimeFacts> {
  const options = { signal, deadlineMs }
  const { runtimeName, runtimeVersion } = await client.connect(signal)
  const { status, info } = await client.runtime.status({ verbose: true }, options)
  const { images } = await client.images.listImages({}, options)
  const sandboxImage = jsonAt(parseJson(info['config']), 'sandboxImage')
  const sandboxName = typeof sandboxImage === 'string' && sandboxImage !== '' ? sandboxImage : undefined
  const pinned = images.find((image) => image.pinned)?.repoTags[0]
  const names = new Set(images.flatMap((image) => image.repoTags))
  return {
    kind: 'external',
    endpoint,
    failure: undefined,
    name: runtimeName,
    version: runtimeVersion,
    conditions: status?.conditions ?? [],
    ...readCniPlaces(info),
    // A runtime that doesn't tell it has no such finding.
    cgroupDriver: await askCgroupDriver(client.runtime, options).catch(() => undefined),
    // Newer versions don't report it, but pin it.
    sandboxImage:
      sandboxName !== undefined
        ? { name: sandboxName, present: names.has(sandboxName) }
        : pinned === undefined
          ? undefined
          : { name: pinned, present: true },
  }
}

export type DaemonPorts =
  /** It runs, and reports them. */
  | { readonly kind: 'known'; readonly ports: readonly PortStatus[] }
  /** No daemon runs. */
  | { readonly kind: 'none' }
  /** @property reason why it can't be told, after `cannot tell whether podd listens at …: ` */
  | { readonly kind: 'unknown'; readonly reason: string }

type PortConfig = Pick<PoddConfig, 'apiListen' | 'readOnlyPort' | 'address'>

/**
 * The ports that the config has podd listen at: as podd says where it runs, by trying where no podd does.
 *
 * @param config undefined where the podd that answers has another one, which is not known: all ports that it reports
 */
export async function gatherPortFacts(
  config: PortConfig | undefined,
  askDaemon: () => Promise<DaemonPorts>,
): Promise<readonly PortFacts[]> {
  if (config === undefined) {
    const daemon = await askDaemon()
    if (daemon.kind !== 'known') return []
    return daemon.ports.map((port) => ({
      option: port.option,
      address: port.address,
      state: stateOf(port),
    }))
  }
  const ports = configuredPorts(config)
  if (ports.length === 0) return []
  const daemon = await askDaemon()
  return Promise.all(
    ports.map(async ({ option, address }) => ({
      option,
      address: formatAddress(address),
      state: await examinePort({ option, address }, daemon),
    })),
  )
}

interface ConfiguredPort {
  readonly option: PortOption
  readonly address: ListenAddress
}

async function examinePort(
  { option, address }: ConfiguredPort,
  daemon: DaemonPorts,
): Promise<PortFacts['state']> {
  const text = formatAddress(address)
  switch (daemon.kind) {
    case 'unknown':
      return daemon
    case 'known': {
      const served = daemon.ports.find((port) => port.option === option)
      return served?.address === text ? stateOf(served) : { kind: 'changed', served: served?.address }
    }
    case 'none': {
      const problem = await listenProblem(address)
      if (problem === undefined) return { kind: 'free' }
      return { kind: 'fails', message: `cannot listen at ${text}: ${problem}` }
    }
  }
}

function stateOf({ error }: PortStatus): PortFacts['state'] {
  return error === undefined ? { kind: 'open' } : { kind: 'fails', message: error }
}

function configuredPorts({ apiListen, readOnlyPort, address }: PortConfig): readonly ConfiguredPort[] {
  const ports: ConfiguredPort[] = []
  if (apiListen !== undefined) ports.push({ option: 'api.listen', address: apiListen })
  if (readOnlyPort !== 0)
    ports.push({ option: 'readOnlyPort', address: { host: address, port: readOnlyPort } })
  return ports
}
