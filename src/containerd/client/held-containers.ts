import type { Clock } from '../../base/clock.ts'
import { pollUntil } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import type { WireMethod } from '../../grpc/load-proto.ts'
import type { HeldContainer } from '../../decide/node/compare-runtime.ts'
import { instanceSelector, labelKeys, readPodRef } from '../../translate/identity.ts'
import { criHeaders, kindLabel, methodOf, withDeadline } from './containerd-calls.ts'
import type { ContainerdChannel, ServiceDefinitions } from './containerd-calls.ts'

export interface HeldContainersOptions {
  readonly channel: ContainerdChannel
  /** proto/containerd-containers.proto and proto/containerd-tasks.proto. */
  readonly containers: ServiceDefinitions
  readonly tasks: ServiceDefinitions
  /** Only containers with this instance's label; empty: all of CRI's. */
  readonly instance: string
  readonly clock: Clock
}

const callMs = 10_000
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
    return withDeadline({ clock: this.#options.clock, name, callMs }, call)
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
