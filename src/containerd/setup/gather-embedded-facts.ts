import type { Clock } from '../../base/clock.ts'
import type { EmbeddedRuntimeFacts } from '../../decide/doctor/host-facts.ts'
import { knownCniBinDirs, missingCniPlugins, neededCniPlugins } from '../network/cni-plugins.ts'
import { criAnswers } from '../process/cri-answers.ts'
import { containerdPlaces } from '../process/containerd-places.ts'
import type { ContainerdPlaces } from '../process/containerd-places.ts'
import { findContainerd, findShims } from '../process/containerd-process.ts'
import { readContainerdVersion } from '../process/containerd-version.ts'
import { findNewer } from '../process/newer-containerd.ts'
import { describeRepairs } from '../network/plan-bridge-repair.ts'
import { findBridgeFaults } from '../network/pod-bridge.ts'
import { findExecutable } from '../../host/find-executable.ts'
import type { HostProcess } from '../../host/processes.ts'
import { readRegistryHosts } from './read-registry-hosts.ts'
import { findFreeSubnets, readHostNetwork, readRecordedSubnet } from '../network/pod-network.ts'

/** What the running podd reports as wrong with its containerd; empty where it reports nothing. */
export type DaemonAnswer =
  | { readonly kind: 'runs'; readonly message: string }
  | { readonly kind: 'none' }
  /** podd may not ask it. */
  | { readonly kind: 'unknown' }

export interface EmbeddedFactsOptions {
  readonly rootDir: string
  readonly runDir: string
  readonly askDaemon: () => Promise<DaemonAnswer>
  readonly clock: Clock
  /** Only root may open containerd's socket. */
  readonly isRoot: boolean
  /** The configured ones; empty where podd chooses. */
  readonly podCidrs: readonly string[]
  /** Where the settings of registries are. */
  readonly registryConfigDir: string
  /** The path of a static pause program, if there is one. */
  readonly pauseProgram: string | undefined
  readonly cniDirectories?: readonly string[]
}

/** Gathers the facts about an embedded containerd, whether it runs or not. Changes nothing. */
export async function gatherEmbeddedFacts(options: EmbeddedFactsOptions): Promise<EmbeddedRuntimeFacts> {
  const places = containerdPlaces(options.rootDir, options.runDir)
  const running = findContainerd(places)
  const configured = options.podCidrs.length === 0 ? undefined : options.podCidrs.join(', ')
  // Without root it can't be read, which `podd doctor` reports; a free one stands in for it.
  const recorded = configured ?? (await readRecordedSubnet(places).catch(() => undefined))
  return {
    kind: 'embedded',
    pid: running?.pid,
    ...(running === undefined ? await explainAbsence(options, places) : await askContainerd(options, places)),
    newerVersion: await findNewerVersion(places, running),
    // Without root libcni's results can't be read, which `podd doctor` reports.
    networkFaults: describeRepairs(places.bridgeName, await findBridgeFaults(places).catch(() => [])),
    cniDirectories: (options.cniDirectories ?? knownCniBinDirs).map((path) => {
      const missing = missingCniPlugins(path)
      return { path, missing, hasAny: missing.length < neededCniPlugins.length }
    }),
    pauseProgram: options.pauseProgram,
    registryHosts: await readRegistryHosts(options.registryConfigDir, options.clock),
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
  { clock, isRoot }: EmbeddedFactsOptions,
  { socketPath }: ContainerdPlaces,
): Promise<Health> {
  const answers = await criAnswers(socketPath, clock, 2_000)
  return { answers: answers || isRoot ? answers : undefined, failure: undefined }
}

/** The facts about a containerd that doesn't run; podd may report why. */
async function explainAbsence(
  { askDaemon }: EmbeddedFactsOptions,
  { logPath, rootDir }: ContainerdPlaces,
): Promise<Health> {
  const said = await askDaemon()
  switch (said.kind) {
    case 'runs':
      return { answers: false, failure: { message: said.message, logPath, dataPath: rootDir } }
    case 'none':
      return { answers: false, failure: undefined }
    case 'unknown':
      return { answers: undefined, failure: undefined }
  }
}
