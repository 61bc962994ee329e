/** Each kind of thing that can be left on the host of a pod that no longer exists. */
export type OrphanKind =
  | 'shim'
  | 'task'
  | 'runtime-container'
  | 'network-namespace'
  | 'address'
  | 'interface'
  | 'firewall-rules'
  | 'cni-result'
  | 'snapshot'
  | 'lease'
  | 'volumes'
  | 'logs'
  | 'log-link'
  | 'cgroup'

export interface Orphan {
  readonly kind: OrphanKind
  /** The runtime's id, a path, or a UID: unique within its kind. What has a name that is used again has its owner's or the kernel's id in it. */
  readonly id: string
  /** Why it belongs to no pod. */
  readonly message: string
  /** Where that is known without effort. */
  readonly sizeBytes?: number
}

/** One look at everything: what is read once in it serves all collectors. */
export interface OrphanLook {
  readonly signal: AbortSignal
}

/** Finds and removes what one kind of orphan is. */
export interface OrphanCollector {
  readonly kind: OrphanKind
  /** What belongs to no pod that is known, though it may to one in creation. Throws what its programs and files throw. */
  list(look: OrphanLook): Promise<readonly Orphan[]>
  /** Removes one. Gives false if it belongs to a pod by now, or is none of podd's to remove. Throws as `list`. */
  remove(orphan: Orphan): Promise<boolean>
}

/** When an orphan was found for the first time, by `orphanKey`, on the monotonic clock. */
export type OrphanMemory = ReadonlyMap<string, number>

export interface OrphanFacts {
  readonly found: readonly Orphan[]
  readonly firstSeen: OrphanMemory
  /**
   * When the oldest call was sent in which the runtime makes a sandbox, a container or its process, if one was in flight
   * before the look began.
   */
  readonly makingSinceMs: number | undefined
  readonly nowMs: number
}

export interface OrphanPlan {
  readonly remove: readonly Orphan[]
  /** Found too short a time ago, or perhaps of a pod in creation. */
  readonly wait: readonly { readonly orphan: Orphan; readonly untilMs: number }[]
  readonly firstSeen: OrphanMemory
}

/** What a killed podd had asked for is done or given up by then, and what containerd cancels late too. */
const callMs = 30_000

/**
 * How long a thing has to be without a pod. What a call makes is there before CRI lists its sandbox. A pod's own
 * directories are made after its record, and a shim after its container: nothing has to be waited for.
 */
const settleMs: Readonly<Record<OrphanKind, number>> = {
  shim: 0,
  // Another client's container isn't between its creation and its start for that long.
  task: 10_000,
  'runtime-container': callMs,
  'network-namespace': callMs,
  address: callMs,
  interface: callMs,
  'firewall-rules': callMs,
  'cni-result': callMs,
  snapshot: callMs,
  lease: callMs,
  volumes: 0,
  logs: 0,
  'log-link': callMs,
  cgroup: callMs,
}

/** Removed is what has been found for long enough, unless a call that was sent before it was first found is still in flight. */
export function planOrphans({ found, firstSeen, makingSinceMs, nowMs }: OrphanFacts): OrphanPlan {
  const next = new Map(
    found.map((orphan) => [orphanKey(orphan), firstSeen.get(orphanKey(orphan)) ?? nowMs] as const),
  )
  const remove: Orphan[] = []
  const wait: { orphan: Orphan; untilMs: number }[] = []
  for (const orphan of found) {
    const sinceMs = next.get(orphanKey(orphan)) ?? nowMs
    const untilMs = sinceMs + settleMs[orphan.kind]
    const isUnsure = settleMs[orphan.kind] > 0 && makingSinceMs !== undefined && makingSinceMs <= sinceMs
    if (nowMs >= untilMs && !isUnsure) remove.push(orphan)
    else wait.push({ orphan, untilMs: Math.max(untilMs, nowMs) })
  }
  return { remove, wait, firstSeen: next }
}

export function orphanKey({ kind, id }: Pick<Orphan, 'kind' | 'id'>): string {
  return `${kind} ${id}`
}
