import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import { findExecutable } from '../../host/find-executable.ts'
import { commandOutput, runCommand } from '../../host/run-command.ts'
import { listCniResults, removeCniResults } from '../network/cni-results.ts'
import type { ContainerdPlaces } from '../process/containerd-places.ts'
import {
  chainOf,
  containerChain,
  jumpTarget,
  parseTables,
  selectFirewalls,
} from '../network/forward-rules.ts'
import { sandboxOf } from '../network/network-rules.ts'

const lockSeconds = '5'

/** A sandbox gets its rules before the runtime knows it. What a killed podd asked for is done, or given up, by then. */
const unknownForMs = 30_000

/** How often it is looked although no sandbox has come or gone: what was never known to the runtime leaves rules, too. */
const lookAtLeastMs = 10 * 60_000

/** What the runtime knows. */
export interface KnownSandboxes {
  /** The ids of all sandboxes, stopped ones included, but those in the making. */
  list(): Promise<ReadonlySet<string>>
  /** Whether one is in the making that was asked for by then (monotonic time). */
  isAnyInTheMaking(sinceMs: number): boolean
}

/** The sandboxes that rules of the table `nat` name as theirs, on this network. */
export function readRuleOwners(saved: string, networkName: string): ReadonlySet<string> {
  const rules = parseTables(saved).find(({ name }) => name === 'nat')?.rules ?? []
  return new Set(rules.flatMap((rule) => sandboxOf(rule, networkName) ?? []))
}

/** The input of iptables-restore (with --noflush) that removes all rules and chains of these sandboxes; empty where there are none. */
export function planSandboxRemoval(saved: string, networkName: string, ids: ReadonlySet<string>): string {
  const nat = parseTables(saved).find(({ name }) => name === 'nat')
  if (nat === undefined) return ''
  const named = nat.rules.filter((rule) => ids.has(sandboxOf(rule, networkName) ?? ''))
  // A plugin that was killed may have left a chain to which no rule leads any more.
  const possible = [...ids].flatMap((id) => chainNames(networkName, id))
  const chains = new Set([
    ...named.flatMap((rule) => jumpTarget(rule) ?? []).filter((chain) => containerChain.test(chain)),
    ...nat.chains.filter((chain) => possible.includes(chain)),
  ])
  const rules = named.filter((rule) => !chains.has(chainOf(rule)))
  if (rules.length === 0 && chains.size === 0) return ''
  return [
    '*nat',
    ...rules.map((rule) => `-D ${rule}`),
    ...[...chains].map((chain) => `-F ${chain}`),
    ...[...chains].map((chain) => `-X ${chain}`),
    'COMMIT',
    '',
  ].join('\n')
}

/** What the plugins call the chains of a sandbox: for masquerading, and for host ports (`plugins/pkg/utils/utils.go`). */
function chainNames(networkName: string, id: string): readonly string[] {
  const hash = createHash('sha512').update(`${networkName}${id}`).digest('hex')
  return [`CNI-${hash}`, `CNI-DN-${hash}`].map((name) => name.slice(0, 28))
}

/**
 * Removes what sandboxes have left in the firewall: a CNI plugin that is killed in the middle of its DEL, as its call
 * was cancelled, leaves rules that no later DEL finds.
 */
export class LeakedRules {
  readonly #places: ContainerdPlaces
  readonly #clock: Clock
  /** Sandboxes that the runtime doesn't know, by when that was found first. */
  #suspects: ReadonlyMap<string, number> = new Map()
  #known: ReadonlySet<string> = new Set()
  #lookedMs = -Infinity

  constructor(places: ContainerdPlaces, clock: Clock) {
    this.#places = places
    this.#clock = clock
  }

  /**
   * Starts no program for minutes while no sandbox comes or goes and none is suspected.
   *
   * @returns the sandboxes whose rules were removed
   */
  async check(podCidrs: readonly string[], sandboxes: KnownSandboxes): Promise<readonly string[]> {
    const listed = await sandboxes.list()
    const hasChanged = listed.size !== this.#known.size || [...listed].some((id) => !this.#known.has(id))
    this.#known = listed
    const nowMs = this.#clock.monotonicMs()
    if (!hasChanged && this.#suspects.size === 0 && nowMs - this.#lookedMs < lookAtLeastMs) return []
    this.#lookedMs = nowMs
    const owners = await this.#listOwners(podCidrs)
    // After the look: what was made meanwhile is known by now.
    const known = await sandboxes.list()
    this.#suspects = new Map(
      [...owners].filter((id) => !known.has(id)).map((id) => [id, this.#suspects.get(id) ?? nowMs]),
    )
    const leaked = [...this.#suspects].filter(
      ([, sinceMs]) => nowMs - sinceMs >= unknownForMs && !sandboxes.isAnyInTheMaking(sinceMs),
    )
    const ids = new Set(leaked.map(([id]) => id))
    if (ids.size > 0) await this.#remove(podCidrs, ids)
    return [...ids]
  }

  async #listOwners(podCidrs: readonly string[]): Promise<ReadonlySet<string>> {
    const { networkName } = this.#places
    const owners = new Set(await listCniResults(networkName))
    for (const firewall of selectFirewalls(podCidrs))
      for (const id of readRuleOwners(await saveRules(firewall), networkName)) owners.add(id)
    return owners
  }

  async #remove(podCidrs: readonly string[], ids: ReadonlySet<string>): Promise<void> {
    const { networkName } = this.#places
    for (const firewall of selectFirewalls(podCidrs)) {
      const restore = findExecutable(`${firewall}-restore`)
      const script = planSandboxRemoval(await saveRules(firewall), networkName, ids)
      if (restore === undefined || script === '') continue
      await commandOutput(restore, ['--noflush', '-w', lockSeconds], { input: script })
    }
    await removeCniResults(networkName, { ids })
  }
}

/** Empty where there is no such firewall. */
async function saveRules(firewall: string): Promise<string> {
  const save = findExecutable(`${firewall}-save`)
  if (save === undefined) return ''
  const { exitCode, stdout } = await runCommand(save, ['-t', 'nat'])
  return exitCode === 0 ? stdout : ''
}
