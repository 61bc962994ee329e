import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree } from '../../base/atomic-file.ts'
import type { Clock } from '../../base/clock.ts'
import type { Orphan, OrphanCollector, OrphanLook } from '../../decide/node/plan-orphans.ts'
import { listProcesses, selectDescendants, signalProcess, waitForExit } from '../../host/processes.ts'
import type { HostProcess } from '../../host/processes.ts'
import { commandOutput, runCommand } from '../../host/run-command.ts'
import { findShims } from './process.ts'
import type { ContainerdPlaces } from './process.ts'
import type { ContainerdRecords, ContainerRecord, TaskRecord } from './records.ts'

/** The ids that CRI knows. */
export interface CriKnowledge {
  /** All sandboxes and containers but those in creation. */
  list(): Promise<ReadonlySet<string>>
  /** Sandboxes, stopped ones included. */
  listSandboxes(): Promise<ReadonlySet<string>>
}

/** containerd's own records in CRI's namespace. */
export type RuntimeRecords = Pick<ContainerdRecords, 'containers' | 'tasks' | 'snapshots' | 'leases'>

/** The programs of a containerd that runs. */
export interface ContainerdTools {
  readonly ctrPath: string
  /** Undefined for containerd's default. */
  readonly snapshotter: string | undefined
  readonly podCidrs: readonly string[]
}

/** containerd's own records in CRI's namespace, and what CRI lists. */
export interface Inventory {
  /** Of CRI's sandboxes. */
  readonly sandboxes: readonly string[]
  /** Of CRI's containers. */
  readonly containers: readonly string[]
  /** Of all containers in the namespace. */
  readonly all: ReadonlySet<string>
  readonly tasks: readonly TaskRecord[]
  /** Called last. */
  readonly known: ReadonlySet<string>
}

/** containerd's own records, read once for each look. */
export class ContainerdInventory {
  readonly places: ContainerdPlaces
  readonly known: CriKnowledge
  readonly records: RuntimeRecords
  readonly #tools: () => ContainerdTools | undefined
  readonly #looks = new WeakMap<OrphanLook, Promise<Inventory>>()

  constructor(
    places: ContainerdPlaces,
    tools: () => ContainerdTools | undefined,
    known: CriKnowledge,
    records: RuntimeRecords,
  ) {
    this.places = places
    this.known = known
    this.records = records
    this.#tools = tools
  }

  /** Undefined while containerd does not run: then nothing is found. */
  get tools(): ContainerdTools | undefined {
    return this.#tools()
  }

  /** Undefined while containerd does not run. Throws what its and CRI's calls throw. */
  async read(look: OrphanLook): Promise<Inventory | undefined> {
    if (this.tools === undefined) return undefined
    let inventory = this.#looks.get(look)
    if (inventory === undefined) {
      inventory = this.#read()
      this.#looks.set(look, inventory)
    }
    return inventory
  }

  /**
   * The ids that neither containerd nor CRI has, by lists made after the ids were found: lists that an earlier
   * collector has read in this round may be older. Throws as `read`.
   */
  async findUnknown(ids: readonly string[], look?: OrphanLook): Promise<ReadonlySet<string>> {
    if (this.tools === undefined) return new Set()
    const read = look === undefined || ids.length === 0 ? undefined : await this.read(look)
    const suspects = ids.filter((id) => read?.all.has(id) !== true && read?.known.has(id) !== true)
    if (suspects.length === 0) return new Set()
    const all = await this.listAll()
    const known = await this.known.list()
    // It has stopped meanwhile, so nothing can be said.
    if (this.tools === undefined) return new Set()
    return new Set(suspects.filter((id) => !all.has(id) && !known.has(id)))
  }

  /** All containers in CRI's namespace. Throws as `read`. */
  async listAll(): Promise<ReadonlySet<string>> {
    return new Set((await this.records.containers()).map(({ id }) => id))
  }

  /** Reads containerd's records first, then CRI's: what is created meanwhile is in both. */
  async #read(): Promise<Inventory> {
    const all = await this.records.containers()
    const tasks = await this.records.tasks()
    const ofKind = (wanted: ContainerRecord['kind']): readonly string[] =>
      all.filter(({ kind }) => kind === wanted).map(({ id }) => id)
    return {
      sandboxes: ofKind('sandbox'),
      containers: ofKind('container'),
      all: new Set(all.map(({ id }) => id)),
      tasks,
      known: await this.known.list(),
    }
  }

  /** Runs containerd's client in CRI's namespace. Throws HostCommandError; with nothing to run, gives nothing. */
  async ctr(args: readonly string[]): Promise<string> {
    const { tools } = this
    if (tools === undefined) return ''
    const { socketPath } = this.places
    return commandOutput(tools.ctrPath, ['--address', socketPath, '--namespace', 'k8s.io', ...args])
  }
}

/** What collectors find of one kind. */
export function orphansOf(kind: Orphan['kind'], ids: readonly string[], message: string): readonly Orphan[] {
  return ids.map((id) => ({ kind, id, message }))
}

/** CRI's namespace. The other namespaces belong to other clients (ctr, nerdctl). */
const namespace = 'k8s.io'

/** Where containerd keeps a shim's files, below its state and below its root. */
const bundles = `io.containerd.runtime.v2.task/${namespace}`

const shimExitMs = 2000

/**
 * Removes what containerd has left of shims' files where it was killed while it removed them: it renames such a directory
 * first, and passes over hidden ones when it starts (`runtime/v2/bundle.go`, atomicDelete, 1.6). To be called while none runs.
 */
export async function removeDeletedBundles(
  places: Pick<ContainerdPlaces, 'stateDir' | 'rootDir'>,
): Promise<void> {
  for (const directory of [places.stateDir, places.rootDir].map((path) => join(path, bundles))) {
    // Without it no shim has run.
    const names = await readdir(directory).catch(() => [])
    for (const path of names.filter((name) => name.startsWith('.')).map((name) => join(directory, name)))
      // Its file system was unmounted before that; if ever not, what is in it is none of podd's.
      if (!existsSync(join(path, 'rootfs'))) await removeTree(path)
  }
}

/**
 * Sandboxes, and containers without a task, that containerd records and CRI does not list. A containerd that is killed
 * while it creates or removes a sandbox leaves them (1.6 and 2.1); nor does CRI list each sandbox whose creation was
 * cancelled (2.1), or each container whose creation failed on a full disk.
 */
export function containerOrphans(inventory: ContainerdInventory): OrphanCollector {
  return {
    kind: 'runtime-container',
    async list(look) {
      const read = await inventory.read(look)
      if (read === undefined) return []
      const tasks = new Set(read.tasks.map(({ id }) => id))
      const found = [...read.sandboxes, ...read.containers.filter((id) => !tasks.has(id))]
      const unlisted = found.filter((id) => !read.known.has(id))
      return orphansOf('runtime-container', unlisted, 'containerd has it, and CRI does not list it')
    },
    async remove({ id }) {
      // The previous removal may have taken long.
      if ((await inventory.known.list()).has(id)) return false
      if ((await inventory.records.tasks()).some((task) => task.id === id))
        await inventory.ctr(['tasks', 'delete', '--force', id])
      await inventory.ctr(['containers', 'delete', id])
      return true
    },
  }
}

/**
 * Tasks that were created and never started: a podd that is killed during StartContainer leaves one, which CRI reports as
 * exited and then can't remove (1.6).
 */
export function taskOrphans(inventory: ContainerdInventory): OrphanCollector {
  return {
    kind: 'task',
    async list(look) {
      const read = await inventory.read(look)
      const created = (read?.tasks ?? []).filter(({ status }) => status === 'CREATED').map(({ id }) => id)
      return orphansOf('task', created, 'it was created and never started')
    },
    async remove({ id }) {
      const task = (await inventory.records.tasks()).find((each) => each.id === id)
      if (task?.status !== 'CREATED') return false
      await inventory.ctr(['tasks', 'delete', '--force', id])
      return true
    },
  }
}

/** Shims whose container containerd does not know, with what runs below them. */
export function shimOrphans(inventory: ContainerdInventory, clock: Clock): OrphanCollector {
  const { places } = inventory
  return {
    kind: 'shim',
    async list(look) {
      // First the shims, then the containers: a container is recorded before its shim starts.
      const shims = findShims(places)
      const read = shims.length === 0 ? undefined : await inventory.read(look)
      if (read === undefined || selectLeakedShims(shims, read.all).length === 0) return []
      // An earlier collector may have read them before the shims were listed.
      const leaked = selectLeakedShims(shims, await inventory.listAll()).map(({ id }) => id)
      return orphansOf('shim', leaked, 'its container is unknown to containerd')
    },
    async remove({ id }) {
      const all = await inventory.listAll()
      const leaked = selectLeakedShims(findShims(places), all).find((each) => each.id === id)
      if (leaked === undefined || all.has(id)) return false
      const { shim } = leaked
      for (const child of selectDescendants(listProcesses(), [shim.pid])) signalProcess(child, 'SIGKILL')
      signalProcess(shim, 'SIGKILL')
      await waitForExit(shim, shimExitMs, clock)
      const bundle = join(places.stateDir, bundles, id)
      await runCommand('umount', ['-l', join(bundle, 'rootfs')])
      await removeTree(bundle)
      await removeTree(join(places.rootDir, bundles, id))
      return true
    },
  }
}

/** The shims of CRI's namespace whose container is not among those that containerd knows there. */
export function selectLeakedShims(
  shims: readonly HostProcess[],
  known: ReadonlySet<string>,
): readonly { readonly shim: HostProcess; readonly id: string }[] {
  return shims.flatMap((shim) => {
    const id = valueOf(shim.argv, '-id')
    if (id === undefined || valueOf(shim.argv, '-namespace') !== namespace) return []
    return !/^\w[\w-]*$/.test(id) || known.has(id) ? [] : [{ shim, id }]
  })
}

function valueOf(argv: readonly string[], flag: string): string | undefined {
  const index = argv.indexOf(flag)
  return index === -1 ? undefined : argv[index + 1]
}

/** CRI names what it makes for a sandbox or container by its id. */
const criId = /^[0-9a-f]{64}$/u

/**
 * The snapshots of containers that containerd no longer knows: when it is killed between creating a container's
 * snapshot and recording the container, a lease holds the snapshot for a day (`client.NewContainer`, WithLease).
 */
export function snapshotOrphans(inventory: ContainerdInventory): OrphanCollector {
  return {
    kind: 'snapshot',
    async list(look) {
      if (inventory.tools === undefined) return []
      const names = await inventory.records.snapshots(inventory.tools.snapshotter)
      const unknown = await inventory.findUnknown(criIds(names), look)
      return orphansOf('snapshot', [...unknown], 'its container is unknown to containerd')
    },
    async remove({ id }) {
      if (!(await inventory.findUnknown([id])).has(id)) return false
      const { snapshotter } = inventory.tools ?? {}
      const flag = snapshotter === undefined ? [] : ['--snapshotter', snapshotter]
      await inventory.ctr(['snapshots', ...flag, 'remove', id])
      return true
    },
  }
}

/** Leases of sandboxes that CRI no longer lists; containerd 2 makes one for each. Others expire within a day. */
export function leaseOrphans(inventory: ContainerdInventory): OrphanCollector {
  return {
    kind: 'lease',
    async list(look) {
      if (inventory.tools === undefined) return []
      const unknown = await inventory.findUnknown(criIds(await inventory.records.leases()), look)
      return orphansOf('lease', [...unknown], 'its sandbox is unknown to containerd')
    },
    async remove({ id }) {
      if (!(await inventory.findUnknown([id])).has(id)) return false
      await inventory.ctr(['leases', 'delete', id])
      return true
    },
  }
}

/** Only those that CRI has made. */
function criIds(names: readonly string[]): readonly string[] {
  return names.filter((name) => criId.test(name))
}
