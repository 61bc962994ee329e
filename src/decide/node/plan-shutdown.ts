import { clusterCriticalPriority } from '../../pod/schema/pod-resources.ts'
import type { ShutdownPeriod } from '../../config/node-options.ts'

/** A pod to be terminated before the host shuts down. */
export interface ShutdownPod {
  /** `namespace/name` */
  readonly key: string
  readonly priority: number
  /** Its own grace period, in seconds. */
  readonly graceSeconds: number
}

/** Pods that terminate together, and how long podd waits for them. */
export interface ShutdownGroup {
  /** Each with its grace period, in seconds. */
  readonly pods: readonly { readonly key: string; readonly graceSeconds: number }[]
  /** After this the next group begins, whether or not they have ended. */
  readonly waitSeconds: number
}

export interface ShutdownSettings {
  readonly shutdownGracePeriodMs: number
  readonly shutdownGracePeriodCriticalPodsMs: number
  readonly shutdownGracePeriodByPodPriority: readonly ShutdownPeriod[]
}

/** Without a limit for a group: the time that a host busy with terminating pods may need beyond their grace periods. */
const patienceSeconds = 30

/**
 * The order in which pods terminate, and how long each may take (`pkg/kubelet/nodeshutdown/nodeshutdown_manager.go`,
 * killPods and groupByPriority, 1.36): the lowest priority first; each pod belongs to the range of its priority, and
 * gets the shorter of the range's grace period and its own. Without settings (where the kubelet ends no pods) critical
 * pods come last, each with its own grace period.
 */
export function planShutdown(
  pods: readonly ShutdownPod[],
  settings: ShutdownSettings,
): readonly ShutdownGroup[] {
  const limited = listPeriods(settings)
  const ranges: readonly { readonly priority: number; readonly seconds: number | undefined }[] =
    limited.length > 0
      ? limited
      : [
          { priority: 0, seconds: undefined },
          { priority: clusterCriticalPriority, seconds: undefined },
        ]
  return ranges.flatMap(({ seconds }, at) => {
    const own = pods.filter(({ priority }) => rangeOf(priority, ranges) === at)
    if (own.length === 0) return []
    const graces = own.map(({ key, graceSeconds }) => ({
      key,
      graceSeconds: Math.min(graceSeconds, seconds ?? Infinity),
    }))
    const longest = Math.max(...graces.map(({ graceSeconds }) => graceSeconds))
    return [{ pods: graces, waitSeconds: seconds ?? longest + patienceSeconds }]
  })
}

function listPeriods(settings: ShutdownSettings): readonly ShutdownPeriod[] {
  const { shutdownGracePeriodMs: allMs, shutdownGracePeriodCriticalPodsMs: criticalMs } = settings
  const byPriority = settings.shutdownGracePeriodByPodPriority
  if (byPriority.length > 0) return byPriority.toSorted((one, other) => one.priority - other.priority)
  if (allMs === 0) return []
  return [
    { priority: 0, seconds: Math.floor((allMs - criticalMs) / 1000) },
    { priority: clusterCriticalPriority, seconds: Math.floor(criticalMs / 1000) },
  ]
}

/** The last range that begins at the priority or below; the first one for what is below all. */
function rangeOf(priority: number, ranges: readonly { readonly priority: number }[]): number {
  return Math.max(
    0,
    ranges.findLastIndex((range) => range.priority <= priority),
  )
}
