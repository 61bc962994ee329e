import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { OrphanCollector, OrphanKind } from '../../decide/node/plan-orphans.ts'
import { commandOutput, runCommand } from '../../host/run-command.ts'
import { readCniResults } from '../network/cni-results.ts'
import type { CniResult } from '../network/cni-results.ts'
import type { ContainerdBooks } from './containerd-books.ts'

/** Where containerd's CRI keeps the network namespaces of sandboxes (`netns_mounts_under_state_dir`). */
const namespacesDirectory = 'io.containerd.grpc.v1.cri/netns'

const networkDevices = '/sys/class/net'

/** Network namespaces of sandboxes that no process lives in. Any may be one of a sandbox in creation. */
export function namespaceOrphans(books: ContainerdBooks): OrphanCollector {
  const isUnused = (path: string) => !inhabitedNamespaces().has(inodeOf(path))
  return {
    kind: 'network-namespace',
    async list() {
      if (books.tools === undefined) return []
      const inhabited = inhabitedNamespaces()
      const unused = filesIn(join(books.places.stateDir, namespacesDirectory)).filter(
        (path) => !inhabited.has(inodeOf(path)),
      )
      if (unused.length === 0) return []
      // Those of sandboxes that have died are left to StopPodSandbox.
      const known = await books.known.listSandboxes()
      const results = (await readCniResults()).filter(({ sandboxId }) => known.has(sandboxId))
      const owned = new Set(results.flatMap(({ namespaces }) => namespaces))
      return unused
        .filter((path) => !owned.has(path))
        .map((id) => ({ kind: 'network-namespace', id, message: 'no process lives in it' }))
    },
    async remove({ id }) {
      if (!isUnused(id)) return false
      await runCommand('umount', ['-l', id])
      await rm(id, { force: true })
      return true
    },
  }
}

/** Addresses that host-local has given to sandboxes that containerd does not know. */
export function addressOrphans(books: ContainerdBooks): OrphanCollector {
  const directory = join(books.places.cniDataDir, books.places.networkName)
  return {
    kind: 'address',
    async list(look) {
      const files = filesIn(directory).filter((path) => /^[\d.]+$|:/u.test(basename(path)))
      const read = files.length === 0 ? undefined : await books.read(look)
      if (read === undefined) return []
      return files.flatMap((path) => {
        // host-local writes the sandbox's id into its first line.
        const [sandbox = ''] = readOr(path).split(/\r?\n/u)
        if (sandbox === '' || read.all.has(sandbox) || read.known.has(sandbox)) return []
        return [{ kind: 'address', id: path, message: `given to sandbox ${sandbox}, which does not exist` }]
      })
    },
    remove: removeFile,
  }
}

/** What libcni remembers of sandboxes of this containerd that CRI does not list. */
export function cniResultOrphans(books: ContainerdBooks): OrphanCollector {
  return {
    kind: 'cni-result',
    async list(look) {
      const results = (await readCniResults()).filter((result) => isOwn(books, result))
      const read = results.length === 0 ? undefined : await books.read(look)
      if (read === undefined) return []
      return results
        .filter(({ sandboxId }) => !read.all.has(sandboxId) && !read.known.has(sandboxId))
        .map(({ path, sandboxId }) => ({
          kind: 'cni-result',
          id: path,
          message: `of sandbox ${sandboxId}, which does not exist`,
        }))
    },
    remove: removeFile,
  }
}

/**
 * The host's ends of network pairs on the pods' bridge that no sandbox has according to libcni. Where libcni has forgotten a
 * sandbox that exists, nothing is taken for an orphan.
 */
export function interfaceOrphans(books: ContainerdBooks): OrphanCollector {
  const find = async (): Promise<readonly string[]> => {
    const { bridgeName, cniDataDir, networkName } = books.places
    const onBridge = filesIn(join(networkDevices, bridgeName, 'brif')).map((path) => basename(path))
    if (onBridge.length === 0) return []
    const results = (await readCniResults()).filter((each) => each.networkName === networkName)
    const remembered = new Set(results.map(({ sandboxId }) => sandboxId))
    const known = await books.known.listSandboxes()
    const addressed = filesIn(join(cniDataDir, networkName)).map(
      (path) => readOr(path).split(/\r?\n/u)[0] ?? '',
    )
    if (addressed.some((sandbox) => known.has(sandbox) && !remembered.has(sandbox))) return []
    const used = new Set(results.flatMap(({ hostInterfaces }) => hostInterfaces))
    return onBridge.filter((name) => name.startsWith('veth') && !used.has(name))
  }
  return {
    kind: 'interface',
    async list() {
      if (books.tools === undefined) return []
      return (await find()).map((id) => ({ kind: 'interface', id, message: 'no sandbox has its other end' }))
    },
    async remove({ id }) {
      if (!(await find()).includes(id)) return false
      await commandOutput('ip', ['link', 'delete', id])
      return true
    },
  }
}

/** Those of the pods' network, and the loopback network's of namespaces that this containerd made. */
function isOwn({ places }: ContainerdBooks, { networkName, namespaces }: CniResult): boolean {
  return (
    networkName === places.networkName || namespaces.some((path) => path.startsWith(`${places.stateDir}/`))
  )
}

async function removeFile({ id }: { readonly kind: OrphanKind; readonly id: string }): Promise<boolean> {
  await rm(id, { force: true })
  return true
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
    // It is gone.
    return ''
  }
}

function filesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).map((name) => join(directory, name))
  } catch {
    // It is not there.
    return []
  }
}

function readOr(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // It is gone.
    return ''
  }
}
