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

/** How long an event may wait: the kubelet's least (`SyncLoopHealthCheck`, `pkg/kubelet/kubelet.go`, 1.36). */
const longestWaitMs = 120_000
/** How much longer than their period two lists may take: each sends two calls, with a deadline of two minutes. */
const longestListMs = 300_000
/** Shorter blocks are ignored; they may be due to a slow host. */
export const noticeableBlockMs = 15_000
/** How long a check fails after podd was blocked: less than the self-check's period, so that it fails once. */
const blockCountsMs = 30_000

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
