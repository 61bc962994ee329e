import { rm } from 'node:fs/promises'
import { writeFileAtomic } from '../../base/atomic-file.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { readTextIfThere } from '../../base/read-bounded.ts'
import type { NodeRefusal } from '../../decide/node/judge-pressure.ts'
import { planShutdown } from '../../decide/node/plan-shutdown.ts'
import type { ShutdownGroup, ShutdownSettings } from '../../decide/node/plan-shutdown.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { PodKey } from '../../pod/values/ids.ts'
import type { PodEnv } from '../pod/env.ts'
import type { PodWorker } from '../pod/worker.ts'

export type DrainMark = ReturnType<typeof drainMark>

interface DrainResult {
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

export type NodeDrain = ReturnType<typeof createDrain>

/**
 * Ends all pods before the host shuts down, in the order of their priorities, and admits none meanwhile. They are started
 * again after the next boot, or when the drain is undone.
 * @param onChange pods may be admitted again, or no longer
 */
export function createDrain(
  { changes, events, shutdown, clock, logger }: PodEnv,
  settings: ShutdownSettings,
  mark: DrainMark,
  listWorkers: () => Iterable<PodWorker>,
  onChange: () => void,
) {
  let isDraining = mark.read()
  let running: Promise<DrainResult> | undefined
  let undone = new AbortController()

  async function drain(): Promise<DrainResult> {
    undone = new AbortController()
    isDraining = true
    try {
      await mark.write()
    } catch (error) {
      // Pods terminate nevertheless; a podd that is killed meanwhile would start them again.
      logger.warn({ err: error, reason: errorMessage(error) }, 'cannot record that the node shuts down')
    }
    const begun = 'Terminating all pods for the shutdown of the node'
    events.recordNode({ type: 'Normal', reason: 'NodeShutdown', message: begun })
    onChange()
    // A finished pod keeps its phase, though its sandbox may still exist.
    const live = [...listWorkers()].filter(({ state }) => state.holdsResources && !state.hasEnded)
    const byKey = new Map(live.map((worker) => [podKey(worker.ref), worker]))
    const groups = planShutdown(
      live.map(({ ref, state }) => ({
        key: podKey(ref),
        priority: state.classedPod.spec.priority ?? 0,
        graceSeconds: state.pod.spec.terminationGracePeriodSeconds,
      })),
      settings,
    )
    for (const group of groups) await end(group, byKey)
    // Pods killed at their deadline take a moment to disappear.
    await untilOver(live, killedMs)
    const stuck = live.filter((worker) => !isOver(worker)).map(({ ref }) => podKey(ref))
    return { ended: live.length - stuck.length, stuck }
  }

  async function end(group: ShutdownGroup, byKey: ReadonlyMap<string, PodWorker>): Promise<void> {
    undone.signal.throwIfAborted()
    const workers = group.pods.flatMap(({ key, graceSeconds }) => {
      const worker = byKey.get(key)
      worker?.end({ cause: 'evicted', reason, message, graceSeconds, until: 'shutdown-ends' })
      return worker ?? []
    })
    await untilOver(workers, group.waitSeconds * 1000)
  }

  async function untilOver(workers: readonly PodWorker[], waitMs: number): Promise<void> {
    await changes.until(() => workers.every((worker) => isOver(worker)), clock, waitMs, undone.signal)
  }

  return {
    get isDraining() {
      return isDraining
    },

    /** Why no pod is admitted; undefined where pods are. */
    refusal: (): NodeRefusal | undefined =>
      isDraining || shutdown.isStopping ? { reason: 'NodeShutdown', message: refusal } : undefined,

    /** Resolves when all pods have ended, or timed out. Later calls wait for the same result. Throws where undone. */
    run(): Promise<DrainResult> {
      running ??= drain().finally(() => {
        running = undefined
      })
      return running
    },

    /** Undoes the drain: pods may start again. Throws the system's error where that can't be recorded. */
    async undo(): Promise<void> {
      undone.abort(new PoddError('DRAIN_UNDONE', 'the drain was undone'))
      // It may be about to write the mark.
      await running?.catch(() => undefined)
      await mark.remove()
      if (!isDraining) return
      isDraining = false
      events.recordNode({ type: 'Normal', reason: 'NodeShutdownCancelled', message: 'Pods start again' })
      onChange()
    },
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
    /** Whether the mark of this boot exists: without a file the host isn't being shut down. */
    read: (): boolean => readTextIfThere(path)?.trim() === bootId,
    write: (): Promise<void> => writeFileAtomic(path, `${bootId}\n`),
    remove: (): Promise<void> => rm(path, { force: true }),
  }
}
