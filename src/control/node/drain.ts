import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { writeFileAtomic } from '../../base/atomic-file.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import type { NodeRefusal } from '../../decide/node/judge-pressure.ts'
import { planShutdown } from '../../decide/node/plan-shutdown.ts'
import type { ShutdownGroup, ShutdownSettings } from '../../decide/node/plan-shutdown.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import type { PodEnv } from '../pod/env.ts'
import type { PodWorker } from '../pod/worker.ts'

export type DrainMark = ReturnType<typeof drainMark>

export interface DrainResult {
  readonly ended: number
  /** The pods that had not ended in time. */
  readonly stuck: readonly PodKey[]
}

/** How long to wait at the end for pods that were killed at their deadline. */
const killedMs = 10_000

/** `pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`, 1.36. */
const reason = 'Terminated'
const message = 'Pod was terminated in response to imminent node shutdown.'
const refusal = 'Pod was rejected as the node is shutting down.'

/**
 * Ends all pods before the host shuts down, in the order of their priorities, and admits none meanwhile. They are started
 * again after the next boot, or when the drain is undone.
 */
export class NodeDrain {
  readonly #env: PodEnv
  readonly #settings: ShutdownSettings
  readonly #mark: DrainMark
  readonly #workers: () => Iterable<PodWorker>
  readonly #onChange: () => void
  #isDraining: boolean
  #running: Promise<DrainResult> | undefined
  #undone = new AbortController()

  /** @param onChange pods may be admitted again, or no longer */
  constructor(
    env: PodEnv,
    settings: ShutdownSettings,
    mark: DrainMark,
    workers: () => Iterable<PodWorker>,
    onChange: () => void,
  ) {
    this.#env = env
    this.#settings = settings
    this.#mark = mark
    this.#workers = workers
    this.#onChange = onChange
    this.#isDraining = mark.read()
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** Why no pod is admitted; undefined where pods are. */
  refusal(): NodeRefusal | undefined {
    return this.#isDraining ? { reason: 'NodeShutdown', message: refusal } : undefined
  }

  /** Resolves when all pods have ended, or timed out. Later calls wait for the same result. Throws where undone. */
  run(): Promise<DrainResult> {
    this.#running ??= this.#drain().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  /** Undoes the drain: pods may start again. Throws the system's error where that can't be recorded. */
  async undo(): Promise<void> {
    this.#undone.abort(new PoddError('DRAIN_UNDONE', 'the drain was undone'))
    // It may be about to write the mark.
    await this.#running?.catch(() => undefined)
    await this.#mark.remove()
    if (!this.#isDraining) return
    this.#isDraining = false
    this.#env.events.recordNode({
      type: 'Normal',
      reason: 'NodeShutdownCancelled',
      message: 'Pods start again',
    })
    this.#onChange()
  }

  async #drain(): Promise<DrainResult> {
    const { events, logger } = this.#env
    this.#undone = new AbortController()
    this.#isDraining = true
    try {
      await this.#mark.write()
    } catch (error) {
      // Pods terminate nevertheless; a podd that is killed meanwhile would start them again.
      logger.warn({ err: error, reason: errorMessage(error) }, 'cannot record that the node shuts down')
    }
    events.recordNode({
      type: 'Normal',
      reason: 'NodeShutdown',
      message: 'Terminating all pods for the shutdown of the node',
    })
    this.#onChange()
    // A finished pod keeps its phase, though its sandbox may still exist.
    const live = [...this.#workers()].filter(({ state }) => state.holdsResources && !state.hasEnded)
    const byKey = new Map(live.map((worker) => [podKey(worker.ref), worker]))
    const groups = planShutdown(
      live.map(({ ref, state }) => ({
        key: podKey(ref),
        priority: state.classedPod.spec.priority ?? 0,
        graceSeconds: state.pod.spec.terminationGracePeriodSeconds,
      })),
      this.#settings,
    )
    for (const group of groups) await this.#end(group, byKey)
    // Pods killed at their deadline take a moment to disappear.
    await this.#await(live, killedMs)
    const stuck = live.filter((worker) => !isOver(worker)).map(({ ref }) => podKey(ref))
    return { ended: live.length - stuck.length, stuck }
  }

  async #end(group: ShutdownGroup, byKey: ReadonlyMap<string, PodWorker>): Promise<void> {
    this.#undone.signal.throwIfAborted()
    const workers = group.pods.flatMap(({ key, graceSeconds }) => {
      const worker = byKey.get(key)
      worker?.end({ cause: 'evicted', reason, message, graceSeconds, until: 'shutdown-ends' })
      return worker ?? []
    })
    await this.#await(workers, group.waitSeconds * 1000)
  }

  async #await(workers: readonly PodWorker[], waitMs: number): Promise<void> {
    const { changes, clock } = this.#env
    await changes.until(() => workers.every((worker) => isOver(worker)), clock, waitMs, this.#undone.signal)
  }
}

function isOver({ state }: PodWorker): boolean {
  return state.isOver || state.stage === 'gone'
}

/**
 * The mark that this host is being shut down: a file with the id of the current boot, since the run directory may survive a
 * reboot.
 */
export function drainMark(path: string, bootId: string) {
  return {
    /** Whether the mark of this boot exists. */
    read(): boolean {
      try {
        return readFileSync(path, 'utf8').trim() === bootId
      } catch {
        // Without a file the host isn't being shut down.
        return false
      }
    },
    write: (): Promise<void> => writeFileAtomic(path, `${bootId}\n`),
    remove: (): Promise<void> => rm(path, { force: true }),
  }
}
