import { readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { errorCode } from '../../base/errors.ts'
import type { OrphanCollector } from '../../decide/node/plan-orphans.ts'
import { findExecutable, commandOutput, runCommand } from '../../host/run-command.ts'
import { orphansOf } from '../containerd/leaks.ts'
import type { ContainerdInventory } from '../containerd/leaks.ts'
import { readCniResults } from './cni-results.ts'
import type { CniResult } from './cni-results.ts'
import {
  chainOf,
  containerChain,
  formatRemoval,
  jumpTarget,
  lockSeconds,
  selectFirewalls,
  tableOf,
} from './forward-rules.ts'
import { sandboxChains, sandboxOf } from './network-rules.ts'

/** Where containerd's CRI keeps the network namespaces of sandboxes (`netns_mounts_under_state_dir`). */
const namespacesDirectory = 'io.containerd.grpc.v1.cri/netns'

const networkDevices = '/sys/class/net'

const goneCodes: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ESRCH', 'EISDIR'])

/** Network namespaces of sandboxes without any process. Any of them may belong to a sandbox in creation. */
export function namespaceOrphans(inventory: ContainerdInventory): OrphanCollector {
  const directory = join(inventory.places.stateDir, namespacesDirectory)
  const find = async (): Promise<readonly string[]> => {
    // The namespaces are listed before the processes, so that one made in between is not judged.
    const unused = selectUnused(filesIn(directory))
    if (unused.length === 0) return []
    // Those of sandboxes that have died are left to StopPodSandbox.
    const known = await inventory.known.listSandboxes()
    const results = (await readCniResults()).filter(({ sandboxId }) => known.has(sandboxId))
    const owned = new Set(results.flatMap(({ namespaces }) => namespaces))
    return unused.filter((path) => !owned.has(path))
  }
  return {
    kind: 'network-namespace',
    async list() {
      if (inventory.tools === undefined) return []
      return orphansOf('network-namespace', await find(), 'no process lives in it')
    },
    async remove({ id }) {
      if (inventory.tools === undefined || !(await find()).includes(id)) return false
      // A process may have entered it meanwhile.
      if (selectUnused([id]).length === 0) return false
      await runCommand('umount', ['-l', id])
      await rm(id, { force: true })
      return true
    },
  }
}

/**
 * Addresses that host-local has assigned to sandboxes unknown to containerd. Addresses are reused, so an orphan's id is
 * the address and the sandbox.
 */
export function addressOrphans(inventory: ContainerdInventory): OrphanCollector {
  const directory = join(inventory.places.cniDataDir, inventory.places.networkName)
  return {
    kind: 'address',
    async list(look) {
      const given = filesIn(directory)
        .filter((path) => /^[\d.]+$|:/u.test(basename(path)))
        .map((path) => ({ address: basename(path), sandbox: addressOwner(path) }))
        .filter(({ sandbox }) => sandbox !== '')
      const sandboxes = given.map(({ sandbox }) => sandbox)
      const unknown = await inventory.findUnknown(sandboxes, look)
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
      if (!(await inventory.findUnknown([sandbox])).has(sandbox)) return false
      const path = join(directory, address)
      if (addressOwner(path) !== sandbox) return false
      // Without waiting: host-local reuses an address only when its file is gone.
      rmSync(path, { force: true })
      return true
    },
  }
}

/** What libcni remembers of sandboxes of this containerd that CRI does not list. */
export function cniResultOrphans(inventory: ContainerdInventory): OrphanCollector {
  return {
    kind: 'cni-result',
    async list(look) {
      const results = (await readCniResults()).filter((result) => isOwn(inventory, result))
      const sandboxes = results.map(({ sandboxId }) => sandboxId)
      const unknown = await inventory.findUnknown(sandboxes, look)
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
      if (!(await inventory.findUnknown([sandbox])).has(sandbox)) return false
      await rm(id, { force: true })
      return true
    },
  }
}

/**
 * The host's ends of network pairs on the pods' bridge that no sandbox has according to libcni. Where libcni has no
 * result of an existing sandbox, nothing counts as an orphan. Names may be reused, so an orphan's id is the name and
 * the kernel's index.
 */
export function interfaceOrphans(inventory: ContainerdInventory): OrphanCollector {
  const find = async (): Promise<readonly string[]> => {
    const { bridgeName, cniDataDir, networkName } = inventory.places
    const onBridge = filesIn(join(networkDevices, bridgeName, 'brif')).map((path) => basename(path))
    if (onBridge.length === 0) return []
    const results = (await readCniResults()).filter((each) => each.networkName === networkName)
    const remembered = new Set(results.map(({ sandboxId }) => sandboxId))
    const known = await inventory.known.listSandboxes()
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
      if (inventory.tools === undefined) return []
      return orphansOf('interface', await find(), 'no sandbox has its other end')
    },
    async remove({ id }) {
      if (inventory.tools === undefined || !(await find()).includes(id)) return false
      const [name = ''] = id.split(' ')
      await commandOutput('ip', ['link', 'delete', name])
      return true
    },
  }
}

/** The results of the pods' network, and those of the loopback network in namespaces that this containerd made. */
function isOwn({ places }: ContainerdInventory, { networkName, namespaces }: CniResult): boolean {
  return (
    networkName === places.networkName || namespaces.some((path) => path.startsWith(`${places.stateDir}/`))
  )
}

/** The namespaces without any process, but those that are gone. Throws the system's errors. */
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

/** Any other error must not look like an empty host. A process that has ended gives ESRCH. */
function unlessGone<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch (error) {
    if (goneCodes.has(errorCode(error) ?? '')) return otherwise
    throw error
  }
}

/** The sandboxes that rules of the table `nat` name as theirs, on this network. */
export function readRuleOwners(saved: string, networkName: string): ReadonlySet<string> {
  const rules = tableOf(saved, 'nat')?.rules ?? []
  return new Set(rules.flatMap((rule) => sandboxOf(rule, networkName) ?? []))
}

/** The input of iptables-restore (with --noflush) that removes all rules and chains of these sandboxes; empty where there are none. */
export function planSandboxRemoval(saved: string, networkName: string, ids: ReadonlySet<string>): string {
  const nat = tableOf(saved, 'nat')
  if (nat === undefined) return ''
  const named = nat.rules.filter((rule) => ids.has(sandboxOf(rule, networkName) ?? ''))
  // A killed plugin may have left a chain without a rule that leads to it.
  const possible = [...ids].flatMap((id) => Object.values(sandboxChains(networkName, id)))
  const chains = new Set([
    ...named.flatMap((rule) => jumpTarget(rule) ?? []).filter((chain) => containerChain.test(chain)),
    ...nat.chains.filter((chain) => possible.includes(chain)),
  ])
  const rules = named.filter((rule) => !chains.has(chainOf(rule)))
  return formatRemoval('nat', { rules, chains: [...chains] })
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
      return orphansOf('firewall-rules', [...unknown], 'its sandbox does not exist')
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
