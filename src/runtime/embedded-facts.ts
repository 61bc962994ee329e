import { access, readdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { errorCode, errorMessage } from '../base/errors.ts'
import { readBounded } from '../base/read-bounded.ts'
import type { PoddConfig } from '../config/options.ts'
import type { EmbeddedRuntimeFacts, RegistryHostsFacts } from '../decide/doctor/host-facts.ts'
import { readHostsFile } from '../decide/doctor/registry-hosts.ts'
import { findExecutable } from '../host/run-command.ts'
import type { HostProcess } from '../host/processes.ts'
import { containerdPlaces, findContainerd, findShims } from './containerd/process.ts'
import type { ContainerdPlaces } from './containerd/process.ts'
import { criAnswers } from './containerd/start.ts'
import { findNewer, readContainerdVersion } from './containerd/version.ts'
import { describeRepairs, findBridgeFaults } from './network/pod-bridge.ts'
import {
  findFreeSubnets,
  knownCniBinDirs,
  missingCniPlugins,
  neededCniPlugins,
  readHostNetwork,
  readRecordedSubnet,
} from './network/pod-network.ts'

/** What the running podd reports as wrong with its containerd; empty where it reports nothing. */
export type DaemonAnswer =
  | { readonly kind: 'runs'; readonly message: string }
  | { readonly kind: 'none' }
  /** podd may not ask it. */
  | { readonly kind: 'unknown' }

/**
 * Gathers the facts about an embedded containerd, whether it runs or not. Changes nothing.
 * @param isRoot who may open containerd's socket
 * @param pauseProgram the path of a static one, if there is one
 */
export async function gatherEmbeddedFacts(
  config: Pick<PoddConfig, 'rootDir' | 'runDir' | 'podCidrs' | 'registryConfigDir'>,
  askDaemon: () => Promise<DaemonAnswer>,
  isRoot: boolean,
  pauseProgram: string | undefined,
  clock: Clock,
): Promise<EmbeddedRuntimeFacts> {
  const places = containerdPlaces(config.rootDir, config.runDir)
  const running = findContainerd(places)
  const configured = config.podCidrs.length === 0 ? undefined : config.podCidrs.join(', ')
  // Without root it can't be read, which `podd doctor` reports; a free one stands in for it.
  const recorded = configured ?? (await readRecordedSubnet(places).catch(() => undefined))
  return {
    kind: 'embedded',
    pid: running?.pid,
    ...(running === undefined
      ? await explainAbsence(askDaemon, places)
      : await askContainerd(places, isRoot, clock)),
    newerVersion: await findNewerVersion(places, running),
    // Without root libcni's results can't be read, which `podd doctor` reports.
    networkFaults: describeRepairs(places.bridgeName, await findBridgeFaults(places).catch(() => [])),
    cniDirectories: knownCniBinDirs.map((path) => {
      const missing = missingCniPlugins(path)
      return { path, missing, hasAny: missing.length < neededCniPlugins.length }
    }),
    pauseProgram,
    registryHosts: await readRegistryHosts(config.registryConfigDir, clock),
    subnet: recorded ?? findFreeSubnets(places, readHostNetwork())[0],
  }
}

/** Where the installed one is older; also undefined where none is installed. */
async function findNewerVersion(
  places: ContainerdPlaces,
  running: HostProcess | undefined,
): Promise<string | undefined> {
  const containerdPath = findExecutable('containerd')
  if (containerdPath === undefined || findShims(places).length === 0) return undefined
  try {
    const version = await readContainerdVersion(containerdPath)
    return (await findNewer(places, { containerdPath, version }, running))?.text
  } catch {
    // The installed one can't be used: another check reports it.
    return undefined
  }
}

type Health = Pick<EmbeddedRuntimeFacts, 'answers' | 'failure'>

/** The facts about a running containerd. */
async function askContainerd(
  { socketPath }: ContainerdPlaces,
  isRoot: boolean,
  clock: Clock,
): Promise<Health> {
  const answers = await criAnswers(socketPath, clock, 2_000)
  return { answers: answers || isRoot ? answers : undefined, failure: undefined }
}

/** The facts about a containerd that doesn't run; podd may report why. */
async function explainAbsence(
  askDaemon: () => Promise<DaemonAnswer>,
  { logPath, rootDir }: ContainerdPlaces,
): Promise<Health> {
  const said = await askDaemon()
  const failure = said.kind === 'runs' ? { message: said.message, logPath, dataPath: rootDir } : undefined
  return { answers: said.kind === 'unknown' ? undefined : false, failure }
}

const maxBytes = 1024 * 1024

/** Looks at the `hosts.toml` of each registry in the directory. Never throws. */
async function readRegistryHosts(directory: string, clock: Clock): Promise<RegistryHostsFacts> {
  try {
    const entries = await readdir(directory, { withFileTypes: true })
    const names = entries.filter((entry) => !entry.isFile()).map(({ name }) => name)
    const found = await Promise.all(names.map((name) => readRegistry(join(directory, name), clock)))
    return { directory, registries: names.length, problems: found.flat() }
  } catch (error) {
    const problems = errorCode(error) === 'ENOENT' ? [] : [`${directory}: ${errorMessage(error)}`]
    return { directory, registries: 0, problems }
  }
}

async function readRegistry(directory: string, clock: Clock): Promise<readonly string[]> {
  const path = join(directory, 'hosts.toml')
  try {
    const bytes = await readBounded(path, { maxBytes, clock })
    const { problems, files } = readHostsFile(bytes.subarray(0, maxBytes).toString('utf8'))
    const missing = await Promise.all(files.map((file) => whyMissing(resolve(directory, file))))
    return [...problems, ...missing.flat()].map((problem) => `${path}: ${problem}`)
  } catch (error) {
    // Without one, the certificates beside it count.
    return errorCode(error) === 'ENOENT' ? [] : [`${path}: ${errorMessage(error)}`]
  }
}

async function whyMissing(path: string): Promise<readonly string[]> {
  try {
    await access(path)
    return []
  } catch (error) {
    return [errorMessage(error)]
  }
}
