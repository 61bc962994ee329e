/** How a URL is asked, by what came of asking it. */
export interface Pace {
  /** Until the first answer its turn within the period isn't chosen yet. */
  readonly isFirst: boolean
  /** After the next failure. */
  readonly retryMs: number
  /** The server holds answers back until there is something new. */
  readonly waits: boolean
  /** How long it may, in seconds. */
  readonly holdSeconds: number
  /** The last request that might be held back has failed: the next one tells whether for that reason. */
  readonly isSuspect: boolean
  /** How many times in a row requests failed that were held back, and only those. */
  readonly breaks: number
  /** For so many requests no answer is to be held back, because what lies between breaks such requests off. */
  readonly plainRequests: number
}

/** What came of one request. */
export interface RequestOutcome {
  /** The server answered, with what could be taken. */
  readonly isTaken: boolean
  /** It gave something else than before. */
  readonly isChanged: boolean
  /** It says that it holds answers back. */
  readonly waits: boolean
  readonly tookMs: number
  /** The server asks not to be asked before. */
  readonly retryAfterMs?: number | undefined
}

export interface NextRequest {
  readonly pace: Pace
  /** Until the next request. */
  readonly waitMs: number
}

const firstRetryMs = 1_000
/** What a server is asked for of which it isn't known whether it holds answers back: less than it has to answer. */
const trialHoldSeconds = 5
/** Proxies break off what is silent for longer, as a rule. */
const longestHoldSeconds = 60
/** Over how long hosts come back whose requests a server broke off. */
const longestSpreadMs = 5_000
const mostBreaks = 3
const plainRequestsAfterBreaks = 30
/** From the start of one request to the start of the next, whatever the server answers. */
const leastGapMs = 100
/** An unchanged answer that comes sooner was not held back. */
const heldMs = 1_000

export const firstPace: Pace = {
  isFirst: true,
  retryMs: firstRetryMs,
  waits: false,
  holdSeconds: longestHoldSeconds,
  isSuspect: false,
  breaks: 0,
  plainRequests: 0,
}

/**
 * How long the server may hold the next answer back; undefined: not at all. Not each time as long as possible: a change
 * answers all hosts at once, and they would go on asking together.
 * @param random from 0 (included) to 1 (excluded)
 */
export function holdSecondsOf(
  { waits, holdSeconds, plainRequests }: Pace,
  random: number,
): number | undefined {
  if (plainRequests > 0) return undefined
  return waits ? Math.ceil(holdSeconds * (0.75 + 0.25 * random)) : trialHoldSeconds
}

/**
 * When a URL is asked next, and how. Where the server holds answers back, at once; else after the period, give or take a
 * tenth, and at first at a random time within it, so that hosts that start together don't go on asking together. After a
 * failure sooner, at first.
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
    : afterFailure(pace, periodMs, random)
  const leastMs = Math.max(outcome.retryAfterMs ?? 0, leastGapMs - outcome.tookMs)
  return { ...next, waitMs: Math.max(next.waitMs, leastMs) }
}

function afterAnswer(pace: Pace, outcome: RequestOutcome, periodMs: number, random: number): NextRequest {
  const next = { ...(pace.plainRequests > 0 ? afterPlain(pace) : afterHold(pace, outcome)), isFirst: false }
  if (next.waits) return { pace: next, waitMs: 0 }
  return { pace: next, waitMs: pace.isFirst ? periodMs * random : periodMs * (0.9 + 0.2 * random) }
}

function afterHold(pace: Pace, outcome: RequestOutcome): Pace {
  const wasHeld = outcome.isChanged || outcome.tookMs >= heldMs
  return { ...pace, retryMs: firstRetryMs, waits: outcome.waits && wasHeld, breaks: 0 }
}

function afterPlain(pace: Pace): Pace {
  const next = { ...pace, retryMs: firstRetryMs, isSuspect: false, plainRequests: pace.plainRequests - 1 }
  if (!pace.isSuspect) return next
  const breaks = pace.breaks + 1
  if (breaks >= mostBreaks)
    return { ...next, waits: false, breaks: 0, plainRequests: plainRequestsAfterBreaks }
  return { ...next, breaks, holdSeconds: Math.max(trialHoldSeconds, Math.floor(pace.holdSeconds / 2)) }
}

function afterFailure(pace: Pace, periodMs: number, random: number): NextRequest {
  // A server that ends breaks off the requests of all hosts at once, and they would come back together.
  const spreadMs = pace.waits ? Math.min(periodMs, longestSpreadMs) * random : 0
  const waitMs = Math.max(Math.min(pace.retryMs, periodMs) * (0.75 + 0.5 * random), spreadMs)
  const isSuspect = pace.plainRequests === 0
  const next = { ...pace, retryMs: Math.min(pace.retryMs * 2, periodMs), isSuspect }
  return { pace: { ...next, plainRequests: Math.max(1, pace.plainRequests) }, waitMs }
}
