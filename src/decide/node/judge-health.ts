/* podd's own health: whether its loops go on, whether it restarts for its memory, and when garbage is collected. */

/** The state of podd's own work. Times are monotonic milliseconds. */
export interface HealthFacts {
  readonly nowMs: number
  /** When the oldest waiting event of the sync loop arrived; undefined without one. */
  readonly eventWaitsSinceMs?: number | undefined
  /** The period of the runtime's lists. */
  readonly relistPeriodMs: number
  /**
   * When the last list of the runtime ended or failed; before the first list, when the lists began; undefined before
   * that.
   */
  readonly listedAtMs?: number | undefined
  /** When podd was last blocked, and for how many milliseconds. */
  readonly blocked?: { readonly untilMs: number; readonly durationMs: number } | undefined
  /** The runtime can't be used. */
  readonly isRuntimeDown: boolean
  /** The runtime has no network for pods. */
  readonly isNetworkDown: boolean
}

/** The result of a check; its text is safe to show to any client. */
export interface HealthCheck {
  readonly name: 'ping' | 'sync-loop' | 'relist' | 'event-loop' | 'runtime' | 'network'
  /** `live`: a restart of podd may help where it fails. `ready`: podd cannot start or stop pods while it fails. */
  readonly about: 'live' | 'ready'
  /** Why it fails; undefined where it doesn't. */
  readonly failure?: string
}

/**
 * podd's health checks. All but the last two concern podd alone: an unavailable runtime fails only those, since a
 * restart of podd would not help, and failed lists count as lists.
 */
export function judgeHealth(facts: HealthFacts): readonly HealthCheck[] {
  return [
    { name: 'ping', about: 'live' },
    { name: 'sync-loop', about: 'live', ...because(syncLoopFailure(facts)) },
    { name: 'relist', about: 'live', ...because(relistFailure(facts)) },
    { name: 'event-loop', about: 'live', ...because(blockFailure(facts)) },
    {
      name: 'runtime',
      about: 'ready',
      ...because(facts.isRuntimeDown ? 'the container runtime is not available' : undefined),
    },
    {
      name: 'network',
      about: 'ready',
      ...because(facts.isNetworkDown ? 'the container runtime has no network for pods' : undefined),
    },
  ]
}

/** How long an event may wait: the kubelet's least (`SyncLoopHealthCheck`, `pkg/kubelet/kubelet.go`, 1.36). */
const longestWaitMs = 120_000
/** How much longer than their period two lists may take: each sends two calls, with a deadline of two minutes. */
const longestListMs = 300_000
/** Shorter blocks are ignored; they may be due to a slow host. */
export const noticeableBlockMs = 15_000
/** How long a check fails after podd was blocked: less than the self-check's period, so that it fails once. */
const blockCountsMs = 30_000

function syncLoopFailure({ nowMs, eventWaitsSinceMs }: HealthFacts): string | undefined {
  if (eventWaitsSinceMs === undefined || nowMs - eventWaitsSinceMs <= longestWaitMs) return undefined
  return `an event has waited for ${seconds(nowMs - eventWaitsSinceMs)}`
}

function relistFailure({ nowMs, listedAtMs, relistPeriodMs }: HealthFacts): string | undefined {
  if (listedAtMs === undefined || nowMs - listedAtMs <= 2 * relistPeriodMs + longestListMs) return undefined
  return `the container runtime was listed ${seconds(nowMs - listedAtMs)} ago`
}

function blockFailure({ nowMs, blocked }: HealthFacts): string | undefined {
  if (blocked === undefined || blocked.durationMs < noticeableBlockMs) return undefined
  if (nowMs - blocked.untilMs > blockCountsMs) return undefined
  return `podd was blocked for ${seconds(blocked.durationMs)}`
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1000)} s`
}

function because(failure: string | undefined): { readonly failure?: string } {
  return failure === undefined ? {} : { failure }
}

/** podd's memory usage and its history. */
export interface MemoryFacts {
  readonly residentBytes: number
  /** Below 0 for none. */
  readonly limitBytes: number
  /** How many consecutive samples before this one were above the limit. */
  readonly samplesAbove: number
  readonly uptimeMs: number
  /** How many restarts for this reason led to this process, one after the other. */
  readonly restarts: number
  /** A restart now would interrupt podd's work, such as a drain. */
  readonly isBusy: boolean
}

/** One sample may be a peak that the garbage collector resolves. */
const samplesBeforeRestart = 3
const shortestRunMs = 600_000
const longestRunMs = 86_400_000

/**
 * Whether podd restarts itself because of its memory usage. Each restart that did not help for long doubles the time
 * until the next one, from ten minutes to a day, so that a limit that podd can't keep costs at most one restart a day.
 */
export function judgeMemory(facts: MemoryFacts): {
  readonly samplesAbove: number
  readonly restarts: boolean
} {
  const { residentBytes, limitBytes, uptimeMs, restarts, isBusy } = facts
  if (limitBytes < 0 || residentBytes <= limitBytes) return { samplesAbove: 0, restarts: false }
  const samplesAbove = facts.samplesAbove + 1
  const mayRestart = uptimeMs >= Math.min(shortestRunMs * 2 ** restarts, longestRunMs) && !isBusy
  return { samplesAbove, restarts: samplesAbove >= samplesBeforeRestart && mayRestart }
}

/** The value of `restarts` for the new process: it starts over after a day without a restart. */
export function countRestarts({ uptimeMs, restarts }: Pick<MemoryFacts, 'uptimeMs' | 'restarts'>): number {
  // Further restarts would change nothing.
  return uptimeMs >= 2 * longestRunMs ? 1 : Math.min(restarts + 1, 16)
}

export interface CollectionFacts {
  /** The CPU time of podd's threads since the last look, and its age. */
  readonly cpuMs: number
  readonly sinceMs: number
  /** How many consecutive looks before this one found podd quiet. */
  readonly quietLooks: number
}

/** The share of a core below which podd counts as quiet: a host that only waits and probes stays below it. */
const busyShare = 0.05
/** The first quiet interval may still have follow-up work. */
const looksToSettle = 2

/**
 * Whether V8's garbage is collected now: once after each busy period, such as podd's own start or that of many pods. V8
 * itself waits for more garbage, which an idle podd doesn't produce, and keeps the memory and compiled code of the busy
 * period.
 */
export function judgeCollection({ cpuMs, sinceMs, quietLooks }: CollectionFacts): {
  readonly quietLooks: number
  readonly collects: boolean
} {
  const now = cpuMs > busyShare * sinceMs ? 0 : quietLooks + 1
  return { quietLooks: now, collects: now === looksToSettle }
}
