import { uptime } from 'node:os'
import { readHostInfo } from '../../host/facts/host-info.ts'
import { readNodeAddress } from '../../host/addresses.ts'

/** A one-line summary of the host. */
export interface HostSummary {
  readonly name: string
  readonly address: string
  readonly kernel: string
  readonly cpus: number
  readonly memoryBytes: number
  /** Since the boot. */
  readonly upSeconds: number
  readonly bootId: string
}

export function summarizeHost(): HostSummary {
  const { hostname, kernel, cpus, memoryBytes, bootId } = readHostInfo()
  const upSeconds = Math.round(uptime())
  return { name: hostname, address: readNodeAddress(), kernel, cpus, memoryBytes, upSeconds, bootId }
}
