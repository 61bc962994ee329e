import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import type { WireMethod } from '../../base/wire-method.ts'

export interface ContainerRecord {
  readonly id: string
  /** Undefined for what CRI did not make. */
  readonly kind: 'sandbox' | 'container' | undefined
}

export interface TaskRecord {
  readonly id: string
  /** As containerd names it: CREATED, RUNNING, STOPPED, … */
  readonly status: string
}

type Headers = Readonly<Record<string, string>>

/** What is needed of a connection to containerd's socket. */
export interface RecordsChannel {
  ready(signal?: AbortSignal): Promise<void>
  unary(method: WireMethod, request: object, signal: AbortSignal, headers?: Headers): Promise<object>
  stream(
    method: WireMethod,
    request: object,
    onMessage: (message: object) => void,
    signal: AbortSignal,
    headers?: Headers,
  ): Promise<void>
}

interface Definitions {
  service(name: string): Readonly<Record<string, WireMethod>>
}

export interface ContainerdRecordsOptions {
  readonly channel: RecordsChannel
  /** Those of proto/ of the same names. */
  readonly definitions: {
    readonly containers: Definitions
    readonly tasks: Definitions
    readonly snapshots: Definitions
    readonly leases: Definitions
  }
  readonly clock: Clock
}

/** containerd's namespace of CRI's containers. */
const headers: Headers = { 'containerd-namespace': 'k8s.io' }
/** What CRI marks its own with in that namespace. */
const kindLabel = 'io.cri-containerd.kind'
const callMs = 30_000
/** containerd's own (`defaults.DefaultSnapshotter` on Linux). */
const defaultSnapshotter = 'overlayfs'

/** containerd's records in CRI's namespace, by its own API. The errors are the channel's, and RUNTIME_TIMEOUT. */
export class ContainerdRecords {
  readonly #channel: RecordsChannel
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
    return this.#bounded(method, (signal) => this.#channel.unary(method, request, signal, headers))
  }

  #stream(method: WireMethod, request: object, onMessage: (message: object) => void): Promise<void> {
    return this.#bounded(method, (signal) =>
      this.#channel.stream(method, request, onMessage, signal, headers),
    )
  }

  async #bounded<T>({ path }: WireMethod, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const cancel = new AbortController()
    const timer = this.#clock.startTimer(callMs, () =>
      cancel.abort(
        new PoddError('RUNTIME_TIMEOUT', `containerd gave no answer to ${path} within ${callMs / 1000} s`),
      ),
    )
    try {
      await this.#channel.ready(cancel.signal)
      return await call(cancel.signal)
    } finally {
      timer.cancel()
    }
  }
}

function objectsIn(message: object, key: string): readonly Readonly<Record<string, unknown>>[] {
  const list: unknown = isJsonObject(message) ? message[key] : undefined
  return Array.isArray(list) ? list.filter((each) => isJsonObject(each)) : []
}

function methodOf(service: Readonly<Record<string, WireMethod>>, name: string): WireMethod {
  const found = service[name]
  if (found === undefined) throw new PoddError('INTERNAL', `the wire definition lacks ${name}`)
  return found
}
