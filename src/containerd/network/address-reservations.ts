import { existsSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../../base/errors.ts'
import type { CniResult } from './cni-results.ts'

/** The name of a sandbox's own interface, which is CRI's choice. */
const interfaceName = 'eth0'

/** Where the plugin host-local keeps which addresses it has given: a file each, named after the address. */
export interface ReservationPlaces {
  readonly cniDataDir: string
  readonly networkName: string
}

/**
 * The addresses of these sandboxes that host-local knows nothing of, and would give to the next one: they lie in the run
 * directory, which may be emptied while pods run.
 * @param results what libcni remembers
 */
export function findUnreserved(
  { cniDataDir, networkName }: ReservationPlaces,
  results: readonly CniResult[],
): readonly { readonly address: string; readonly sandboxId: string }[] {
  return results
    .filter((result) => result.networkName === networkName)
    .flatMap(({ addresses, sandboxId }) =>
      addresses.map((withPrefix) => ({ address: withPrefix.split('/')[0] ?? '', sandboxId })),
    )
    .filter(({ address }) => !existsSync(join(cniDataDir, networkName, address)))
}

/**
 * Reserves them again, and gives those that it could: one that somebody has meanwhile stays theirs
 * (`plugins/ipam/host-local/backend/disk/backend.go`). Throws the system's error.
 */
export async function reserveAgain(
  { cniDataDir, networkName }: ReservationPlaces,
  unreserved: ReturnType<typeof findUnreserved>,
): Promise<readonly string[]> {
  const directory = join(cniDataDir, networkName)
  await mkdir(directory, { recursive: true, mode: 0o755 })
  const reserved: string[] = []
  for (const { address, sandboxId } of unreserved) {
    try {
      await writeFile(join(directory, address), `${sandboxId}\r\n${interfaceName}`, {
        flag: 'wx',
        mode: 0o644,
      })
      reserved.push(address)
    } catch (error) {
      if (errorCode(error) !== 'EEXIST') throw error
    }
  }
  return reserved
}
