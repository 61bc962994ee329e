import type { EventListObject, PodListObject } from '../../api/resource.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import type { HostSummary } from './host-summary.ts'
import type { ShownError } from './shown-error.ts'
import type { StateOnDisk } from './state-on-disk.ts'

export interface PodCounts {
  readonly total: number
  readonly ready: number
  readonly phases: Readonly<Record<string, number>>
}

/** The report of `podd status`, from a daemon that answers or from its files. */
export type StatusReport =
  | (DaemonStatus & {
      readonly running: true
      readonly host: HostSummary
      readonly pods: PodCounts
      readonly lastErrors: readonly ShownError[]
    })
  | (StateOnDisk & {
      readonly running: false
      /** Why the daemon doesn't answer. */
      readonly message: string
      readonly host: HostSummary
    })

export function countPods({ items }: PodListObject): PodCounts {
  const phases: Record<string, number> = {}
  for (const { status } of items) phases[status.phase] = (phases[status.phase] ?? 0) + 1
  const isReady = ({ status }: PodListObject['items'][number]): boolean =>
    status.conditions.some(({ type, status: holds }) => type === 'Ready' && holds === 'True')
  return { total: items.length, ready: items.filter((pod) => isReady(pod)).length, phases }
}

/** The newest ones, the newest last. */
export function lastErrors({ items }: EventListObject, most: number): readonly ShownError[] {
  return items
    .filter(({ type }) => type === 'Warning')
    .toSorted((a, b) => Date.parse(a.lastTimestamp) - Date.parse(b.lastTimestamp))
    .slice(-most)
    .map(({ involvedObject: { kind, name }, reason, message, lastTimestamp, count }) => ({
      time: lastTimestamp,
      object: kind === 'Pod' ? `Pod/${name}` : kind,
      reason,
      message,
      count,
    }))
}
