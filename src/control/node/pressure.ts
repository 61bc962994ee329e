import { pollUntil } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import type { LogFields, Logger } from '../../base/logger.ts'
import type { PoddConfig } from '../../config/options.ts'
import {
  evictionMessage,
  isHard,
  isMissed,
  judgePressure,
  listThresholds,
  noPressure,
  rankForEviction,
  refuseUnderPressure,
  starvedResource,
} from '../../decide/node/judge-pressure.ts'
import type {
  EvictionCandidate,
  EvictionSettings,
  NodeRefusal,
  Observations,
  PressureCondition,
  PressureState,
  PressureVerdict,
  StarvedResource,
  Threshold,
} from '../../decide/node/judge-pressure.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { PodWorker } from '../pod/worker.ts'
import { measurePods } from './measure-pods.ts'
import type { PressureSurroundings } from './measure-pods.ts'
import type { NodeJob } from './node-jobs.ts'

/** A pod that may be evicted: how to tell it to end, and whether it still runs. */
interface EvictablePod {
  readonly uid: PodUid
  readonly candidate: EvictionCandidate
  readonly graceSeconds: number
  /** Nothing of it runs any more. */
  isOver(): boolean
  /** Its volumes and its cgroup are gone too. */
  isReclaimed(): boolean
  evict(message: string, graceSeconds: number): void
}

export interface NodePressureOptions {
  readonly thresholds: readonly Threshold[]
  /** `evictionPressureTransitionPeriod` */
  readonly transitionMs: number
  /** `evictionMaxPodGracePeriod`, in seconds. */
  readonly maxPodGraceSeconds: number
  /** The currently available amounts, without signals that can't be read. */
  readonly observe: (signal: AbortSignal) => Promise<Observations>
  /** The running pods with their usage of a resource. */
  readonly measure: (
    threshold: Threshold,
    resource: StarvedResource,
    signal: AbortSignal,
  ) => Promise<readonly EvictablePod[]>
  /** Frees space without terminating a pod, where possible. Throws what prevented it. */
  readonly reclaim: (threshold: Threshold, signal: AbortSignal) => Promise<void>
  /** Other pods than before may be admitted. */
  readonly onShortages: (shortages: readonly PressureCondition[]) => void
  /** Called with each sync without pressure: evicted pods may run again. */
  readonly onRelaxed: () => void
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
  readonly periodMs?: number
}

/** `pkg/kubelet/kubelet.go`, evictionMonitoringPeriod, 1.36. */
const periodMs = 10_000
/** Reclaiming images from a slow disk takes minutes. */
const deadlineMs = 1_800_000
/** `pkg/kubelet/eviction/eviction_manager.go`, podCleanupTimeout and podCleanupPollFreq, 1.36. */
const cleanupMs = 30_000
const cleanupPollMs = 250
/** How long to wait for the removal of an ended pod's volumes. */
const reclaimMs = 300_000
/** The interval of syncs under pressure. */
const reliefPollMs = 1000
/** The grace of a pod that a hard threshold evicts, in seconds (immediateEvictionGracePeriodSeconds). */
const hardGraceSeconds = 1

/** The interval at which a persistent failure is logged again. */
const repeatWarningMs = 3_600_000

/** The kubelet's events (`pkg/kubelet/nodestatus/setters.go`, 1.36). */
const conditionReasons: Readonly<Record<PressureCondition, readonly [string, string]>> = {
  MemoryPressure: ['NodeHasInsufficientMemory', 'NodeHasSufficientMemory'],
  DiskPressure: ['NodeHasDiskPressure', 'NodeHasNoDiskPressure'],
  PIDPressure: ['NodeHasInsufficientPID', 'NodeHasSufficientPID'],
}

/**
 * Keeps the host from running out of memory, disk and processes: reclaims what no pod needs, and then evicts pods, one
 * at a time (`pkg/kubelet/eviction/eviction_manager.go`, synchronize, 1.36). Unlike the kubelet, which never evicts
 * static pods because they would not return, podd starts them again when the pressure is over.
 */
export class NodePressure {
  readonly #options: NodePressureOptions
  #state: PressureState = noPressure
  #conditions: readonly PressureCondition[] = []
  #shortages: readonly PressureCondition[] = []
  #observations: Observations = new Map()
  /** When each warning was last logged during this shortage, in monotonic milliseconds. */
  readonly #warnedMs = new Map<string, number>()

  constructor(options: NodePressureOptions) {
    this.#options = options
  }

  /** The current pressure conditions. */
  get conditions(): readonly PressureCondition[] {
    return this.#conditions
  }

  /** The amounts at the last sync. */
  get observations(): Observations {
    return this.#observations
  }

  /** Why a pod isn't admitted now; undefined where it is. */
  refusal(pod: Pick<Pod, 'spec'>): NodeRefusal | undefined {
    return refuseUnderPressure(pod.spec, this.#shortages)
  }

  job(): NodeJob {
    return {
      name: 'relieve-pressure',
      periodMs: this.#options.periodMs ?? periodMs,
      deadlineMs,
      run: async (signal) => {
        // One pod at a time; the effect is measured before the next one.
        while (await this.#relieve(signal)) signal.throwIfAborted()
        await this.#awaitRelief(signal)
      },
    }
  }

  /** While the node is short of something, it is measured more often: pods wait for the end of the shortage. */
  async #awaitRelief(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const untilMs = clock.monotonicMs() + (this.#options.periodMs ?? periodMs) - reliefPollMs
    while (this.#shortages.length > 0 && clock.monotonicMs() < untilMs) {
      await clock.sleep(reliefPollMs, signal)
      await this.#look(signal)
    }
  }

  async #look(signal: AbortSignal): Promise<readonly Threshold[]> {
    const { thresholds, transitionMs, clock } = this.#options
    this.#observations = await this.#options.observe(signal)
    const verdict = judgePressure(thresholds, this.#observations, this.#state, {
      transitionMs,
      nowMs: clock.monotonicMs(),
    })
    this.#state = verdict.state
    this.#show(verdict)
    return verdict.starving
  }

  /** Whether a pod was evicted. */
  async #relieve(signal: AbortSignal): Promise<boolean> {
    const { events } = this.#options
    const starving = await this.#look(signal)
    const [threshold] = starving
    if (threshold === undefined) return false
    const resource = starvedResource(threshold)
    events.recordNode({
      type: 'Warning',
      reason: 'EvictionThresholdMet',
      message: `Attempting to reclaim ${resource}`,
    })
    try {
      await this.#options.reclaim(threshold, signal)
    } catch (error) {
      signal.throwIfAborted()
      this.#warn('cannot reclaim what no pod needs', { reason: resource, err: error })
    }
    const after = await this.#options.observe(signal)
    if (!starving.some((each) => isMissed(each, after, { withReclaim: true }))) return false
    return this.#evict(threshold, after, signal)
  }

  async #evict(threshold: Threshold, observations: Observations, signal: AbortSignal): Promise<boolean> {
    const { clock, logger, maxPodGraceSeconds } = this.#options
    const resource = starvedResource(threshold)
    const pods = await this.#options.measure(threshold, resource, signal)
    const ranked = rankForEviction(
      pods.map(({ candidate }) => candidate),
      resource,
    )
    const pod = pods.find(({ candidate }) => candidate === ranked[0])
    if (pod === undefined) {
      this.#warn('the node is short of resources, and no pod can be evicted', { reason: threshold.signal })
      return false
    }
    const message = evictionMessage(threshold, observations, pod.candidate)
    const graceSeconds = isHard(threshold) ? hardGraceSeconds : Math.min(maxPodGraceSeconds, pod.graceSeconds)
    logger.warn({ pod: pod.candidate.key, uid: pod.uid, reason: message }, 'evicting a pod')
    pod.evict(message, graceSeconds)
    const patience = { periodMs: cleanupPollMs, timeoutMs: cleanupMs + graceSeconds * 1000, signal }
    // Removing many files from a slow disk takes time, and only then is the space free.
    if (await pollUntil(clock, () => pod.isOver(), patience))
      await pollUntil(clock, () => pod.isReclaimed(), { ...patience, timeoutMs: reclaimMs })
    return true
  }

  /** Logs it at most once an hour during the shortage. */
  #warn(message: string, fields: LogFields & { readonly reason: string }): void {
    const nowMs = this.#options.clock.monotonicMs()
    const key = `${message} ${fields.reason}`
    if (nowMs - (this.#warnedMs.get(key) ?? -Infinity) < repeatWarningMs) return
    this.#warnedMs.set(key, nowMs)
    this.#options.logger.warn(fields, message)
  }

  #show({ conditions, shortages }: PressureVerdict): void {
    const { events, onShortages, onRelaxed, logger } = this.#options
    const before = this.#conditions
    const hasChanged = shortages.join(' ') !== this.#shortages.join(' ')
    this.#shortages = shortages
    this.#conditions = conditions
    if (conditions.length === 0) this.#warnedMs.clear()
    const added = conditions.filter((condition) => !before.includes(condition))
    const gone = before.filter((condition) => !conditions.includes(condition))
    for (const condition of added) {
      const [reason] = conditionReasons[condition]
      events.recordNode({ type: 'Warning', reason, message: `The node has condition ${condition}` })
    }
    for (const condition of gone) {
      const [, reason] = conditionReasons[condition]
      events.recordNode({ type: 'Normal', reason, message: `The node no longer has condition ${condition}` })
    }
    try {
      if (hasChanged) onShortages(shortages)
      if (conditions.length === 0) onRelaxed()
    } catch (error) {
      logger.error({ err: error, reason: errorMessage(error) }, 'cannot apply the conditions of the node')
    }
  }
}

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
