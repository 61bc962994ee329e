import { pollUntil, startDeadline } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, PoddError } from '../../base/errors.ts'
import { jsonAt, objectsAt, textEntries } from '../../base/json.ts'
import type { HeldContainer } from '../../decide/node/compare-runtime.ts'
import { loadProto } from '../../grpc/load-proto.ts'
import type { WireMethod } from '../../grpc/load-proto.ts'
import { instanceSelector, labelKeys, readPodRef } from '../../translate/identity.ts'

type CallHeaders = Readonly<Record<string, string>>

/** A connection to containerd's socket, for the calls of its own services (see RuntimeConnection). */
export interface ContainerdChannel {
  /** Resolves when calls can be sent, or when waiting is pointless. */
  ready(signal?: AbortSignal): Promise<void>
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

/**
 * One of containerd's own services, asked in CRI's namespace. Its calls throw the channel's errors, and PoddError
 * RUNTIME_TIMEOUT.
 */
export class ContainerdService {
  readonly #methods: Readonly<Record<string, WireMethod>>
  readonly #channel: ContainerdChannel
  readonly #clock: Clock
  readonly #callMs: number

  /** @param callMs the deadline of calls */
  constructor(
    name: 'containers' | 'content' | 'images' | 'leases' | 'snapshots' | 'tasks',
    channel: ContainerdChannel,
    clock: Clock,
    callMs: number,
  ) {
    const title = `${name.charAt(0).toUpperCase()}${name.slice(1)}`
    this.#methods = loadProto(`containerd-${name}.proto`).service(`containerd.services.${name}.v1.${title}`)
    this.#channel = channel
    this.#clock = clock
    this.#callMs = callMs
  }

  /** @param callMs another deadline; Infinity for none */
  send(name: string, request: object, callMs = this.#callMs): Promise<object> {
    return this.#call(name, callMs, (method, signal) =>
      this.#channel.unary(method, request, signal, criHeaders),
    )
  }

  /** Undefined where what the call is about does not exist. */
  async sendIfThere(name: string, request: object): Promise<object | undefined> {
    try {
      return await this.send(name, request)
    } catch (error) {
      if (errorCode(error) === 'RUNTIME_NOT_FOUND') return undefined
      throw error
    }
  }

  stream(name: string, request: object, onMessage: (message: object) => void): Promise<void> {
    return this.#call(name, this.#callMs, (method, signal) =>
      this.#channel.stream(method, request, onMessage, signal, criHeaders),
    )
  }

  async #call<T>(
    name: string,
    callMs: number,
    call: (method: WireMethod, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const method = methodOf(this.#methods, name)
    const message = `containerd gave no answer to ${method.path} within ${callMs / 1000} s`
    using deadline = startDeadline(this.#clock, callMs, () => new PoddError('RUNTIME_TIMEOUT', message))
    await this.#channel.ready(deadline.signal)
    return await call(method, deadline.signal)
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

const callMs = 30_000
/** containerd's own (`defaults.DefaultSnapshotter` on Linux). */
const defaultSnapshotter = 'overlayfs'

/** containerd's records in CRI's namespace, by its own API. Throws as ContainerdService. */
export class ContainerdRecords {
  readonly #containers: ContainerdService
  readonly #tasks: ContainerdService
  readonly #snapshots: ContainerdService
  readonly #leases: ContainerdService

  constructor(channel: ContainerdChannel, clock: Clock) {
    this.#containers = new ContainerdService('containers', channel, clock, callMs)
    this.#tasks = new ContainerdService('tasks', channel, clock, callMs)
    this.#snapshots = new ContainerdService('snapshots', channel, clock, callMs)
    this.#leases = new ContainerdService('leases', channel, clock, callMs)
  }

  async containers(): Promise<readonly ContainerRecord[]> {
    const found: ContainerRecord[] = []
    await this.#containers.stream('ListStream', {}, (message) => {
      const id = jsonAt(message, 'container', 'id')
      const kind = jsonAt(message, 'container', 'labels', kindLabel)
      if (typeof id === 'string')
        found.push({ id, kind: kind === 'sandbox' || kind === 'container' ? kind : undefined })
    })
    return found
  }

  async tasks(): Promise<readonly TaskRecord[]> {
    const reply = await this.#tasks.send('List', {})
    return objectsAt(reply, 'tasks').flatMap(({ id, status }) =>
      typeof id === 'string' && typeof status === 'string' ? [{ id, status }] : [],
    )
  }

  /** The names of a snapshotter's snapshots. */
  async snapshots(snapshotter = defaultSnapshotter): Promise<readonly string[]> {
    const found: string[] = []
    await this.#snapshots.stream('List', { snapshotter }, (message) => {
      for (const { name } of objectsAt(message, 'info')) if (typeof name === 'string') found.push(name)
    })
    return found
  }

  /** The ids of the leases. */
  async leases(): Promise<readonly string[]> {
    const reply = await this.#leases.send('List', {})
    return objectsAt(reply, 'leases').flatMap(({ id }) => (typeof id === 'string' ? [id] : []))
  }
}

const heldCallMs = 10_000
/** The grace period after SIGTERM. CRI has lost the container's own together with the container. */
const termMs = 10_000
const killMs = 10_000
const lookMs = 100
const sigterm = 15
const sigkill = 9

type TaskState = 'none' | 'running' | 'stopped'

/** containerd's own containers and tasks, which CRI's are made of. Throws as ContainerdService. */
export class HeldContainers {
  readonly #containers: ContainerdService
  readonly #tasks: ContainerdService
  readonly #instance: string
  readonly #clock: Clock

  /** @param instance only containers with this instance's label; empty: all of CRI's */
  constructor(channel: ContainerdChannel, instance: string, clock: Clock) {
    this.#containers = new ContainerdService('containers', channel, clock, heldCallMs)
    this.#tasks = new ContainerdService('tasks', channel, clock, heldCallMs)
    this.#instance = instance
    this.#clock = clock
  }

  /**
   * All of CRI's containers with the instance's label. Rejects with RUNTIME_UNSUPPORTED where the runtime is no
   * containerd.
   */
  async list(): Promise<readonly HeldContainer[]> {
    const labelled = Object.entries(instanceSelector(this.#instance))
    const found: HeldContainer[] = []
    const take = (message: object): void => {
      const held = readHeld(message, labelled)
      if (held !== undefined) found.push(held)
    }
    await this.#containers.stream('ListStream', {}, take)
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
      if (!(await this.#kill(id, sigterm, termMs, signal))) await this.#kill(id, sigkill, killMs, signal)
      await this.#tasks.sendIfThere('Delete', { containerId: id })
    }
    await this.#containers.sendIfThere('Delete', { id })
  }

  /** Returns whether it has ended. */
  async #kill(id: string, by: number, patienceMs: number, signal: AbortSignal): Promise<boolean> {
    await this.#tasks.sendIfThere('Kill', { containerId: id, signal: by, all: by === sigkill })
    return pollUntil(this.#clock, async () => (await this.#taskState(id)) !== 'running', {
      periodMs: lookMs,
      timeoutMs: patienceMs,
      signal,
    })
  }

  async #taskState(id: string): Promise<TaskState> {
    const reply = await this.#tasks.sendIfThere('Get', { containerId: id })
    if (reply === undefined) return 'none'
    const status = jsonAt(reply, 'process', 'status')
    return status === 'STOPPED' || status === 'CREATED' ? 'stopped' : 'running'
  }
}

function readHeld(
  message: object,
  labelled: readonly (readonly [string, string])[],
): HeldContainer | undefined {
  const id = jsonAt(message, 'container', 'id')
  const labels = textEntries(jsonAt(message, 'container', 'labels'))
  const kind = labels[kindLabel]
  if (typeof id !== 'string' || (kind !== 'sandbox' && kind !== 'container')) return undefined
  if (labelled.some(([key, value]) => labels[key] !== value)) return undefined
  return { id, kind, pod: readPodRef(labels), name: labels[labelKeys.containerName] ?? '' }
}
