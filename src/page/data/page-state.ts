import type { EventObject, PodObject } from '../../api/resource.ts'
import type { NodeObject } from '../../api/cluster-objects.ts'
import type { DaemonStatus } from '../../api/routes.ts'
import type { SourceObject } from '../../api/sources.ts'
import type { UsageHistoryReply } from '../../api/usage.ts'

/** Everything that the page shows; data that has not arrived yet, or that the user may not read, is undefined. */
export interface PageState {
  readonly pods: readonly PodObject[]
  readonly events: readonly EventObject[]
  readonly node: NodeObject | undefined
  readonly status: DaemonStatus | undefined
  readonly sources: readonly SourceObject[] | undefined
  readonly usage: UsageHistoryReply | undefined
  /** The message of a request that podd refused. */
  readonly refusals: readonly string[]
}

/** By namespace and name; a pod that replaces another of its name comes after it. */
export function sortPods(pods: readonly PodObject[]): readonly PodObject[] {
  const key = ({ metadata }: PodObject): string => `${metadata.namespace}/${metadata.name}`
  return pods.toSorted(
    (one, other) =>
      compare(key(one), key(other)) ||
      compare(one.metadata.creationTimestamp, other.metadata.creationTimestamp),
  )
}

/** The newest first. */
export function newestEvents(events: readonly EventObject[], most: number): readonly EventObject[] {
  return events.toSorted((one, other) => compare(other.lastTimestamp, one.lastTimestamp)).slice(0, most)
}

function compare(one: string, other: string): number {
  return one === other ? 0 : one < other ? -1 : 1
}
