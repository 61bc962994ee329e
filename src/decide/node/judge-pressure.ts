/*
 * A host that runs out of memory, disk or processes: which thresholds are missed, which pods wait for that, which one is
 * evicted; and pods that use more disk than their own limits allow.
 */
import { defaultEvictionHard, evictionSignals } from '../../config/node-options.ts'
import type { EvictionSignal, Thresholds, ThresholdValue } from '../../config/node-options.ts'
import { computeQosClass, isCritical, podLimits } from '../../pod/schema/pod-resources.ts'
import type { Pod, PodSpec } from '../../pod/schema/pod-schema.ts'
import { formatQuantity, quantityValue } from '../../pod/values/quantity.ts'

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
    ...missed.map(({ signal }) => [shortOf[signal].condition, nowMs] as const),
  ])
  for (const [condition, lastMs] of conditionLastMs)
    if (lastMs < nowMs && nowMs - lastMs >= transitionMs) conditionLastMs.delete(condition)
  const all = ['MemoryPressure', 'DiskPressure', 'PIDPressure'] as const
  const short = new Set(missed.map(({ signal }) => shortOf[signal].condition))
  const isMemory = (threshold: Threshold): boolean => starvedResource(threshold) === 'memory'
  const starving = due.filter(({ signal }) => observations.has(signal))
  return {
    state: { missedSinceMs, unrelieved: new Set(due.map(({ key }) => key)), conditionLastMs },
    conditions: all.filter((condition) => conditionLastMs.has(condition)),
    shortages: all.filter((condition) => short.has(condition)),
    starving: [...starving.filter((each) => isMemory(each)), ...starving.filter((each) => !isMemory(each))],
  }
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

/** The amount that a threshold stands for. */
function thresholdAmount(value: ThresholdValue, capacity: number): number {
  return value.kind === 'amount' ? value.amount : Math.floor(value.share * capacity)
}

/** What is short where a signal tells so. */
const shortOf: Readonly<
  Record<EvictionSignal, { readonly condition: PressureCondition; readonly resource: StarvedResource }>
> = {
  'memory.available': { condition: 'MemoryPressure', resource: 'memory' },
  'allocatableMemory.available': { condition: 'MemoryPressure', resource: 'memory' },
  'nodefs.available': { condition: 'DiskPressure', resource: 'ephemeral-storage' },
  'nodefs.inodesFree': { condition: 'DiskPressure', resource: 'inodes' },
  'imagefs.available': { condition: 'DiskPressure', resource: 'ephemeral-storage' },
  'imagefs.inodesFree': { condition: 'DiskPressure', resource: 'inodes' },
  'containerfs.available': { condition: 'DiskPressure', resource: 'ephemeral-storage' },
  'containerfs.inodesFree': { condition: 'DiskPressure', resource: 'inodes' },
  'pid.available': { condition: 'PIDPressure', resource: 'pids' },
}

export function starvedResource({ signal }: Pick<Threshold, 'signal'>): StarvedResource {
  return shortOf[signal].resource
}

/** Why the node does not admit a pod now. */
export interface NodeRefusal {
  readonly reason: string
  readonly message: string
}

/**
 * Why a pod isn't admitted while the node is short of something; undefined where nothing stands against it
 * (`pkg/kubelet/eviction/eviction_manager.go`, Admit, 1.36). Unlike in the kubelet a pod waits rather than fails, and
 * only while the shortage lasts, as there is no scheduler to keep away.
 */
export function refuseUnderPressure(
  spec: Pod['spec'],
  shortages: readonly PressureCondition[],
): NodeRefusal | undefined {
  if (shortages.length === 0 || isCritical(spec)) return undefined
  const onlyMemory = shortages.every((condition) => condition === 'MemoryPressure')
  if (onlyMemory && computeQosClass(spec) !== 'BestEffort') return undefined
  return { reason: 'NodeUnderPressure', message: conditionMessage(shortages) }
}

/** In the kubelet's words (`eviction_manager.go`, Admit, 1.36). */
export function conditionMessage(conditions: readonly PressureCondition[]): string {
  return `The node had condition: [${conditions.join(' ')}]. `
}

/** A pod that may be evicted, with its usage. Undefined where it could not be measured. */
export interface EvictionCandidate {
  /** `namespace/name` */
  readonly key: string
  readonly name: string
  readonly priority: number
  /** Whether its priority is at least that of `system-cluster-critical`: it is never evicted. */
  readonly isCritical: boolean
  readonly used: Readonly<Partial<Record<StarvedResource, number>>>
  /** Of the whole pod; 0 where nothing is requested. */
  readonly requested: Readonly<Partial<Record<'memory' | 'ephemeral-storage', number>>>
  /** Whether the pod requests memory at the pod level. */
  readonly podLevelMemory: boolean
  readonly containers: readonly ContainerConsumption[]
}

/** What a container uses. */
export interface ContainerConsumption {
  readonly name: string
  readonly memoryBytes: number | undefined
  /** Its writable layer and its logs. */
  readonly diskBytes: number | undefined
  readonly requests: Readonly<Partial<Record<'memory' | 'ephemeral-storage', number>>>
}

/** The least usage of a resource for which an eviction helps. */
const worthwhile: Readonly<Record<StarvedResource, number>> = {
  memory: 1,
  'ephemeral-storage': 1024 ** 2,
  inodes: 100,
  pids: 1,
}

/**
 * Pods in the order in which they are evicted: those over their requests first, then by priority, then by how far they
 * are over their requests (`pkg/kubelet/eviction/helpers.go`, rankMemoryPressure, rankDiskPressureFunc and
 * rankPIDPressure, 1.36). Critical pods are left out; so are, unlike in the kubelet, pods that use almost nothing of
 * the resource, as their eviction would free nothing.
 */
export function rankForEviction(
  candidates: readonly EvictionCandidate[],
  resource: StarvedResource,
): readonly EvictionCandidate[] {
  const excess = (candidate: EvictionCandidate): number =>
    (candidate.used[resource] ?? Infinity) - requestOf(candidate, resource)
  return candidates
    .filter(({ isCritical, used }) => !isCritical && (used[resource] ?? Infinity) >= worthwhile[resource])
    .toSorted((one, other) => {
      const overOne = resource !== 'pids' && excess(one) > 0
      const overOther = resource !== 'pids' && excess(other) > 0
      if (overOne !== overOther) return overOne ? -1 : 1
      if (one.priority !== other.priority) return one.priority - other.priority
      const [excessOne, excessOther] = [excess(one), excess(other)]
      // For two pods that could not be measured the difference is NaN.
      if (excessOne !== excessOther) return excessOther - excessOne
      return one.key < other.key ? -1 : 1
    })
}

/** The kubelet counts inodes beyond 0, since no pod can request them. */
function requestOf({ requested }: EvictionCandidate, resource: StarvedResource): number {
  return resource === 'memory' || resource === 'ephemeral-storage' ? (requested[resource] ?? 0) : 0
}

/**
 * The message of an eviction, identical to the kubelet's (`pkg/kubelet/eviction/helpers.go`, evictionMessage, 1.36).
 */
export function evictionMessage(
  threshold: Threshold,
  observations: Observations,
  candidate: EvictionCandidate,
): string {
  const resource = starvedResource(threshold)
  const parts = [`The node was low on resource: ${resource}. `]
  const observed = observations.get(threshold.signal)
  const format = (amount: number): string =>
    quantity(amount, resource === 'memory' || resource === 'ephemeral-storage')
  if (observed !== undefined) {
    const wanted = format(thresholdAmount(threshold.value, observed.capacity))
    parts.push(`Threshold quantity: ${wanted}, available: ${format(observed.available)}. `)
  }
  if (resource !== 'memory' && resource !== 'ephemeral-storage') return parts.join('')
  const podRequest = candidate.requested.memory
  if (resource === 'memory' && candidate.podLevelMemory && podRequest !== undefined)
    parts.push(larger('Pod', candidate.name, candidate.used.memory ?? 0, podRequest, resource))
  for (const container of candidate.containers) {
    const used = usedBy(container, resource)
    const request = container.requests[resource] ?? 0
    if (used !== undefined && used > request)
      parts.push(larger('Container', container.name, used, request, resource))
  }
  return parts.join('')
}

function usedBy(
  container: ContainerConsumption,
  resource: 'memory' | 'ephemeral-storage',
): number | undefined {
  return resource === 'memory' ? container.memoryBytes : container.diskBytes
}

function larger(kind: string, name: string, used: number, request: number, resource: string): string {
  const [usage, requested] = [quantity(used, true), quantity(request, true)]
  return `${kind} ${name} was using ${usage}, request is ${requested}, has larger consumption of ${resource}. `
}

function quantity(amount: number, isBytes: boolean): string {
  return formatQuantity({
    nanos: BigInt(Math.round(amount)) * 1_000_000_000n,
    format: isBytes ? 'BinarySI' : 'DecimalSI',
  })
}

/** A pod's disk usage, in bytes. */
export interface StorageUse {
  /** Its logs, its emptyDirs on disk and what its containers have written to their layers. */
  readonly podBytes: number
  /** The usage of each container's logs and layer, by name. */
  readonly containers: ReadonlyMap<string, number>
}

const storage = 'ephemeral-storage'

/** Whether a pod has a limit of ephemeral storage, and may be evicted for it. */
export function isStorageLimited(spec: PodSpec): boolean {
  return !isCritical(spec) && podLimits(spec, 'with-overhead')[storage] !== undefined
}

/**
 * The eviction message of a pod that exceeds its own or a container's limit of disk usage; undefined where none does
 * (`pkg/kubelet/eviction/eviction_manager.go`, podEphemeralStorageLimitEviction and
 * containerEphemeralStorageLimitEviction, 1.36).
 */
export function judgeStorage(spec: PodSpec, { podBytes, containers }: StorageUse): string | undefined {
  const total = podLimits(spec, 'with-overhead')[storage]
  if (total !== undefined && podBytes > quantityValue(total))
    return `Pod ephemeral local storage usage exceeds the total limit of containers ${total}. `
  for (const { name, resources } of spec.containers) {
    const limit = resources.limits[storage]
    const limitBytes = limit === undefined ? 0 : quantityValue(limit)
    if (limitBytes <= 0 || (containers.get(name) ?? 0) <= limitBytes) continue
    return `Container ${name} exceeded its local ephemeral storage limit "${limit}". `
  }
  return undefined
}
