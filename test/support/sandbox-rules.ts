import { chainOf, containerChain, jumpTarget, tableOf } from '../../src/runtime/network/forward-rules.ts'
import { sandboxOf } from '../../src/runtime/network/network-rules.ts'

/** The rules that the CNI plugins made for each sandbox of a network, with its own chain, in what iptables-save printed. */
export function readSandboxRules(saved: string, networkName: string): ReadonlyMap<string, readonly string[]> {
  const rules = tableOf(saved, 'nat')?.rules ?? []
  const found = new Map<string, readonly string[]>()
  for (const rule of rules) {
    const id = sandboxOf(rule, networkName)
    if (id === undefined) continue
    const chain = jumpTarget(rule) ?? ''
    const own = containerChain.test(chain) ? rules.filter((each) => chainOf(each) === chain) : []
    found.set(id, [...(found.get(id) ?? []), ...own, rule])
  }
  return found
}
