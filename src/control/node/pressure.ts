import { sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import type { LogFields, Logger } from '../../base/logger.ts'
import type { Changes } from '../../base/waits.ts'
import type { EvictionSignal } from '../../config/node-options.ts'
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
  EvictionSettings,
  NodeRefusal,
  Observations,
  PressureCondition,
  PressureState,
  PressureVerdict,
  Threshold,
} from '../../decide/node/judge-pressure.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { PodWorker } from '../pod/worker.ts'
import { measurePods } from './measure-pods.ts'
import type { PressureMeter } from './measure-pods.ts'
import type { NodeJob } from './node-jobs.ts'

type PressureSettings = EvictionSettings &
  Pick<PoddConfig, 'evictionPressureTransitionPeriodMs' | 'evictionMaxPodGracePeriod'>

/** What the host is kept from running out by. */
interface Relief {
  readonly settings: PressureSettings
  readonly meter: PressureMeter
  readonly workers: () => Iterable<EvictableWorker>
  /** Removes what no pod needs. Throws what prevented it. */
  readonly collectImages: (signal: AbortSignal) => Promise<void>
  /** Other pods than before may be admitted. */
  readonly onShortages: (shortages: readonly PressureCondition[]) => void
  /** Called with each sync without pressure: evicted pods may run again. */
  readonly onRelaxed: () => void
  /** Of the pods. */
  readonly changes: Changes
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/** What is looked at of a pod, and how it is ended. */
export type EvictableWorker = Pick<PodWorker, 'ref' | 'end'> & {
  readonly state: Pick<PodWorker['state'], 'stage' | 'pod' | 'classedPod' | 'isOver' | 'isReleased'>
}

/** `pkg/kubelet/kubelet.go`, evictionMonitoringPeriod, 1.36. */
const periodMs = 10_000
/** Reclaiming images from a slow disk takes minutes. */
const deadlineMs = 1_800_000
/** `pkg/kubelet/eviction/eviction_manager.go`, podCleanupTimeout, 1.36. */
const cleanupMs = 30_000
/** How long to wait for the removal of an ended pod's volumes. */
const reclaimMs = 300_000
/** How long the first look may take: pods wait for it. */
const firstLookMs = 1000
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
  readonly #env: Relief
  readonly #thresholds: readonly Threshold[]
  readonly #signals: ReadonlySet<EvictionSignal>
  #state: PressureState = noPressure
  #conditions: readonly PressureCondition[] = []
  #shortages: readonly PressureCondition[] = []
  #observations: Observations = new Map()
  /** When each warning was last logged during this shortage, in monotonic milliseconds. */
  readonly #warnedMs = new Map<string, number>()

  constructor(env: Relief) {
    this.#env = env
    this.#thresholds = listThresholds(env.settings)
    this.#signals = new Set(this.#thresholds.map(({ signal }) => signal))
  }

  get conditions(): readonly PressureCondition[] {
    return this.#conditions
  }

  get observations(): Observations {
    return this.#observations
  }

  /** Why a pod isn't admitted now; undefined where it is. */
  refusal(pod: Pick<Pod, 'spec'>): NodeRefusal | undefined {
    return refuseUnderPressure(pod.spec, this.#shortages)
  }

  /**
   * Looks before any pod is admitted: a podd that was killed during a shortage must not start what waited for its end. (The
   * kubelet looks for the first time when it starts, and admits static pods meanwhile.) Never throws.
   */
  async begin(): Promise<void> {
    const { clock, logger } = this.#env
    const over = new AbortController()
    const look = this.#look(over.signal).catch((error: unknown) =>
      logger.debug({ err: error }, 'cannot find out what the node is short of'),
    )
    await Promise.race([look, sleepUnlessAborted(clock, firstLookMs, over.signal)])
    over.abort()
  }

  job(): NodeJob {
    return {
      name: 'relieve-pressure',
      periodMs,
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
    const { clock } = this.#env
    const untilMs = clock.monotonicMs() + periodMs - reliefPollMs
    while (this.#shortages.length > 0 && clock.monotonicMs() < untilMs) {
      await clock.sleep(reliefPollMs, signal)
      await this.#look(signal)
    }
  }

  async #look(signal: AbortSignal): Promise<readonly Threshold[]> {
    const { settings, clock } = this.#env
    this.#observations = await this.#observe(signal)
    const verdict = judgePressure(this.#thresholds, this.#observations, this.#state, {
      transitionMs: settings.evictionPressureTransitionPeriodMs,
      nowMs: clock.monotonicMs(),
    })
    this.#state = verdict.state
    this.#show(verdict)
    return verdict.starving
  }

  #observe(signal: AbortSignal): Promise<Observations> {
    return this.#env.meter.observe(this.#signals, signal)
  }

  async #relieve(signal: AbortSignal): Promise<boolean> {
    const { events } = this.#env
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
      await this.#reclaim(threshold, signal)
    } catch (error) {
      signal.throwIfAborted()
      this.#warn('cannot reclaim what no pod needs', { reason: resource, err: error })
    }
    const after = await this.#observe(signal)
    if (!starving.some((each) => isMissed(each, after, { withReclaim: true }))) return false
    return this.#evict(threshold, after, signal)
  }

  /** Frees space without ending a pod, where the disk is short that holds the images. */
  async #reclaim({ signal: starved }: Threshold, signal: AbortSignal): Promise<void> {
    const { meter, collectImages } = this.#env
    const isDisk = starved.startsWith('nodefs.') || starved.startsWith('imagefs.')
    // Where images have a disk of their own, removing some frees no space on the node's.
    if (isDisk && (await meter.diskOf(starved)) !== 'node') await collectImages(signal)
  }

  async #evict(threshold: Threshold, observations: Observations, signal: AbortSignal): Promise<boolean> {
    const { settings, meter, workers, changes, clock, logger } = this.#env
    const resource = starvedResource(threshold)
    const isDisk = resource === 'ephemeral-storage' || resource === 'inodes'
    const disk = isDisk ? await meter.diskOf(threshold.signal) : 'both'
    const running = [...workers()].filter(({ state }) => state.stage === 'active' && !state.isOver)
    const pods = running.map((worker) => ({ worker, ref: worker.ref, pod: worker.state.classedPod }))
    const candidates = await measurePods(meter, pods, { resource, disk }, signal)
    const [worst] = rankForEviction([...candidates.values()], resource)
    const chosen = pods.find((pod) => candidates.get(pod) === worst)
    if (worst === undefined || chosen === undefined) {
      this.#warn('the node is short of resources, and no pod can be evicted', { reason: threshold.signal })
      return false
    }
    const { ref, worker } = chosen
    const message = evictionMessage(threshold, observations, worst)
    const ownSeconds = worker.state.pod.spec.terminationGracePeriodSeconds
    const graceSeconds = isHard(threshold)
      ? hardGraceSeconds
      : Math.min(settings.evictionMaxPodGracePeriod, ownSeconds)
    logger.warn({ pod: worst.key, uid: ref.uid, reason: message }, 'evicting a pod')
    worker.end({ cause: 'evicted', reason: 'Evicted', message, graceSeconds, until: 'pressure-ends' })
    const isGone = (): boolean => worker.state.stage === 'gone'
    const isOver = (): boolean => worker.state.isOver || isGone()
    // Removing many files from a slow disk takes time, and only then is the space free.
    if (await changes.until(isOver, clock, cleanupMs + graceSeconds * 1000, signal))
      await changes.until(() => worker.state.isReleased || isGone(), clock, reclaimMs, signal)
    return true
  }

  /** Logs it at most once an hour during the shortage. */
  #warn(message: string, fields: LogFields & { readonly reason: string }): void {
    const nowMs = this.#env.clock.monotonicMs()
    const key = `${message} ${fields.reason}`
    if (nowMs - (this.#warnedMs.get(key) ?? -Infinity) < repeatWarningMs) return
    this.#warnedMs.set(key, nowMs)
    this.#env.logger.warn(fields, message)
  }

  #show({ conditions, shortages }: PressureVerdict): void {
    const { events, onShortages, onRelaxed, logger } = this.#env
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
