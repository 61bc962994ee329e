import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { WakeSlot, untilAborted } from '../../base/waits.ts'
import {
  decideRuntimeStep,
  findForgotten,
  findUnknown,
  selectStillForgotten,
} from '../../decide/node/compare-runtime.ts'
import type { HeldContainer, RuntimeStep } from '../../decide/node/compare-runtime.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import type { CallGate } from '../../runtime/call-runtime.ts'
import type { RuntimeConnection } from '../../runtime/connection.ts'
import { findRoomProblem } from '../../runtime/containerd/process.ts'
import { HeldContainers } from '../../runtime/containerd/records.ts'
import { CriError, isCriError } from '../../runtime/cri-runtime.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import type { EmbeddedContainerd } from '../../runtime/embedded-containerd.ts'

/** What is compared, and what podd may do about it. */
export interface ComparisonEnv {
  readonly connection: {
    readonly connections: number
    readonly isReady: boolean
    ready(signal?: AbortSignal): Promise<void>
  }
  readonly calls: Pick<RuntimeService, 'listPodSandbox' | 'listContainers'>
  /** containerd's own. `list` rejects with RUNTIME_UNSUPPORTED where the runtime is no containerd. */
  readonly held: {
    list(): Promise<readonly HeldContainer[]>
    hasTask(id: string): Promise<boolean>
    end(id: string, signal: AbortSignal): Promise<void>
  }
  /** What podd may do with the embedded containerd; undefined for an external one, which is left alone. */
  readonly own:
    | {
        /** Whether CRI has files of a container. */
        hasFiles(id: string): boolean
        /** Why its disk has no room to record that many containers. */
        findRoomProblem(containers: number): Promise<string | undefined>
        restart(reason: string): Promise<void>
      }
    | undefined
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/** A container that is being created or removed is listed, or gone, at the second look. */
const secondLookMs = 500
/** How often podd acts on containers that CRI no longer lists. */
const retryMs = 2000
/** How long CRI may take to list what it has: it has it in memory. */
const listMs = 10_000

/**
 * Compares the containers of CRI with containerd's own, once for each connection to the runtime: CRI
 * loses containers only when containerd starts. While it does not list some, no call about sandboxes or
 * containers is sent: acting on what CRI lists would start them a second time beside those that run.
 */
export class RuntimeComparison implements CallGate {
  readonly #env: ComparisonEnv
  readonly #slot = new WakeSlot()
  /** The number of the connection on which CRI knows all, and of the one on which it doesn't; 0: none. */
  #usable = 0
  #refused = 0
  #step: Exclude<RuntimeStep, { readonly kind: 'use' }> | undefined
  /** Those that were forgotten when it was restarted with room. */
  #stillForgotten: ReadonlySet<string> = new Set()
  #restarts = 0
  #isContainerd = true
  #comparing: Promise<void> | undefined
  #onProblem: ((problem: string) => void) | undefined

  constructor(env: ComparisonEnv) {
    this.#env = env
  }

  /** Whether the runtime serves containerd's own API, by the newest answer; true before the first one. */
  get isContainerd(): boolean {
    return this.#isContainerd
  }

  isOpen(): boolean {
    const { connection } = this.#env
    return connection.isReady && connection.connections === this.#usable
  }

  /** Rejects with CriError RUNTIME_UNAVAILABLE, or with the signal's reason. */
  async pass(signal: AbortSignal): Promise<void> {
    try {
      if (!this.#isRefused) await untilAborted(this.#compareOnce(), signal)
    } catch (error) {
      signal.throwIfAborted()
      throw new CriError('RUNTIME_UNAVAILABLE', errorMessage(error), { cause: error })
    }
    if (!this.isOpen())
      throw new CriError('RUNTIME_UNAVAILABLE', this.#step?.message ?? 'the connection to the runtime broke')
  }

  /**
   * Restarts containerd to make CRI list its containers again, or kills those that stay missing, until the signal is
   * aborted. Never rejects.
   * @param onProblem called each time with why the runtime cannot be used
   */
  async run(onProblem: (problem: string) => void, signal: AbortSignal): Promise<void> {
    const { clock, logger } = this.#env
    this.#onProblem = onProblem
    if (this.#step !== undefined) onProblem(this.#step.message)
    const onAbort = (): void => this.#slot.wake()
    signal.addEventListener('abort', onAbort, { once: true })
    while (!signal.aborted) {
      if (this.#step === undefined) await this.#slot.wait()
      if (signal.aborted || this.#step === undefined) continue
      try {
        // A containerd that isn't the one that forgot them may know them.
        if (this.#isRefused) await this.#carryOut(this.#step, signal)
      } catch (error) {
        if (!signal.aborted)
          logger.error({ err: error }, 'cannot handle the containers that CRI no longer lists')
      }
      await sleepUnlessAborted(clock, retryMs, signal)
      if (signal.aborted) return
      await this.#compareOnce().catch((error: unknown) =>
        logger.debug({ err: error }, 'cannot compare the containers of CRI with those of containerd'),
      )
    }
  }

  get #isRefused(): boolean {
    const { connection } = this.#env
    return connection.isReady && connection.connections === this.#refused
  }

  #compareOnce(): Promise<void> {
    this.#comparing ??= this.#compare().finally(() => {
      this.#comparing = undefined
    })
    return this.#comparing
  }

  async #compare(): Promise<void> {
    const { connection } = this.#env
    await connection.ready()
    const number = connection.connections
    const step = await this.#decide()
    // It was another containerd, perhaps, that answered in the middle.
    if (connection.connections !== number || !connection.isReady) return
    if (step.kind === 'use') {
      if (this.#step !== undefined) this.#env.logger.info({}, 'CRI lists all containers of containerd again')
      this.#usable = number
      this.#refused = 0
      this.#step = undefined
      this.#stillForgotten = new Set()
      this.#restarts = 0
      return
    }
    const isNews = number !== this.#refused || step.message !== this.#step?.message
    this.#refused = number
    this.#usable = 0
    this.#step = step
    if (step.kind === 'wait') this.#stillForgotten = new Set()
    if (isNews) {
      this.#env.logger.error({ reason: step.message }, 'CRI does not list all containers of containerd')
      this.#onProblem?.(step.message)
    }
    this.#slot.wake()
  }

  async #decide(): Promise<RuntimeStep> {
    const { own, clock } = this.#env
    const first = await this.#look()
    if (first.forgotten.length === 0) return { kind: 'use' }
    await clock.sleep(secondLookMs)
    const second = await this.#look()
    return decideRuntimeStep({
      forgotten: selectStillForgotten(first.forgotten, second.forgotten),
      roomProblem: await own?.findRoomProblem(second.count),
      stillForgotten: this.#stillForgotten,
      restarts: this.#restarts,
      isOwn: own !== undefined,
    })
  }

  /** Lists containerd's own containers first: what is created meanwhile is in both lists. */
  async #look(): Promise<{ readonly forgotten: readonly HeldContainer[]; readonly count: number }> {
    const { calls, held } = this.#env
    try {
      const all = await held.list()
      this.#isContainerd = true
      const ungated = { isUngated: true, deadlineMs: listMs }
      const [{ items }, { containers }] = await Promise.all([
        calls.listPodSandbox({}, ungated),
        calls.listContainers({}, ungated),
      ])
      const inventory = {
        held: all,
        sandboxes: new Set(items.map(({ id }) => id)),
        containers: containers.map(({ id, podSandboxId }) => ({ id, sandboxId: podSandboxId })),
      }
      const remains = await this.#selectRemains(findUnknown(inventory))
      return { forgotten: findForgotten({ ...inventory, remains }), count: all.length }
    } catch (error) {
      if (!isCriError(error, 'RUNTIME_UNSUPPORTED')) throw error
      this.#isContainerd = false
      return { forgotten: [], count: 0 }
    }
  }

  async #selectRemains(unknown: readonly HeldContainer[]): Promise<ReadonlySet<string>> {
    const { held, own } = this.#env
    const remains = new Set<string>()
    for (const { id } of unknown) if (own?.hasFiles(id) !== true && !(await held.hasTask(id))) remains.add(id)
    return remains
  }

  async #carryOut(step: RuntimeStep, signal: AbortSignal): Promise<void> {
    switch (step.kind) {
      case 'use':
      case 'wait':
        return
      case 'restart':
        await this.#env.own?.restart('CRI no longer lists containers that run')
        this.#stillForgotten = new Set(step.forgotten.map(({ id }) => id))
        this.#restarts += 1
        return
      case 'end':
        for (const lost of step.lost) {
          // One that has just been started may know them.
          if (!this.#isRefused) return
          await this.#end(lost, signal)
        }
    }
  }

  /** What can't be killed is retried: CRI still does not list it. */
  async #end({ id, kind, pod, name }: HeldContainer, signal: AbortSignal): Promise<void> {
    const { held, events, logger } = this.#env
    try {
      await held.end(id, signal)
    } catch (error) {
      logger.error({ id, err: error }, `cannot kill a ${kind} that CRI no longer lists`)
      return
    }
    logger.warn({ id, container: name }, `killed a ${kind} that CRI no longer listed`)
    if (pod === undefined || kind === 'sandbox') return
    const message = `Stopped container ${name} (${id}): CRI no longer listed it, not even after a restart of containerd`
    events.record({ pod, container: name, type: 'Warning', reason: 'Killing', message })
  }
}

/** The comparison of CRI with the containerd behind it, podd's own (`embedded`) or another one. */
export function compareContainerd(options: {
  readonly runtime: RuntimeService
  readonly connection: RuntimeConnection
  readonly embedded: EmbeddedContainerd | undefined
  readonly instance: string
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
}): RuntimeComparison {
  const { runtime, connection, embedded, instance, events, clock, logger } = options
  return new RuntimeComparison({
    connection,
    calls: runtime,
    held: new HeldContainers(connection, instance, clock),
    own: embedded && {
      hasFiles: (id) => existsSync(join(embedded.places.criContainersDir, id)),
      findRoomProblem: (containers) => findRoomProblem(embedded.places.rootDir, containers),
      restart: (reason) => embedded.restart(reason),
    },
    events,
    clock,
    logger,
  })
}
