import { PoddError, errorCode } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import type { WireMethod } from '../../grpc/load-proto.ts'
import { criHeaders, methodOf } from './containerd-calls.ts'
import type { ContainerdChannel } from './containerd-calls.ts'
import type { TerminalSize } from './exec-process-spec.ts'

/** What commands need of a connection to containerd's socket. */
export type ExecChannel = Pick<ContainerdChannel, 'ready' | 'unary'>

/** What commands need of proto/containerd-tasks.proto and proto/containerd-containers.proto. */
export interface ExecDefinitions {
  service(name: string): Readonly<Record<string, WireMethod>>
}

/** Which process is meant. */
export interface ExecTarget {
  readonly containerId: string
  readonly execId: string
}

/** The process to be made. */
export interface ExecRequest extends ExecTarget {
  /** OCI process, JSON. */
  readonly process: string
  readonly terminal: boolean
  readonly stdin: string
  readonly stdout: string
  readonly stderr: string
}

const processType = 'types.containerd.io/opencontainers/runtime-spec/1/Process'

const callMs = 30_000
/** The deadline of a start, which the container's disk and CPU limits may delay. */
const startMs = 120_000

/** containerd's own calls about processes: the same in 1.6, 1.7 and 2.x. Errors are the channel's. */
export class TaskCalls {
  readonly #channel: ExecChannel
  readonly #tasks: Readonly<Record<string, WireMethod>>
  readonly #containers: Readonly<Record<string, WireMethod>>

  constructor(options: {
    readonly channel: ExecChannel
    readonly tasks: ExecDefinitions
    readonly containers: ExecDefinitions
  }) {
    this.#channel = options.channel
    this.#tasks = options.tasks.service('containerd.services.tasks.v1.Tasks')
    this.#containers = options.containers.service('containerd.services.containers.v1.Containers')
  }

  /** The OCI spec that a container was made from, as JSON text. */
  async containerSpec(containerId: string): Promise<string> {
    const reply = await this.#send(this.#containers, 'Get', { id: containerId }, callMs)
    const container = isJsonObject(reply) ? reply['container'] : undefined
    const spec = isJsonObject(container) ? container['spec'] : undefined
    const value: unknown = isJsonObject(spec) ? spec['value'] : undefined
    if (value instanceof Uint8Array && value.length > 0) return Buffer.from(value).toString('utf8')
    throw new PoddError('EXEC_FAILED', 'the runtime does not report the spec of the container')
  }

  /** Creates the process; it does not run yet. */
  async create({ process, ...request }: ExecRequest): Promise<void> {
    const spec = { typeUrl: processType, value: Buffer.from(process) }
    await this.#send(this.#tasks, 'Exec', { ...request, spec }, callMs)
  }

  async start(target: ExecTarget): Promise<void> {
    await this.#send(this.#tasks, 'Start', target, startMs)
  }

  /**
   * The state of a process. One that has ended exists until it is removed. `absent` also where its container does not
   * run.
   */
  async state(target: ExecTarget): Promise<'absent' | 'created' | 'begun'> {
    try {
      const reply = await this.#send(this.#tasks, 'Get', target, callMs)
      const process: unknown = isJsonObject(reply) ? reply['process'] : undefined
      return isJsonObject(process) && process['status'] === 'CREATED' ? 'created' : 'begun'
    } catch (error) {
      if (errorCode(error) === 'RUNTIME_NOT_FOUND') return 'absent'
      throw error
    }
  }

  /** The exit code, when the process has ended. */
  async wait(target: ExecTarget): Promise<number> {
    const reply = await this.#send(this.#tasks, 'Wait', target, undefined)
    return 'exitStatus' in reply && typeof reply.exitStatus === 'number' ? reply.exitStatus : 0
  }

  async kill(target: ExecTarget, signal: number): Promise<void> {
    await this.#send(this.#tasks, 'Kill', { ...target, signal }, callMs)
  }

  async resize(target: ExecTarget, { columns, rows }: TerminalSize): Promise<void> {
    await this.#send(this.#tasks, 'ResizePty', { ...target, width: columns, height: rows }, callMs)
  }

  async closeStdin(target: ExecTarget): Promise<void> {
    await this.#send(this.#tasks, 'CloseIO', { ...target, stdin: true }, callMs)
  }

  /** Deletes a process that has ended or never ran. */
  async remove(target: ExecTarget): Promise<void> {
    await this.#send(this.#tasks, 'DeleteProcess', target, callMs)
  }

  async #send(
    service: Readonly<Record<string, WireMethod>>,
    name: string,
    request: object,
    deadlineMs: number | undefined,
  ): Promise<object> {
    const method = methodOf(service, name)
    const signal = deadlineMs === undefined ? new AbortController().signal : AbortSignal.timeout(deadlineMs)
    await this.#channel.ready(signal)
    return this.#channel.unary(method, request, signal, criHeaders)
  }
}
