import type { OrphanCollector } from '../../decide/node/plan-orphans.ts'
import { findExecutable } from '../../host/find-executable.ts'
import { commandOutput, runCommand } from '../../host/run-command.ts'
import { chainOf, containerChain, jumpTarget, parseTables } from '../network/forward-rules.ts'
import { lockSeconds, selectFirewalls } from '../network/firewall.ts'
import { sandboxChains } from '../network/derive-sandbox-rules.ts'
import { sandboxOf } from '../network/network-rules.ts'
import type { ContainerdInventory } from './containerd-inventory.ts'

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
  // A killed plugin may have left a chain without a rule that leads to it.
  const possible = [...ids].flatMap((id) => Object.values(sandboxChains(networkName, id)))
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

/**
 * The firewall rules and chains of sandboxes that neither containerd nor CRI has: a CNI plugin that is killed in the
 * middle of its DEL, as its call was cancelled, leaves rules that no later DEL finds. A sandbox that only CRI doesn't
 * list may still run.
 */
export function firewallOrphans(inventory: ContainerdInventory): OrphanCollector {
  const { networkName } = inventory.places
  const firewalls = () => selectFirewalls(inventory.tools?.podCidrs ?? [])
  return {
    kind: 'firewall-rules',
    async list(look) {
      if (inventory.tools === undefined) return []
      const owners = new Set<string>()
      for (const firewall of firewalls())
        for (const id of readRuleOwners(await saveRules(firewall), networkName)) owners.add(id)
      const unknown = await inventory.findUnknown([...owners], look)
      return [...owners]
        .filter((id) => unknown.has(id))
        .map((id) => ({ kind: 'firewall-rules', id, message: 'its sandbox does not exist' }))
    },
    async remove({ id }) {
      if (!(await inventory.findUnknown([id])).has(id)) return false
      for (const firewall of firewalls()) {
        const restore = findExecutable(`${firewall}-restore`)
        const script = planSandboxRemoval(await saveRules(firewall), networkName, new Set([id]))
        if (restore === undefined || script === '') continue
        await commandOutput(restore, ['--noflush', '-w', lockSeconds], { input: script })
      }
      return true
    },
  }
}

/** Empty where there is no such firewall. */
async function saveRules(firewall: string): Promise<string> {
  const save = findExecutable(`${firewall}-save`)
  if (save === undefined) return ''
  const { exitCode, stdout } = await runCommand(save, ['-t', 'nat'])
  return exitCode === 0 ? stdout : ''
}
