import { readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { errorCode } from '../../base/errors.ts'
import type { OrphanCollector } from '../../decide/node/plan-orphans.ts'
import { commandOutput, runCommand } from '../../host/run-command.ts'
import { readCniResults } from '../network/cni-results.ts'
import type { CniResult } from '../network/cni-results.ts'
import type { ContainerdBooks } from './containerd-books.ts'

/** Where containerd's CRI keeps the network namespaces of sandboxes (`netns_mounts_under_state_dir`). */
const namespacesDirectory = 'io.containerd.grpc.v1.cri/netns'

const networkDevices = '/sys/class/net'

const goneCodes: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ESRCH', 'EISDIR'])

/** Network namespaces of sandboxes that no process lives in. Any may be one of a sandbox in creation. */
export function namespaceOrphans(books: ContainerdBooks): OrphanCollector {
  const directory = join(books.places.stateDir, namespacesDirectory)
  const find = async (): Promise<readonly string[]> => {
    // The namespaces are listed before the processes: one that is made in between is not judged.
    const unused = selectUnused(filesIn(directory))
    if (unused.length === 0) return []
    // Those of sandboxes that have died are left to StopPodSandbox.
    const known = await books.known.listSandboxes()
    const results = (await readCniResults()).filter(({ sandboxId }) => known.has(sandboxId))
    const owned = new Set(results.flatMap(({ namespaces }) => namespaces))
    return unused.filter((path) => !owned.has(path))
  }
  return {
    kind: 'network-namespace',
    async list() {
      if (books.tools === undefined) return []
      return (await find()).map((id) => ({
        kind: 'network-namespace',
        id,
        message: 'no process lives in it',
      }))
    },
    async remove({ id }) {
      if (books.tools === undefined || !(await find()).includes(id)) return false
      // A process may have moved in while CRI was asked.
      if (selectUnused([id]).length === 0) return false
      await runCommand('umount', ['-l', id])
      await rm(id, { force: true })
      return true
    },
  }
}

/**
 * Addresses that host-local has given to sandboxes that containerd does not know. The same address is given again, so
 * an orphan's id is the address and the sandbox.
 */
export function addressOrphans(books: ContainerdBooks): OrphanCollector {
  const directory = join(books.places.cniDataDir, books.places.networkName)
  return {
    kind: 'address',
    async list(look) {
      const given = filesIn(directory)
        .filter((path) => /^[\d.]+$|:/u.test(basename(path)))
        .map((path) => ({ address: basename(path), sandbox: addressOwner(path) }))
        .filter(({ sandbox }) => sandbox !== '')
      const sandboxes = given.map(({ sandbox }) => sandbox)
      const unknown = await books.findUnknown(sandboxes, look)
      return given
        .filter(({ sandbox }) => unknown.has(sandbox))
        .map(({ address, sandbox }) => ({
          kind: 'address',
          id: `${address} ${sandbox}`,
          message: `given to sandbox ${sandbox}, which does not exist`,
        }))
    },
    async remove({ id }) {
      const [address = '', sandbox = ''] = id.split(' ')
      if (!(await books.findUnknown([sandbox])).has(sandbox)) return false
      const path = join(directory, address)
      if (addressOwner(path) !== sandbox) return false
      // At once: host-local gives an address again only when its file is gone.
      rmSync(path, { force: true })
      return true
    },
  }
}

/** What libcni remembers of sandboxes of this containerd that CRI does not list. */
export function cniResultOrphans(books: ContainerdBooks): OrphanCollector {
  return {
    kind: 'cni-result',
    async list(look) {
      const results = (await readCniResults()).filter((result) => isOwn(books, result))
      const sandboxes = results.map(({ sandboxId }) => sandboxId)
      const unknown = await books.findUnknown(sandboxes, look)
      return results
        .filter(({ sandboxId }) => unknown.has(sandboxId))
        .map(({ path, sandboxId }) => ({
          kind: 'cni-result',
          id: path,
          message: `of sandbox ${sandboxId}, which does not exist`,
        }))
    },
    async remove({ id }) {
      const sandbox = (await readCniResults()).find(({ path }) => path === id)?.sandboxId ?? ''
      if (!(await books.findUnknown([sandbox])).has(sandbox)) return false
      await rm(id, { force: true })
      return true
    },
  }
}

/**
 * The host's ends of network pairs on the pods' bridge that no sandbox has according to libcni. Where libcni has forgotten a
 * sandbox that exists, nothing is taken for an orphan. A name may be given again, so an orphan's id is the name and the
 * kernel's index.
 */
export function interfaceOrphans(books: ContainerdBooks): OrphanCollector {
  const find = async (): Promise<readonly string[]> => {
    const { bridgeName, cniDataDir, networkName } = books.places
    const onBridge = filesIn(join(networkDevices, bridgeName, 'brif')).map((path) => basename(path))
    if (onBridge.length === 0) return []
    const results = (await readCniResults()).filter((each) => each.networkName === networkName)
    const remembered = new Set(results.map(({ sandboxId }) => sandboxId))
    const known = await books.known.listSandboxes()
    const addressed = filesIn(join(cniDataDir, networkName)).map((path) => addressOwner(path))
    if (addressed.some((sandbox) => known.has(sandbox) && !remembered.has(sandbox))) return []
    const used = new Set(results.flatMap(({ hostInterfaces }) => hostInterfaces))
    return onBridge
      .filter((name) => name.startsWith('veth') && !used.has(name))
      .flatMap((name) => {
        const index = readIfThere(join(networkDevices, name, 'ifindex')).trim()
        return index === '' ? [] : [`${name} ${index}`]
      })
  }
  return {
    kind: 'interface',
    async list() {
      if (books.tools === undefined) return []
      return (await find()).map((id) => ({ kind: 'interface', id, message: 'no sandbox has its other end' }))
    },
    async remove({ id }) {
      if (books.tools === undefined || !(await find()).includes(id)) return false
      const [name = ''] = id.split(' ')
      await commandOutput('ip', ['link', 'delete', name])
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

/** Those that no process lives in; without those that are gone. Throws the system's error: it is then not known. */
function selectUnused(paths: readonly string[]): readonly string[] {
  const inodes = paths.flatMap((path) => {
    const inode = unlessGone(() => statSync(path).ino, undefined)
    return inode === undefined ? [] : [{ path, inode: String(inode) }]
  })
  const inhabited = inhabitedNamespaces()
  return inodes.filter(({ inode }) => !inhabited.has(inode)).map(({ path }) => path)
}

/**
 * The inodes of the network namespaces of all processes but init, which is no pod's and whose capabilities may keep podd
 * from reading it. Throws the system's error.
 */
export function inhabitedNamespaces(readLink: (path: string) => string = readlinkSync): ReadonlySet<string> {
  const processes = filesIn('/proc').filter((path) => /^\/proc\/\d+$/u.test(path) && path !== '/proc/1')
  return new Set(
    processes.map((path) => {
      const link = unlessGone(() => readLink(`${path}/ns/net`), '')
      return /\[(\d+)\]/u.exec(link)?.[1] ?? ''
    }),
  )
}

/** The sandbox that host-local gave an address: the first line of its file; empty where that is gone. */
function addressOwner(path: string): string {
  return readIfThere(path).split(/\r?\n/u)[0] ?? ''
}

/** Empty where there is no such directory. Throws the system's other errors. */
function filesIn(directory: string): readonly string[] {
  return unlessGone(() => readdirSync(directory), []).map((name) => join(directory, name))
}

/** Empty where there is no such file, or a directory. Throws the system's other errors. */
function readIfThere(path: string): string {
  return unlessGone(() => readFileSync(path, 'utf8'), '')
}

/** Whatever else fails must not look like an empty host. A process that has ended gives ESRCH. */
function unlessGone<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (error) {
    if (goneCodes.has(errorCode(error) ?? '')) return otherwise
    throw error
  }
}
