import type { Json } from '../base/json.ts'
import { isJsonObject } from '../base/json.ts'
import { duration } from './option-type.ts'
import type { Decoded, OptionType } from './option-type.ts'
import { option } from './option.ts'

/** How long pods from a priority on may take to end. */
export interface ShutdownPeriod {
  readonly priority: number
  readonly seconds: number
}

/** `[{priority: 0, shutdownGracePeriodSeconds: 20}]`; only the file has it. */
const periods: OptionType<readonly ShutdownPeriod[]> = {
  label: 'LIST',
  fromText: () => ({ kind: 'bad', message: 'has to stand in the config file' }),
  fromFile(json): Decoded<readonly ShutdownPeriod[]> {
    if (!Array.isArray(json)) return { kind: 'bad', message: 'must be a list' }
    const list: ShutdownPeriod[] = []
    for (const item of json) {
      const period = readPeriod(item)
      if (period === undefined) {
        const message = 'must have entries with priority and shutdownGracePeriodSeconds, both whole numbers'
        return { kind: 'bad', message }
      }
      if (list.some(({ priority }) => priority === period.priority))
        return { kind: 'bad', message: `must have each priority once, and has ${period.priority} twice` }
      list.push(period)
    }
    return { kind: 'ok', value: list }
  },
  format: (list) => list.map(({ priority, seconds }) => `${priority}: ${seconds}s`).join(', '),
}

function readPeriod(item: Json): ShutdownPeriod | undefined {
  if (!isJsonObject(item)) return undefined
  const { priority, shutdownGracePeriodSeconds: seconds, ...unknown } = item
  if (typeof priority !== 'number' || typeof seconds !== 'number' || Object.keys(unknown).length > 0)
    return undefined
  if (!Number.isInteger(priority) || !Number.isInteger(seconds) || seconds < 0) return undefined
  return { priority, seconds }
}

/** How pods end before the host shuts down; a part of the table in options.ts. */
export const shutdownOptions = {
  shutdownGracePeriodMs: option({
    field: 'shutdownGracePeriod',
    type: duration(0),
    default: 0,
    owner: 'kubelet',
    secret: false,
    doc: 'How long `podd drain` may take to end all pods; 0 gives each its own grace period. Otherwise at least 1s.',
  }),
  shutdownGracePeriodCriticalPodsMs: option({
    field: 'shutdownGracePeriodCriticalPods',
    type: duration(0),
    default: 0,
    owner: 'kubelet',
    secret: false,
    doc: 'How much of `shutdownGracePeriod` is for pods of priority 2000000000 or more, which end last.',
  }),
  shutdownGracePeriodByPodPriority: option<readonly ShutdownPeriod[]>({
    field: 'shutdownGracePeriodByPodPriority',
    type: periods,
    default: [],
    owner: 'kubelet',
    secret: false,
    doc: 'In place of these two, how long the pods of each range of priorities may take to end, the lowest first: `[{priority: 0, shutdownGracePeriodSeconds: 20}]`.',
  }),
} as const

/** What is wrong with these settings together, each with its field (`pkg/kubelet/apis/config/validation/validation.go`, 1.36). */
export function shutdownOptionProblems(config: {
  readonly shutdownGracePeriodMs: number
  readonly shutdownGracePeriodCriticalPodsMs: number
  readonly shutdownGracePeriodByPodPriority: readonly ShutdownPeriod[]
}): readonly { readonly field: string; readonly message: string }[] {
  const { shutdownGracePeriodMs: allMs, shutdownGracePeriodCriticalPodsMs: criticalMs } = config
  const isShort = (periodMs: number): boolean => periodMs > 0 && periodMs < 1000
  return [
    ...(isShort(allMs) ? [{ field: 'shutdownGracePeriod', message: 'must be 0 or at least 1s' }] : []),
    ...(isShort(criticalMs)
      ? [{ field: 'shutdownGracePeriodCriticalPods', message: 'must be 0 or at least 1s' }]
      : []),
    ...(criticalMs > allMs
      ? [{ field: 'shutdownGracePeriodCriticalPods', message: 'must not be more than shutdownGracePeriod' }]
      : []),
    ...(config.shutdownGracePeriodByPodPriority.length > 0 && allMs > 0
      ? [{ field: 'shutdownGracePeriodByPodPriority', message: 'and shutdownGracePeriod exclude each other' }]
      : []),
  ]
}
