import { pollUntil } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, PoddError } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import type { HeldContainer } from '../../decide/node/compare-runtime.ts'
import type { WireMethod } from '../../grpc/load-proto.ts'
import { instanceSelector, labelKeys, readPodRef } from '../../translate/identity.ts'

type CallHeaders = Readonly<Record<string, string>>

/** The calls of containerd's own services, over a connection to its socket (see RuntimeConnection). */
export interface ContainerdCalls {
  unary(method: WireMethod, request: object, signal: AbortSignal, headers?: CallHeaders): Promise<object>
  /** Resolves or rejects when the stream has ended; with the code RUNTIME_UNSUPPORTED where there is no such service. */
  stream(
    method: WireMethod,
    request: object,
    onMessage: (message: object) => void,
    signal: AbortSignal,
    headers?: CallHeaders,
  ): Promise<void>
}

/** A connection that knows when calls can be sent. */
export interface ContainerdChannel extends ContainerdCalls {
  /** Resolves when calls can be sent, or when waiting is pointless. */
  ready(signal?: AbortSignal): Promise<void>
}

/** The services of a file of proto/. */
export interface ServiceDefinitions {
  service(name: string): Readonly<Record<string, WireMethod>>
}

/** containerd's namespace of CRI's containers and images. */
export const criNamespace = 'k8s.io'
export const criHeaders: CallHeaders = { 'containerd-namespace': criNamespace }
/** The label by which CRI marks its own containers and images in that namespace. */
const kindLabel = 'io.cri-containerd.kind'

/** Throws PoddError INTERNAL where the definition is not containerd's. */
export function methodOf(service: Readonly<Record<string, WireMethod>>, name: string): WireMethod {
  const found = service[name]
  if (found === undefined) throw new PoddError('INTERNAL', `the wire definition lacks ${name}`)
  return found
}

/** The objects of a list in a reply. */
export function objectsIn(message: object, key: string): readonly Readonly<Record<string, unknown>>[] {
  const list: unknown = isJsonObject(message) ? message[key] : undefined
  return Array.isArray(list) ? list.filter((each) => isJsonObject(each)) : []
}

/** Aborts a call that takes too long. Throws what the call throws, and PoddError RUNTIME_TIMEOUT. */
export async function withDeadline<T>(
  { clock, name, callMs }: { readonly clock: Clock; readonly name: string; readonly callMs: number },
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const cancel = new AbortController()
  const timer = clock.startTimer(callMs, () =>
    cancel.abort(
      new PoddError('RUNTIME_TIMEOUT', `containerd gave no answer to ${name} within ${callMs / 1000} s`),
    ),
  )
  try {
    return await call(cancel.signal)
  } finally {
    timer.cancel()
  }
}

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

export interface HeldContainersOptions {
  readonly channel: ContainerdChannel
  /** proto/containerd-containers.proto and proto/containerd-tasks.proto. */
  readonly containers: ServiceDefinitions
  readonly tasks: ServiceDefinitions
  /** Only containers with this instance's label; empty: all of CRI's. */
  readonly instance: string
  readonly clock: Clock
}

const heldCallMs = 10_000
/** The grace period after SIGTERM. CRI has lost the container's own together with the container. */
const termMs = 10_000
const killMs = 10_000
const lookMs = 100
const sigterm = 15
const sigkill = 9

type TaskState = 'none' | 'running' | 'stopped'

/** containerd's own containers and tasks, which CRI's are made of. The errors are the channel's. */
export class HeldContainers {
  readonly #options: HeldContainersOptions
  readonly #containers: Readonly<Record<string, WireMethod>>
  readonly #tasks: Readonly<Record<string, WireMethod>>

  constructor(options: HeldContainersOptions) {
    this.#options = options
    this.#containers = options.containers.service('containerd.services.containers.v1.Containers')
    this.#tasks = options.tasks.service('containerd.services.tasks.v1.Tasks')
  }

  /**
   * All of CRI's containers with the instance's label. Rejects with RUNTIME_UNSUPPORTED where the runtime is no
   * containerd.
   */
  async list(): Promise<readonly HeldContainer[]> {
    const { channel, instance } = this.#options
    const labelled = Object.entries(instanceSelector(instance))
    const found: HeldContainer[] = []
    const take = (message: object): void => {
      const held = readHeld(message, labelled)
      if (held !== undefined) found.push(held)
    }
    await this.#bounded('ListStream', async (signal) => {
      await channel.ready(signal)
      await channel.stream(methodOf(this.#containers, 'ListStream'), {}, take, signal, criHeaders)
    })
    return found
  }

  async hasTask(id: string): Promise<boolean> {
    return (await this.#taskState(id)) !== 'none'
  }

  /**
   * Ends a container's task, by SIGKILL where it doesn't end in time, and removes both. Does nothing where it doesn't
   * exist.
   */
  async end(id: string, signal: AbortSignal): Promise<void> {
    if ((await this.#taskState(id)) !== 'none') {
      if (!(await this.#kill(id, { signal: sigterm, patienceMs: termMs }, signal)))
        await this.#kill(id, { signal: sigkill, patienceMs: killMs }, signal)
      await ifThere(this.#send(this.#tasks, 'Delete', { containerId: id }))
    }
    await ifThere(this.#send(this.#containers, 'Delete', { id }))
  }

  /** Returns whether it has ended. */
  async #kill(
    id: string,
    how: { readonly signal: number; readonly patienceMs: number },
    signal: AbortSignal,
  ): Promise<boolean> {
    const { clock } = this.#options
    const all = how.signal === sigkill
    await ifThere(this.#send(this.#tasks, 'Kill', { containerId: id, signal: how.signal, all }))
    return pollUntil(clock, async () => (await this.#taskState(id)) !== 'running', {
      periodMs: lookMs,
      timeoutMs: how.patienceMs,
      signal,
    })
  }

  async #taskState(id: string): Promise<TaskState> {
    const reply = await ifThere(this.#send(this.#tasks, 'Get', { containerId: id }))
    if (reply === undefined) return 'none'
    const process = isJsonObject(reply) ? reply['process'] : undefined
    const status = isJsonObject(process) ? process['status'] : undefined
    return status === 'STOPPED' || status === 'CREATED' ? 'stopped' : 'running'
  }

  #send(service: Readonly<Record<string, WireMethod>>, name: string, request: object): Promise<object> {
    const { channel } = this.#options
    return this.#bounded(name, async (signal) => {
      await channel.ready(signal)
      return channel.unary(methodOf(service, name), request, signal, criHeaders)
    })
  }

  #bounded<T>(name: string, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withDeadline({ clock: this.#options.clock, name, callMs: heldCallMs }, call)
  }
}

function readHeld(
  message: object,
  labelled: readonly (readonly [string, string])[],
): HeldContainer | undefined {
  const container = isJsonObject(message) ? message['container'] : undefined
  if (!isJsonObject(container)) return undefined
  const { id } = container
  const labels = readLabels(container['labels'])
  const kind = labels[kindLabel]
  if (typeof id !== 'string' || (kind !== 'sandbox' && kind !== 'container')) return undefined
  if (labelled.some(([key, value]) => labels[key] !== value)) return undefined
  return { id, kind, pod: readPodRef(labels), name: labels[labelKeys.containerName] ?? '' }
}

function readLabels(value: unknown): Readonly<Record<string, string>> {
  if (!isJsonObject(value)) return {}
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, text]) => (typeof text === 'string' ? [[key, text]] : [])),
  )
}

/** Undefined where containerd reports NotFound. */
async function ifThere(call: Promise<object>): Promise<object | undefined> {
  try {
    return await call
  } catch (error) {
    if (errorCode(error) === 'RUNTIME_NOT_FOUND') return undefined
    throw error
  }
}
