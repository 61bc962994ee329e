import type { Clock } from '../../../base/clock.ts'
import type { Logger } from '../../../base/logger.ts'
import type { PoddConfig } from '../../../config/options.ts'
import { listThresholds } from '../../../decide/node/judge-pressure.ts'
import type { EvictionSettings, PressureCondition } from '../../../decide/node/judge-pressure.ts'
import type { NodeEventRecorder } from '../../../pod/state/pod-event.ts'
import type { PodWorker } from '../../worker/pod-worker.ts'
import { measurePods } from './measure-pods.ts'
import { NodePressure } from './node-pressure.ts'
import type { EvictablePod } from './node-pressure.ts'
import type { PressureSurroundings } from './pressure-surroundings.ts'

export interface NodePressureWiring {
  readonly settings: EvictionSettings &
    Pick<PoddConfig, 'evictionPressureTransitionPeriodMs' | 'evictionMaxPodGracePeriod'>
  readonly surroundings: PressureSurroundings
  readonly workers: () => Iterable<PodWorker>
  /** Removes the images that no pod needs. */
  readonly collectImages: (signal: AbortSignal) => Promise<void>
  readonly onShortages: (shortages: readonly PressureCondition[]) => void
  readonly onRelaxed: () => void
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/** The pressure of this host on its pods; undefined where the settings have no threshold. */
export function createNodePressure(wiring: NodePressureWiring): NodePressure | undefined {
  const { settings, surroundings, workers, collectImages, ...rest } = wiring
  const thresholds = listThresholds(settings)
  if (thresholds.length === 0) return undefined
  const signals = new Set(thresholds.map(({ signal }) => signal))
  return new NodePressure({
    ...rest,
    thresholds,
    transitionMs: settings.evictionPressureTransitionPeriodMs,
    maxPodGraceSeconds: settings.evictionMaxPodGracePeriod,
    observe: (signal) => surroundings.observe(signals, signal),
    async measure(threshold, resource, signal) {
      const running = [...workers()].filter(({ state }) => state.stage === 'active' && !state.isOver)
      const pods = running.map(({ ref, state }) => ({ ref, pod: state.classedPod }))
      const isDisk = resource === 'ephemeral-storage' || resource === 'inodes'
      const disk = isDisk ? await surroundings.diskOf(threshold.signal) : 'both'
      const candidates = await measurePods(surroundings, pods, { resource, disk }, signal)
      return running.flatMap<EvictablePod>((worker, at) => {
        const candidate = candidates[at]
        if (candidate === undefined) return []
        return [
          {
            uid: worker.ref.uid,
            candidate,
            graceSeconds: worker.state.pod.spec.terminationGracePeriodSeconds,
            isOver: () => worker.state.isOver || worker.state.stage === 'gone',
            isReclaimed: () => worker.state.isReleased || worker.state.stage === 'gone',
            evict: (message, graceSeconds) =>
              worker.end({
                cause: 'evicted',
                reason: 'Evicted',
                message,
                graceSeconds,
                until: 'pressure-ends',
              }),
          },
        ]
      })
    },
    async reclaim({ signal: starved }, signal) {
      const isDisk = starved.startsWith('nodefs.') || starved.startsWith('imagefs.')
      // Where images have a disk of their own, removing some frees no space on the node's.
      if (isDisk && (await surroundings.diskOf(starved)) !== 'node') await collectImages(signal)
    },
  })
}
