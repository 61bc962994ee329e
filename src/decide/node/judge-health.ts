/** What podd knows of its own work. Times are monotonic milliseconds. */
export interface HealthFacts {
  readonly nowMs: number
  /** Since when an event waits for the sync loop; undefined where none does. */
  readonly eventWaitsSinceMs?: number | undefined
  /** How often the runtime is listed. */
  readonly relistPeriodMs: number
  /** When the runtime was listed last, or its list failed; before the first list, when the lists began; undefined before that. */
  readonly listedAtMs?: number | undefined
  /** The last time that podd was kept from its work, and for how many milliseconds. */
  readonly blocked?: { readonly untilMs: number; readonly durationMs: number } | undefined
  /** The runtime can't be used. */
  readonly isRuntimeDown: boolean
}

/** The result of a check, in words that anybody who may ask for it may read. */
export interface HealthCheck {
  readonly name: 'ping' | 'sync-loop' | 'relist' | 'event-loop' | 'runtime'
  /** `live`: where it fails, a restart of podd may help. `ready`: podd cannot start or stop pods meanwhile. */
  readonly about: 'live' | 'ready'
  /** Why it fails; undefined where it doesn't. */
  readonly failure?: string
}

/** So long an event may wait: the kubelet's least (`SyncLoopHealthCheck`, `pkg/kubelet/kubelet.go`, 1.36). */
const longestWaitMs = 120_000
/** So long two lists may take beyond their period: each asks twice, and a call has two minutes. */
const longestListMs = 300_000
/** What keeps podd from its work for less goes unnoticed, and may be due to a slow host. */
export const noticeableBlockMs = 15_000
/** How long a check fails after podd was blocked: less than the self-check's period, so that one that passed fails one run. */
const blockCountsMs = 30_000

/**
 * Whether podd works. The first checks say so of podd alone: a runtime that doesn't answer fails only the last one, since
 * a restart of podd would not bring it back, and lists that fail are lists.
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
  ]
}

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
