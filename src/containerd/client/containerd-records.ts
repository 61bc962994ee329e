import type { Clock } from '../../base/clock.ts'
import { isJsonObject } from '../../base/json.ts'
import type { WireMethod } from '../../grpc/load-proto.ts'
import { criHeaders, kindLabel, methodOf, objectsIn, withDeadline } from './containerd-calls.ts'
import type { ContainerdChannel, ServiceDefinitions } from './containerd-calls.ts'

export interface ContainerRecord {
  readonly id: string
  /** Undefined for a container that CRI did not create. */
  readonly kind: 'sandbox' | 'container' | undefined
}

export interface TaskRecord {
  readonly id: string
  /** As containerd names it: CREATED, RUNNING, STOPPED, … */
  readonly status: string
}

export interface ContainerdRecordsOptions {
  readonly channel: ContainerdChannel
  /** The definitions of the files of proto/ with these names. */
  readonly definitions: {
    readonly containers: ServiceDefinitions
    readonly tasks: ServiceDefinitions
    readonly snapshots: ServiceDefinitions
    readonly leases: ServiceDefinitions
  }
  readonly clock: Clock
}

const callMs = 30_000
/** containerd's own (`defaults.DefaultSnapshotter` on Linux). */
const defaultSnapshotter = 'overlayfs'

/** containerd's records in CRI's namespace, by its own API. The errors are the channel's, and RUNTIME_TIMEOUT. */
export class ContainerdRecords {
  readonly #channel: ContainerdChannel
  readonly #clock: Clock
  readonly #listContainers: WireMethod
  readonly #listTasks: WireMethod
  readonly #listSnapshots: WireMethod
  readonly #listLeases: WireMethod

  constructor({ channel, definitions, clock }: ContainerdRecordsOptions) {
    this.#channel = channel
    this.#clock = clock
    const { containers, tasks, snapshots, leases } = definitions
    this.#listContainers = methodOf(
      containers.service('containerd.services.containers.v1.Containers'),
      'ListStream',
    )
    this.#listTasks = methodOf(tasks.service('containerd.services.tasks.v1.Tasks'), 'List')
    this.#listSnapshots = methodOf(snapshots.service('containerd.services.snapshots.v1.Snapshots'), 'List')
    this.#listLeases = methodOf(leases.service('containerd.services.leases.v1.Leases'), 'List')
  }

  async containers(): Promise<readonly ContainerRecord[]> {
    const found: ContainerRecord[] = []
    await this.#stream(this.#listContainers, {}, (message) => {
      const container = isJsonObject(message) ? message['container'] : undefined
      if (!isJsonObject(container)) return
      const { id, labels } = container
      const kind = isJsonObject(labels) ? labels[kindLabel] : undefined
      if (typeof id === 'string')
        found.push({ id, kind: kind === 'sandbox' || kind === 'container' ? kind : undefined })
    })
    return found
  }

  async tasks(): Promise<readonly TaskRecord[]> {
    const reply = await this.#unary(this.#listTasks, {})
    return objectsIn(reply, 'tasks').flatMap(({ id, status }) =>
      typeof id === 'string' && typeof status === 'string' ? [{ id, status }] : [],
    )
  }

  /** The names of a snapshotter's snapshots. */
  async snapshots(snapshotter = defaultSnapshotter): Promise<readonly string[]> {
    const found: string[] = []
    await this.#stream(this.#listSnapshots, { snapshotter }, (message) => {
      for (const { name } of objectsIn(message, 'info')) if (typeof name === 'string') found.push(name)
    })
    return found
  }

  /** The ids of the leases. */
  async leases(): Promise<readonly string[]> {
    const reply = await this.#unary(this.#listLeases, {})
    return objectsIn(reply, 'leases').flatMap(({ id }) => (typeof id === 'string' ? [id] : []))
  }

  #unary(method: WireMethod, request: object): Promise<object> {
    return this.#bounded(method, (signal) => this.#channel.unary(method, request, signal, criHeaders))
  }

  #stream(method: WireMethod, request: object, onMessage: (message: object) => void): Promise<void> {
    return this.#bounded(method, (signal) =>
      this.#channel.stream(method, request, onMessage, signal, criHeaders),
    )
  }

  #bounded<T>({ path }: WireMethod, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withDeadline({ clock: this.#clock, name: path, callMs }, async (signal) => {
      await this.#channel.ready(signal)
      return call(signal)
    })
  }
}
