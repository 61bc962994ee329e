import type { OrphanLook } from '../../decide/node/plan-orphans.ts'
import { commandOutput } from '../../host/run-command.ts'
import type { ContainerRecord, TaskRecord } from '../client/containerd-records.ts'
import type { ContainerdPlaces } from '../process/containerd-places.ts'

/** The ids that CRI knows. */
export interface CriKnowledge {
  /** All sandboxes and containers but those in creation. */
  list(): Promise<ReadonlySet<string>>
  /** Sandboxes, stopped ones included. */
  listSandboxes(): Promise<ReadonlySet<string>>
}

/** containerd's own records in CRI's namespace. */
export interface RuntimeRecords {
  containers(): Promise<readonly ContainerRecord[]>
  tasks(): Promise<readonly TaskRecord[]>
  /** Names; undefined for containerd's own snapshotter. */
  snapshots(snapshotter: string | undefined): Promise<readonly string[]>
  leases(): Promise<readonly string[]>
}

/** The programs of a containerd that runs. */
export interface ContainerdTools {
  readonly ctrPath: string
  /** Undefined for containerd's default. */
  readonly snapshotter: string | undefined
  readonly podCidrs: readonly string[]
}

export interface InventoryOptions {
  readonly places: ContainerdPlaces
  /** Undefined while containerd does not run: then nothing is found. */
  readonly tools: () => ContainerdTools | undefined
  readonly known: CriKnowledge
  readonly records: RuntimeRecords
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
  readonly #options: InventoryOptions
  readonly #looks = new WeakMap<OrphanLook, Promise<Inventory>>()

  constructor(options: InventoryOptions) {
    this.places = options.places
    this.#options = options
  }

  get tools(): ContainerdTools | undefined {
    return this.#options.tools()
  }

  get records(): RuntimeRecords {
    return this.#options.records
  }

  get known(): CriKnowledge {
    return this.#options.known
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
      known: await this.#options.known.list(),
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
