/** The state of the requests to a URL. */
export interface Pace {
  /** Until the first response its phase within the period isn't chosen. */
  readonly isFirst: boolean
  /** The delay after the next failure. */
  readonly retryMs: number
  /** The server delays responses until there is something new. */
  readonly waits: boolean
  /** How long it may, in seconds. */
  readonly delaySeconds: number
  /** The last delayable request failed; the next one shows whether the delay was the reason. */
  readonly isSuspect: boolean
  /** How many delayed requests failed in a row. */
  readonly breaks: number
  /** For this many requests no delay is allowed, because a proxy in between cuts delayed requests off. */
  readonly plainRequests: number
}

/** The result of one request. */
export interface RequestOutcome {
  /** The server gave a usable response. */
  readonly isTaken: boolean
  /** The server answered in full, but what it gave is refused: its signature may be about to come. */
  readonly isRefused?: boolean | undefined
  /** The content changed. */
  readonly isChanged: boolean
  /** It declares that it delays responses. */
  readonly waits: boolean
  readonly tookMs: number
  /** When the server wants the next request at the earliest. */
  readonly retryAfterMs?: number | undefined
}

export interface NextRequest {
  readonly pace: Pace
  /** Until the next request. */
  readonly waitMs: number
}

const firstRetryMs = 1_000
/** The delay requested from a server whose support is unknown: less than the response deadline. */
const trialDelaySeconds = 5
/** Proxies usually cut off connections that are silent for longer. */
const maxDelaySeconds = 60
/** The time over which hosts return whose requests a server cut off. */
const longestSpreadMs = 5_000
const maxBreaks = 3
const plainRequestsAfterBreaks = 30
/** From the start of one request to the start of the next, whatever the server answers. */
const leastGapMs = 100
/** An unchanged response that arrives sooner was not delayed. */
const delayedMs = 1_000

export const firstPace: Pace = {
  isFirst: true,
  retryMs: firstRetryMs,
  waits: false,
  delaySeconds: maxDelaySeconds,
  isSuspect: false,
  breaks: 0,
  plainRequests: 0,
}

/**
 * How long the server may delay the next response; undefined: not at all. The time varies, as a change answers all
 * hosts at once, and they would stay synchronized.
 * @param random from 0 (included) to 1 (excluded)
 */
export function allowedDelaySeconds(
  { waits, delaySeconds, plainRequests }: Pace,
  random: number,
): number | undefined {
  if (plainRequests > 0) return undefined
  return waits ? Math.ceil(delaySeconds * (0.75 + 0.25 * random)) : trialDelaySeconds
}

/**
 * When and how the next request is sent. At once where the server delays responses; else after the period ± 10 %, and
 * at first at a random time within it, so that hosts that start together don't stay synchronized. The first retries
 * after a failure come sooner.
 * @param random from 0 (included) to 1 (excluded)
 */
export function paceRequest(
  pace: Pace,
  outcome: RequestOutcome,
  periodMs: number,
  random: number,
): NextRequest {
  const next = outcome.isTaken
    ? afterAnswer(pace, outcome, periodMs, random)
    : afterFailure(pace, outcome, periodMs, random)
  const leastMs = Math.max(outcome.retryAfterMs ?? 0, leastGapMs - outcome.tookMs)
  return { ...next, waitMs: Math.max(next.waitMs, leastMs) }
}

function afterAnswer(pace: Pace, outcome: RequestOutcome, periodMs: number, random: number): NextRequest {
  const next = {
    ...(pace.plainRequests > 0 ? afterPlain(pace) : afterDelayed(pace, outcome)),
    isFirst: false,
  }
  if (next.waits) return { pace: next, waitMs: 0 }
  return { pace: next, waitMs: pace.isFirst ? periodMs * random : periodMs * (0.9 + 0.2 * random) }
}

function afterDelayed(pace: Pace, outcome: RequestOutcome): Pace {
  const wasDelayed = outcome.isChanged || outcome.tookMs >= delayedMs
  return { ...pace, retryMs: firstRetryMs, waits: outcome.waits && wasDelayed, breaks: 0 }
}

function afterPlain(pace: Pace): Pace {
  const next = { ...pace, retryMs: firstRetryMs, isSuspect: false, plainRequests: pace.plainRequests - 1 }
  if (!pace.isSuspect) return next
  const breaks = pace.breaks + 1
  if (breaks >= maxBreaks)
    return { ...next, waits: false, breaks: 0, plainRequests: plainRequestsAfterBreaks }
  return { ...next, breaks, delaySeconds: Math.max(trialDelaySeconds, Math.floor(pace.delaySeconds / 2)) }
}

function afterFailure(
  pace: Pace,
  { isRefused = false }: RequestOutcome,
  periodMs: number,
  random: number,
): NextRequest {
  // A server that stops cuts off the requests of all hosts at once, and they would return together.
  const spreadMs = pace.waits ? Math.min(periodMs, longestSpreadMs) * random : 0
  const waitMs = Math.max(Math.min(pace.retryMs, periodMs) * (0.75 + 0.5 * random), spreadMs)
  const later = { ...pace, retryMs: Math.min(pace.retryMs * 2, periodMs) }
  // Nothing was cut off.
  if (isRefused) return { pace: later, waitMs }
  const next = { ...later, isSuspect: pace.plainRequests === 0 }
  return { pace: { ...next, plainRequests: Math.max(1, pace.plainRequests) }, waitMs }
}
