/* Sources on trial: where podd crashed with what one gives, the last set of it that worked runs instead. */
import type { SourceName } from '../../pod/objects/document.ts'

/** The record of how earlier starts ended (`<root-dir>/trial.json`). */
export interface TrialRecord {
  readonly bootId: string
  /** Set to false by a podd that ends properly. */
  readonly running: boolean
  /** podd's crashes since the last trial period without one. */
  readonly crashes: number
  /** The crash reports that existed at that start, by their time in wall milliseconds. */
  readonly reports: readonly number[]
  readonly worked: Readonly<Partial<Record<SourceName, WorkedSet>>>
  readonly held: Readonly<Partial<Record<SourceName, HeldSet>>>
}

/** The set of a source that podd ran for the whole trial period. */
export interface WorkedSet {
  readonly location: string
  /** The fingerprint of the source's raw content. */
  readonly fingerprint: string
  /** The signature of the documents. */
  readonly digest: string
}

/** A source that is not followed, because podd crashed with what it gives. */
export interface HeldSet {
  readonly location: string
  readonly fingerprint: string
  /** The podd version that crashed: another one may not. */
  readonly podd: string
}

/** The state of a source at the start. */
export interface SourceAtStart {
  readonly name: SourceName
  readonly location: string
  /** Undefined where it can't be read, or was not needed. */
  readonly fingerprint: string | undefined
}

/** This many crashes since the last trial period without one count as repeated. */
const maxCrashes = 3

/**
 * How often podd has crashed in a row. A crash leaves a report; an end without one (killed, out of the host's memory)
 * isn't caused by a source, and neither counts nor resets the count. A reboot and a proper end reset it.
 */
export function countCrashes(
  before: TrialRecord | undefined,
  now: { readonly bootId: string; readonly reports: readonly number[] },
): number {
  if (before === undefined || before.bootId !== now.bootId || !before.running) return 0
  const isNew = now.reports.some((report) => !before.reports.includes(report))
  return isNew ? before.crashes + 1 : before.crashes
}

/** Whether what is new may be the reason. */
export function areRepeated(crashes: number): boolean {
  return crashes >= maxCrashes
}

/** Whether a source may have to be held, so that its fingerprint is needed before it is read. */
export function mayHold(before: TrialRecord | undefined, crashes: number): boolean {
  return before !== undefined && (areRepeated(crashes) || Object.keys(before.held).length > 0)
}

/**
 * The sources whose last set that worked runs in place of what they give now: those that have changed since that set,
 * once podd has crashed too often in a row, and for as long as neither the source nor podd's version changes.
 */
export function selectHeld(
  before: TrialRecord,
  now: { readonly crashes: number; readonly podd: string; readonly sources: readonly SourceAtStart[] },
): TrialRecord['held'] {
  const held = now.sources.flatMap(({ name, location, fingerprint }) => {
    const earlier = before.held[name]
    const isSame = earlier?.location === location && earlier.podd === now.podd
    // A source that can't be read counts as unchanged.
    if (isSame && (fingerprint === undefined || fingerprint === earlier.fingerprint))
      return [[name, earlier] as const]
    const worked = before.worked[name]
    const hasChanged =
      fingerprint !== undefined && worked?.location === location && worked.fingerprint !== fingerprint
    if (!areRepeated(now.crashes) || !hasChanged) return []
    return [[name, { location, fingerprint, podd: now.podd }] as const]
  })
  return Object.fromEntries(held)
}
