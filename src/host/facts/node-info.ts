import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'

/** The machine's part of a Node's `nodeInfo`; empty where unknown. */
export interface MachineInfo {
  readonly machineId: string
  readonly systemUuid: string
  /** `Debian GNU/Linux 12 (bookworm)` */
  readonly osImage: string
}

/** @param root what stands for `/`; for tests */
export function readMachineInfo(root = ''): MachineInfo {
  const machineId = readText(`${root}/etc/machine-id`).trim()
  const release = parseEnv(readText(`${root}/etc/os-release`))
  return {
    machineId,
    systemUuid: readText(`${root}/sys/class/dmi/id/product_uuid`).trim() || machineId,
    osImage: release['PRETTY_NAME'] ?? '',
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Hosts without it, as many machines that are virtual.
    return ''
  }
}
