import { isJsonObject } from '../base/json.ts'
import type { Json } from '../base/json.ts'
import { parseQuantity, quantityValue } from '../pod/values/quantity.ts'
import { formatSize } from './log-options.ts'
import {
  bad,
  ok,
  onlyInFile,
  duration,
  flag,
  spellDuration,
  integer,
  parseDuration,
  kubeletOption,
  problemsWhere,
  splitPairs,
} from './option-type.ts'
import type { Decoded, OptionProblems, OptionType } from './option-type.ts'

/** The signals of node pressure (`pkg/kubelet/eviction/api/types.go`, 1.36). */
export const evictionSignals = [
  'memory.available',
  'allocatableMemory.available',
  'nodefs.available',
  'nodefs.inodesFree',
  'imagefs.available',
  'imagefs.inodesFree',
  'containerfs.available',
  'containerfs.inodesFree',
  'pid.available',
] as const
export type EvictionSignal = (typeof evictionSignals)[number]

/** A share of the capacity, from 0 to 1, or an amount in the signal's unit: bytes, inodes, processes. */
export type ThresholdValue =
  | { readonly kind: 'share'; readonly share: number }
  | { readonly kind: 'amount'; readonly amount: number }

export type Thresholds = Readonly<Partial<Record<EvictionSignal, ThresholdValue>>>
type SignalPeriodsMs = Readonly<Partial<Record<EvictionSignal, number>>>

/** Reads one value; undefined where it has no effect. */
type ReadValue<T> = (text: string) => Decoded<T | undefined>

/** Values by signal: `SIGNAL<VALUE,…` in a flag (with the kubelet's separator), a mapping in the file. */
function bySignal<T>(
  label: string,
  separator: '<' | '=',
  read: ReadValue<T>,
  format: (value: T) => string,
): OptionType<Readonly<Partial<Record<EvictionSignal, T>>>> {
  const readPairs = (
    pairs: readonly (readonly [string, Json | undefined])[],
  ): Decoded<Readonly<Partial<Record<EvictionSignal, T>>>> => {
    const result: Partial<Record<EvictionSignal, T>> = {}
    for (const [name, text] of pairs) {
      if (!isSignal(name)) {
        const message = `must not name ${JSON.stringify(name)}: the signals are ${evictionSignals.join(', ')}`
        return bad(message)
      }
      if (typeof text !== 'string' && typeof text !== 'number') return bad(`has no value for ${name}`)
      const value = read(String(text))
      if (value.kind === 'bad') return bad(`${name} ${value.message}`)
      if (value.value !== undefined) result[name] = value.value
    }
    return ok(result)
  }
  return {
    label: `SIGNAL${separator}${label}[,...]`,
    fromText: (text) => readPairs(splitPairs(text, separator)),
    fromFile: (json) =>
      isJsonObject(json) ? readPairs(Object.entries(json)) : bad('must be a mapping of signals'),
    format: (value) =>
      evictionSignals
        .flatMap((signal) => {
          const one = value[signal]
          return one === undefined ? [] : [`${signal}${separator}${format(one)}`]
        })
        .join(','),
  }
}

function isSignal(name: string): name is EvictionSignal {
  return evictionSignals.some((signal) => signal === name)
}

/** `pkg/kubelet/eviction/helpers.go`, parseThresholdStatement, 1.36: 0% and 100% switch a threshold off. */
function readThreshold(text: string): Decoded<ThresholdValue | undefined> {
  if (text === '0%' || text === '100%') return ok(undefined)
  return readValue(text)
}

function readValue(text: string): Decoded<ThresholdValue> {
  if (text.endsWith('%')) {
    const percent = /^\d+(?:\.\d+)?%$/u.test(text) ? Number(text.slice(0, -1)) : Number.NaN
    if (percent > 0 && percent <= 100) return ok({ kind: 'share', share: percent / 100 })
    return bad('must be from 0% to 100%')
  }
  const quantity = parseQuantity(text)
  if (quantity === undefined) return bad('must be a quantity such as 100Mi, or a percentage such as 10%')
  if (quantity.nanos <= 0n) return bad('must be positive')
  return ok({ kind: 'amount', amount: quantityValue(text) })
}

function formatThreshold(value: ThresholdValue): string {
  if (value.kind === 'share') return `${Number((value.share * 100).toFixed(6))}%`
  return formatSize(value.amount)
}

function readPeriod(text: string): Decoded<number> {
  try {
    const periodMs = parseDuration(text)
    if (periodMs >= 0) return ok(periodMs)
  } catch {
    // As for a negative value: the message describes the form.
  }
  return bad('must be a duration such as 30s or 1m30s')
}

const thresholds = bySignal('VALUE', '<', readThreshold, formatThreshold)

/** `pkg/kubelet/eviction/defaults_linux.go`, 1.36. */
export const defaultEvictionHard: Thresholds = {
  'memory.available': { kind: 'amount', amount: 100 * 1024 ** 2 },
  'nodefs.available': { kind: 'share', share: 0.1 },
  'nodefs.inodesFree': { kind: 'share', share: 0.05 },
  'imagefs.available': { kind: 'share', share: 0.15 },
  'imagefs.inodesFree': { kind: 'share', share: 0.05 },
}

/** When pods are evicted because the host runs out of something; a part of the table in options.ts. */
export const evictionOptions = {
  evictionHard: kubeletOption<Thresholds>('evictionHard', defaultEvictionHard, thresholds, {
    flag: 'eviction-hard',
    secret: false,
    doc: 'What has to stay available. Below it, podd removes unused images, then evicts pods, at once. A value replaces all the defaults; `{}`, or an empty flag, disables it.',
  }),
  evictionSoft: kubeletOption<Thresholds>('evictionSoft', {}, thresholds, {
    flag: 'eviction-soft',
    secret: false,
    doc: 'Like `evictionHard`, but a signal may stay below it for the time in `evictionSoftGracePeriod`, and the evicted pods get a grace period.',
  }),
  evictionSoftGracePeriodMs: kubeletOption<SignalPeriodsMs>(
    'evictionSoftGracePeriod',
    {},
    bySignal('DURATION', '=', readPeriod, spellDuration),
    {
      flag: 'eviction-soft-grace-period',
      secret: false,
      doc: 'For each signal of `evictionSoft`, for how long it may be below its threshold.',
    },
  ),
  evictionMinimumReclaim: kubeletOption<Thresholds>(
    'evictionMinimumReclaim',
    {},
    bySignal('VALUE', '=', readValue, formatThreshold),
    {
      flag: 'eviction-minimum-reclaim',
      secret: false,
      doc: 'How much more than its threshold has to be available before a signal counts as relieved.',
    },
  ),
  evictionPressureTransitionPeriodMs: kubeletOption(
    'evictionPressureTransitionPeriod',
    300_000,
    duration(0),
    {
      flag: 'eviction-pressure-transition-period',
      zeroIsDefault: true,
      doc: 'How long a condition such as MemoryPressure lasts after its cause was last seen. Evicted pods start again when it has gone.',
    },
  ),
  evictionMaxPodGracePeriod: kubeletOption('evictionMaxPodGracePeriod', 0, integer(0, 2 ** 31 - 1), {
    flag: 'eviction-max-pod-grace-period',
    doc: "The longest grace, in seconds, of a pod that a soft threshold evicts; the pod's own grace where that is shorter.",
  }),
  mergeDefaultEvictionSettings: kubeletOption('mergeDefaultEvictionSettings', false, flag, {
    doc: 'Whether signals that `evictionHard` leaves out keep their defaults.',
  }),
} as const

/** What is wrong with these settings together, each with its field (`pkg/kubelet/eviction/helpers.go`, ParseThresholdConfig, 1.36). */
export function evictionOptionProblems(config: {
  readonly evictionSoft: Thresholds
  readonly evictionSoftGracePeriodMs: SignalPeriodsMs
}): OptionProblems {
  return evictionSignals
    .filter(
      (signal) =>
        config.evictionSoft[signal] !== undefined && config.evictionSoftGracePeriodMs[signal] === undefined,
    )
    .map((signal) => ({
      field: 'evictionSoftGracePeriod',
      message: `must have a grace period for ${signal}, which evictionSoft names`,
    }))
}

/** How long pods from a priority on may take to end. */
export interface ShutdownPeriod {
  readonly priority: number
  readonly seconds: number
}

/** `[{priority: 0, shutdownGracePeriodSeconds: 20}]`; only the file has it. */
const periods: OptionType<readonly ShutdownPeriod[]> = {
  label: 'LIST',
  fromText: onlyInFile,
  fromFile(json): Decoded<readonly ShutdownPeriod[]> {
    if (!Array.isArray(json)) return bad('must be a list')
    const list: ShutdownPeriod[] = []
    for (const item of json) {
      const period = readShutdownPeriod(item)
      if (period === undefined) {
        const message = 'must have entries with priority and shutdownGracePeriodSeconds, both whole numbers'
        return bad(message)
      }
      if (list.some(({ priority }) => priority === period.priority))
        return bad(`must have each priority once, and has ${period.priority} twice`)
      list.push(period)
    }
    return ok(list)
  },
  format: (list) => list.map(({ priority, seconds }) => `${priority}: ${seconds}s`).join(', '),
}

function readShutdownPeriod(item: Json): ShutdownPeriod | undefined {
  if (!isJsonObject(item)) return undefined
  const { priority, shutdownGracePeriodSeconds: seconds, ...unknown } = item
  if (typeof priority !== 'number' || typeof seconds !== 'number' || Object.keys(unknown).length > 0)
    return undefined
  if (!Number.isInteger(priority) || !Number.isInteger(seconds) || seconds < 0) return undefined
  return { priority, seconds }
}

/** How pods end before the host shuts down; a part of the table in options.ts. */
export const shutdownOptions = {
  shutdownGracePeriodMs: kubeletOption('shutdownGracePeriod', 0, duration(0), {
    doc: 'How long `podd drain` may take to end all pods; 0 gives each its own grace period. Otherwise at least 1s.',
  }),
  shutdownGracePeriodCriticalPodsMs: kubeletOption('shutdownGracePeriodCriticalPods', 0, duration(0), {
    doc: 'How much of `shutdownGracePeriod` is for pods of priority 2000000000 or more, which end last.',
  }),
  shutdownGracePeriodByPodPriority: kubeletOption<readonly ShutdownPeriod[]>(
    'shutdownGracePeriodByPodPriority',
    [],
    periods,
    {
      secret: false,
      doc: 'In place of these two, how long the pods of each range of priorities may take to end, the lowest first: `[{priority: 0, shutdownGracePeriodSeconds: 20}]`.',
    },
  ),
} as const

/** What is wrong with these settings together, each with its field (`pkg/kubelet/apis/config/validation/validation.go`, 1.36). */
export function shutdownOptionProblems(config: {
  readonly shutdownGracePeriodMs: number
  readonly shutdownGracePeriodCriticalPodsMs: number
  readonly shutdownGracePeriodByPodPriority: readonly ShutdownPeriod[]
}): OptionProblems {
  const { shutdownGracePeriodMs: allMs, shutdownGracePeriodCriticalPodsMs: criticalMs } = config
  const isShort = (periodMs: number): boolean => periodMs > 0 && periodMs < 1000
  const hasPeriods = config.shutdownGracePeriodByPodPriority.length > 0
  return problemsWhere(
    [isShort(allMs), 'shutdownGracePeriod', 'must be 0 or at least 1s'],
    [isShort(criticalMs), 'shutdownGracePeriodCriticalPods', 'must be 0 or at least 1s'],
    [criticalMs > allMs, 'shutdownGracePeriodCriticalPods', 'must not be more than shutdownGracePeriod'],
    [
      hasPeriods && allMs > 0,
      'shutdownGracePeriodByPodPriority',
      'and shutdownGracePeriod exclude each other',
    ],
  )
}
