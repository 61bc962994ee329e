import type { Clock } from '../base/clock.ts'
import type { EmbeddedRuntimeFacts } from '../decide/host-facts.ts'
import { knownCniBinDirs, missingCniPlugins, neededCniPlugins } from './cni-plugins.ts'
import { criAnswers } from './containerd-client.ts'
import { containerdPlaces } from './containerd-places.ts'
import type { ContainerdPlaces } from './containerd-places.ts'
import { findContainerd } from './containerd-process.ts'
import { findFreeSubnets, readHostNetwork, readRecordedSubnet } from './pod-network.ts'

export interface EmbeddedFactsOptions {
  readonly rootDir: string
  readonly runDir: string
  /** What a podd that runs says is wrong with its containerd, empty where it says nothing; undefined while none runs. */
  readonly askDaemon: () => Promise<string | undefined>
  readonly clock: Clock
  /** The configured ones; empty where podd chooses. */
  readonly podCidrs: readonly string[]
  /** Where a static pause program is, if anywhere. */
  readonly pauseProgram: string | undefined
  readonly cniFolders?: readonly string[]
}

/** How things stand with an embedded containerd, whether it runs or not. Changes nothing. */
export async function gatherEmbeddedFacts(options: EmbeddedFactsOptions): Promise<EmbeddedRuntimeFacts> {
  const places = containerdPlaces(options.rootDir, options.runDir)
  const running = findContainerd(places)
  const configured = options.podCidrs.length === 0 ? undefined : options.podCidrs.join(', ')
  const recorded = configured ?? (await readRecordedSubnet(places).catch(() => undefined))
  return {
    kind: 'embedded',
    pid: running?.pid,
    failure: running === undefined ? await findFailure(options, places) : undefined,
    answers: running !== undefined && (await criAnswers(places.socketPath, options.clock, 2_000)),
    cniFolders: (options.cniFolders ?? knownCniBinDirs).map((path) => {
      const missing = missingCniPlugins(path)
      return { path, missing, hasAny: missing.length < neededCniPlugins.length }
    }),
    pauseProgram: options.pauseProgram,
    subnet: recorded ?? findFreeSubnets(places, readHostNetwork())[0],
  }
}

/** Of a containerd that doesn't run while podd does. */
async function findFailure(
  { askDaemon }: EmbeddedFactsOptions,
  { logPath, rootDir }: ContainerdPlaces,
): Promise<EmbeddedRuntimeFacts['failure']> {
  const message = await askDaemon()
  return message === undefined ? undefined : { message, logPath, dataPath: rootDir }
}
