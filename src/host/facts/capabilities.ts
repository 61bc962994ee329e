import { readFileSync } from 'node:fs'

/** Bit numbers from linux/capability.h, of those that podd asks about. */
const capabilityBits = { CAP_SYS_ADMIN: 21, CAP_SYS_RESOURCE: 24 } as const

export type Capability = keyof typeof capabilityBits

/** Whether a process (podd itself where none is named) has a capability in effect. */
export function hasCapability(capability: Capability, statusPath = '/proc/self/status'): boolean {
  return parseEffectiveCapabilities(readFileSync(statusPath, 'utf8'), capability)
}

/** Reads CapEff of a /proc/PID/status text. */
export function parseEffectiveCapabilities(status: string, capability: Capability): boolean {
  const mask = /^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1]
  if (mask === undefined) return false
  return ((BigInt(`0x${mask}`) >> BigInt(capabilityBits[capability])) & 1n) === 1n
}
