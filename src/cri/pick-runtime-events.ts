import type { RuntimeEvents } from '../pod/state/observed.ts'

/** A stream of events that a runtime may or may not have. */
export interface EventsCandidate extends RuntimeEvents {
  /** Rejects where the runtime can't be asked. */
  isServed(signal?: AbortSignal): Promise<boolean>
}

/**
 * The first of the candidates that the runtime serves, best first; undefined when it has none of them, and has to be
 * polled. Rejects where the runtime can't be asked.
 */
export async function pickRuntimeEvents<Candidate extends EventsCandidate>(
  candidates: readonly Candidate[],
  signal?: AbortSignal,
): Promise<Candidate | undefined> {
  for (const candidate of candidates) {
    if (await candidate.isServed(signal)) return candidate
  }
  return undefined
}
