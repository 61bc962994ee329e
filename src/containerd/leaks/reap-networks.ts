import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { runCommand } from '../../host/run-command.ts'
import type { ContainerdPlaces } from '../process/containerd-places.ts'

/** Where containerd's CRI keeps the network namespaces of sandboxes (`netns_mounts_under_state_dir`). */
const namespacesDirectory = 'io.containerd.grpc.v1.cri/netns'

/**
 * Paths of network namespaces that no process lives in, and of addresses that are given to a sandbox that
 * containerd doesn't know. Either may be a sandbox in the making: what is found twice, with a while between,
 * was left by a containerd that was killed.
 */
export function findUnusedNetworks(
  places: ContainerdPlaces,
  knownIds: readonly string[],
): { readonly namespaces: readonly string[]; readonly addresses: readonly string[] } {
  const inhabited = inhabitedNamespaces()
  const addressDirectory = join(places.cniDataDir, places.networkName)
  return {
    namespaces: filesIn(join(places.stateDir, namespacesDirectory)).filter(
      (path) => !inhabited.has(inodeOf(path)),
    ),
    addresses: filesIn(addressDirectory).filter((path) => {
      if (!/\/[\d.]+$|:/.test(path.slice(addressDirectory.length))) return false
      // host-local writes the sandbox's id into its first line.
      const [id = ''] = readOr(path).split(/\r?\n/)
      return id !== '' && !knownIds.includes(id)
    }),
  }
}

export async function removeNetworkNamespace(path: string): Promise<void> {
  await runCommand('umount', ['-l', path])
  await rm(path, { force: true })
}

function inhabitedNamespaces(): ReadonlySet<string> {
  return new Set(
    filesIn('/proc')
      .filter((path) => /^\/proc\/\d+$/.test(path))
      .flatMap((path) => {
        try {
          return [/\[(\d+)\]/.exec(readlinkSync(`${path}/ns/net`))?.[1] ?? '']
        } catch {
          // It ended in the meantime.
          return []
        }
      }),
  )
}

function inodeOf(path: string): string {
  try {
    return String(statSync(path).ino)
  } catch {
    // It went meanwhile.
    return ''
  }
}

function filesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).map((name) => join(directory, name))
  } catch {
    // There is no such directory yet.
    return []
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // It went meanwhile.
    return ''
  }
}
