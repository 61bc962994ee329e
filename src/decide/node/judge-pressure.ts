import { defaultEvictionHard, evictionSignals } from '../../config/node-options.ts'
import type { EvictionSignal, ThresholdValue, Thresholds } from '../../config/node-options.ts'

/** A signal and the amount of it that must stay available. */
export interface Threshold {
  /** `hard memory.available`, `soft nodefs.available`: one of each at most. */
  readonly key: string
  readonly signal: EvictionSignal
  readonly value: ThresholdValue
  /** The grace period; 0 for a hard threshold. */
  readonly graceMs: number
  /** How much more must be available until it counts as relieved. */
  readonly minReclaim: ThresholdValue | undefined
}

/** The observation of a signal, in its unit: bytes, inodes, processes. */
export interface Observation {
  readonly available: number
  readonly capacity: number
}

export type Observations = ReadonlyMap<EvictionSignal, Observation>

export type PressureCondition = 'MemoryPressure' | 'DiskPressure' | 'PIDPressure'

/** The resource that pods are ranked by, and its name in messages. */
export type StarvedResource = 'memory' | 'ephemeral-storage' | 'inodes' | 'pids'

/** The state kept between two syncs. Times are of the monotonic clock. */
export interface PressureState {
  /** When each threshold that is currently missed was first missed, by its key. */
  readonly missedSinceMs: ReadonlyMap<string, number>
  /** Thresholds that were missed for longer than their grace, and were not relieved since. */
  readonly unrelieved: ReadonlySet<string>
  readonly conditionLastMs: ReadonlyMap<PressureCondition, number>
}

export const noPressure: PressureState = {
  missedSinceMs: new Map(),
  unrelieved: new Set(),
  conditionLastMs: new Map(),
}

export interface PressureVerdict {
  readonly state: PressureState
  /** The conditions that are true now, or were within the transition period; in the order of the type. */
  readonly conditions: readonly PressureCondition[]
  /** The conditions that are true now. */
  readonly shortages: readonly PressureCondition[]
  /** The thresholds to act on now, most urgent first: memory before all others. */
  readonly starving: readonly Threshold[]
}

const conditionOf: Readonly<Record<EvictionSignal, PressureCondition>> = {
  'memory.available': 'MemoryPressure',
  'allocatableMemory.available': 'MemoryPressure',
  'nodefs.available': 'DiskPressure',
  'nodefs.inodesFree': 'DiskPressure',
  'imagefs.available': 'DiskPressure',
  'imagefs.inodesFree': 'DiskPressure',
  'containerfs.available': 'DiskPressure',
  'containerfs.inodesFree': 'DiskPressure',
  'pid.available': 'PIDPressure',
}

const resourceOf: Readonly<Record<EvictionSignal, StarvedResource>> = {
  'memory.available': 'memory',
  'allocatableMemory.available': 'memory',
  'nodefs.available': 'ephemeral-storage',
  'nodefs.inodesFree': 'inodes',
  'imagefs.available': 'ephemeral-storage',
  'imagefs.inodesFree': 'inodes',
  'containerfs.available': 'ephemeral-storage',
  'containerfs.inodesFree': 'inodes',
  'pid.available': 'pids',
}

export function starvedResource({ signal }: Pick<Threshold, 'signal'>): StarvedResource {
  return resourceOf[signal]
}

/** The kubelet's `eviction…` settings. */
export interface EvictionSettings {
  readonly evictionHard: Thresholds
  readonly evictionSoft: Thresholds
  readonly evictionSoftGracePeriodMs: Readonly<Partial<Record<EvictionSignal, number>>>
  readonly evictionMinimumReclaim: Thresholds
  readonly mergeDefaultEvictionSettings: boolean
}

/**
 * The thresholds of the settings (`pkg/kubelet/eviction/helpers.go`, ParseThresholdConfig, 1.36). A hard one for
 * `memory.available` also applies to the memory limit of all pods together; `containerfs` has no effect, since
 * containers are on the images' file system.
 */
export function listThresholds(settings: EvictionSettings): readonly Threshold[] {
  const hard: Thresholds = settings.mergeDefaultEvictionSettings
    ? { ...defaultEvictionHard, ...settings.evictionHard }
    : settings.evictionHard
  const forPods = hard['allocatableMemory.available'] ?? hard['memory.available']
  return [
    ...select(
      'hard',
      forPods === undefined ? hard : { ...hard, 'allocatableMemory.available': forPods },
      settings,
    ),
    ...select('soft', settings.evictionSoft, settings),
  ]
}

function select(kind: 'hard' | 'soft', values: Thresholds, settings: EvictionSettings): readonly Threshold[] {
  return evictionSignals.flatMap((signal) => {
    const value = values[signal]
    if (value === undefined || signal.startsWith('containerfs.')) return []
    const graceMs = kind === 'hard' ? 0 : (settings.evictionSoftGracePeriodMs[signal] ?? 0)
    const minReclaim = settings.evictionMinimumReclaim[signal]
    return [{ key: `${kind} ${signal}`, signal, value, graceMs, minReclaim }]
  })
}

export function isHard({ key }: Pick<Threshold, 'key'>): boolean {
  return key.startsWith('hard ')
}

/** The amount that a threshold stands for. */
export function thresholdAmount(value: ThresholdValue, capacity: number): number {
  return value.kind === 'amount' ? value.amount : Math.floor(value.share * capacity)
}

/** Whether less is available than has to be; false where the signal was not observed. */
export function isMissed(
  threshold: Threshold,
  observations: Observations,
  { withReclaim }: { readonly withReclaim: boolean },
): boolean {
  const observed = observations.get(threshold.signal)
  if (observed === undefined) return false
  const { value, minReclaim } = threshold
  const more = withReclaim && minReclaim !== undefined ? thresholdAmount(minReclaim, observed.capacity) : 0
  return observed.available < thresholdAmount(value, observed.capacity) + more
}

/**
 * Evaluates the signals (`pkg/kubelet/eviction/eviction_manager.go`, synchronize, 1.36): a threshold counts after its
 * grace period, and then until its minimum reclaim is available too; a condition outlasts its cause by the transition
 * period. A signal that could not be read keeps its state.
 * @param nowMs of the monotonic clock
 */
export function judgePressure(
  thresholds: readonly Threshold[],
  observations: Observations,
  before: PressureState,
  { transitionMs, nowMs }: { readonly transitionMs: number; readonly nowMs: number },
): PressureVerdict {
  const missed = thresholds.filter((threshold) => {
    const withReclaim = before.unrelieved.has(threshold.key)
    if (!observations.has(threshold.signal)) return before.missedSinceMs.has(threshold.key)
    return isMissed(threshold, observations, { withReclaim })
  })
  const missedSinceMs = new Map(missed.map(({ key }) => [key, before.missedSinceMs.get(key) ?? nowMs]))
  const due = missed.filter(({ key, graceMs }) => nowMs - (missedSinceMs.get(key) ?? nowMs) >= graceMs)
  const conditionLastMs = new Map([
    ...before.conditionLastMs,
    ...missed.map(({ signal }) => [conditionOf[signal], nowMs] as const),
  ])
  for (const [condition, lastMs] of conditionLastMs)
    if (lastMs < nowMs && nowMs - lastMs >= transitionMs) conditionLastMs.delete(condition)
  const all = ['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const
  const short = new Set(missed.map(({ signal }) => conditionOf[signal]))
  const isMemory = (threshold: Threshold): boolean => starvedResource(threshold) === 'memory'
  const starving = due.filter(({ signal }) => observations.has(signal))
  return {
    state: { missedSinceMs, unrelieved: new Set(due.map(({ key }) => key)), conditionLastMs },
    conditions: all.filter((condition) => conditionLastMs.has(condition)),
    shortages: all.filter((condition) => short.has(condition)),
    starving: [...starving.filter((each) => isMemory(each)), ...starving.filter((each) => !isMemory(each))],
  }
}
