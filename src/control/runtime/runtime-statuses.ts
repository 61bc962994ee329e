import type { Clock } from '../../base/clock.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { ContainerId, SandboxId } from '../../pod/values/ids.ts'
import type { ProcessExit } from '../../pod/state/observed.ts'

export interface StatusCalls {
  podSandboxStatus(request: cri.PodSandboxStatusRequestInput): Promise<cri.PodSandboxStatusResponse>
  containerStatus(request: cri.ContainerStatusRequestInput): Promise<cri.ContainerStatusResponse>
}

export interface RuntimeStatusesOptions {
  readonly calls: StatusCalls
  readonly clock: Clock
  readonly isNotFound: (error: unknown) => boolean
}

/** After an exit event the runtime's own records may lag behind for a moment. */
const exitSettleDelaysMs = [2, 4, 8, 16, 32, 64, 128, 256]

/**
 * The statuses of the containers and sandboxes that the runtime lists: each read once per state, and taken from
 * events while the runtime itself does not report an exit yet.
 */
export class RuntimeStatuses {
  readonly #options: RuntimeStatusesOptions
  /** Statuses that can no longer change, or have not changed since they were read, by id and state. */
  readonly #containerStatuses = new Map<ContainerId, cri.ContainerStatus>()
  readonly #sandboxStatuses = new Map<SandboxId, cri.PodSandboxStatus>()
  /** Exits reported by events; without `exit`, the status is read until the runtime reports the exit too. */
  readonly #exited = new Map<string, ProcessExit | undefined>()
  readonly #oomKilled = new Set<ContainerId>()
  readonly #provisional = new WeakSet<cri.ContainerStatus>()

  constructor(options: RuntimeStatusesOptions) {
    this.#options = options
  }

  /** The ids whose end an event reported and that were not read since. */
  exited(): Iterable<string> {
    return this.#exited.keys()
  }

  get hasExits(): boolean {
    return this.#exited.size > 0
  }

  /** Read elsewhere, just now. */
  noteSandbox(status: cri.PodSandboxStatus): void {
    this.#sandboxStatuses.set(status.id, status)
  }

  noteExit(id: string, exit: ProcessExit | undefined): void {
    this.#exited.set(id, exit ?? this.#exited.get(id))
  }

  noteOomKill(id: ContainerId): void {
    this.#oomKilled.add(id)
  }

  /** It is gone. */
  forget(id: string): void {
    for (const known of [this.#containerStatuses, this.#sandboxStatuses, this.#exited, this.#oomKilled])
      known.delete(id)
  }

  /** Undefined where it was removed meanwhile. */
  async ofSandbox(sandbox: cri.PodSandbox): Promise<cri.PodSandboxStatus | undefined> {
    const { id } = sandbox
    const status = await this.#readStatus({
      id,
      listedState: sandbox.state,
      cache: this.#sandboxStatuses,
      read: async () => (await this.#options.calls.podSandboxStatus({ podSandboxId: id })).status,
      isOver: ({ state }) => state === 'SANDBOX_NOTREADY',
    })
    const exited = this.#exited.get(id) !== undefined
    return exited && status !== undefined ? { ...status, state: 'SANDBOX_NOTREADY' } : status
  }

  /** Undefined where it was removed meanwhile. */
  async ofContainer(container: cri.Container): Promise<cri.ContainerStatus | undefined> {
    const { id } = container
    const status = await this.#readStatus({
      id,
      listedState: container.state,
      cache: this.#containerStatuses,
      read: async () => (await this.#options.calls.containerStatus({ containerId: id })).status,
      isOver: ({ state }) => state === 'CONTAINER_EXITED',
    })
    const oomKilled = this.#oomKilled.has(id)
    // It was read before the event that tells why it ended.
    if (oomKilled && status?.state === 'CONTAINER_EXITED') return { ...status, reason: 'OOMKilled' }
    const exit = this.#exited.get(id)
    if (exit === undefined || status?.state !== 'CONTAINER_RUNNING') return status
    const provisional = withExit(status, exit, oomKilled)
    this.#provisional.add(provisional)
    return provisional
  }

  /** Whether the exit in this status is taken from an event, and not reported by the runtime itself yet. */
  isProvisional(status: cri.ContainerStatus): boolean {
    return this.#provisional.has(status)
  }

  /**
   * A status as the runtime gives it, from the cache where it can't have changed. After an exit event without details
   * the runtime is asked again for a moment, until its status shows the exit.
   */
  async #readStatus<Status extends { readonly state: string }>(facts: {
    readonly id: string
    readonly listedState: Status['state']
    readonly cache: Map<string, Status>
    readonly read: () => Promise<Status | null>
    readonly isOver: (status: Status) => boolean
  }): Promise<Status | undefined> {
    const { id, cache, isOver } = facts
    const known = cache.get(id)
    const mustSettle = this.#exited.has(id) && this.#exited.get(id) === undefined
    if (known?.state === facts.listedState && (!mustSettle || isOver(known))) return known
    try {
      let status = await facts.read()
      for (const delayMs of mustSettle ? exitSettleDelaysMs : []) {
        if (status === null || isOver(status)) break
        await this.#options.clock.sleep(delayMs)
        status = await facts.read()
      }
      if (status === null) return undefined
      if (mustSettle || isOver(status)) this.#exited.delete(id)
      cache.set(id, status)
      return status
    } catch (error) {
      // Removed between the list and the status call.
      if (this.#options.isNotFound(error)) return undefined
      throw error
    }
  }
}

/**
 * The status that the runtime will report once it has cleaned up after the process. In containerd that takes some 50
 * ms, in which a successor can run already.
 */
function withExit(status: cri.ContainerStatus, exit: ProcessExit, oomKilled: boolean): cri.ContainerStatus {
  const reason = oomKilled ? 'OOMKilled' : exit.exitCode === 0 ? 'Completed' : 'Error'
  const finishedAt = Math.round(exit.atMs * 1e6)
  return { ...status, state: 'CONTAINER_EXITED', exitCode: exit.exitCode, finishedAt, reason }
}
