/** The kinds of orphans: remains on the host of pods that no longer exist. */
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
  /**
   * The runtime's id, a path, or a UID: unique within its kind. For reused names it includes the owner's or the
   * kernel's id.
   */
  readonly id: string
  /** Why it belongs to no pod. */
  readonly message: string
  /** Where it is readily known. */
  readonly sizeBytes?: number
}

/** One round of collection, in which all collectors share what is read once. */
export interface OrphanLook {
  readonly signal: AbortSignal
}

/** Finds and removes one kind of orphan. */
export interface OrphanCollector {
  readonly kind: OrphanKind
  /**
   * Lists what belongs to no known pod; it may belong to one in creation. Throws the errors of its programs and files.
   */
  list(look: OrphanLook): Promise<readonly Orphan[]>
  /** Removes one. Returns false if it belongs to a pod by now, or isn't podd's to remove. Throws as `list`. */
  remove(orphan: Orphan): Promise<boolean>
}

/** When each orphan was first found, by `orphanKey` (monotonic). */
export type OrphanMemory = ReadonlyMap<string, number>

export interface OrphanFacts {
  readonly found: readonly Orphan[]
  readonly firstSeen: OrphanMemory
  /** When the oldest call in flight was sent that creates a sandbox, a container or its process. */
  readonly makingSinceMs: number | undefined
  readonly nowMs: number
}

export interface OrphanPlan {
  readonly remove: readonly Orphan[]
  /** Found too recently, or possibly of a pod in creation. */
  readonly wait: readonly { readonly orphan: Orphan; readonly untilMs: number }[]
  readonly firstSeen: OrphanMemory
}

/** By then the calls of a killed podd are completed or cancelled, including late cancellations by containerd. */
const callMs = 30_000

/**
 * How long an object must be without a pod. A call creates objects before CRI lists its sandbox. A pod's own
 * directories are made after its record, and a shim after its container, so these need no wait.
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

/**
 * Selects for removal what has been found for long enough, unless a call that was sent before it was first found is
 * still in flight.
 */
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
