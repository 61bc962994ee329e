/* What a unit's record says to people: how it does, what is wrong with it, and what to do. */
import type { UnitState } from '../../api/sources.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { explainTrust, fallbackOf, revisionOf } from './unit-revisions.ts'
import type { Revision, UnitRecord } from './unit-revisions.ts'

/** Why another revision counts than the offered one, or why the offered one should not; undefined where all is well. */
export function describeRecord(record: UnitRecord): string | undefined {
  const { offered, active, pin } = record
  const failed = revisionOf(record, offered)
  const current = revisionOf(record, active)
  const trust = current?.isDistrusted === true ? `; ${explainTrust(current)}` : ''
  if (pin?.why === 'requested')
    return `revision ${active} counts on request, and revision ${offered} is offered${trust}`
  if (pin !== undefined)
    return `revision ${offered} failed, and revision ${active} counts again: ${whyFailed(failed)}${trust}`
  if (failed?.verdict === 'failed' && failed.failure?.isHeld === true)
    return `revision ${offered} is not in effect as a whole, and stays: ${whyFailed(failed)}`
  if (failed?.verdict === 'failed' && fallbackOf(record) !== undefined)
    return `revision ${offered} failed, and is not rolled back: ${whyFailed(failed)}`
  const base = record.base === active ? undefined : revisionOf(record, record.base)
  if (failed?.verdict === 'failed' && base?.isDistrusted === true)
    return `revision ${offered} failed, and stays: ${explainTrust(base)}: ${whyFailed(failed)}`
  return undefined
}

/** That the active revision is not trusted any more, and what follows; undefined where it is. */
export function describeTrust(record: UnitRecord): string | undefined {
  const active = revisionOf(record, record.active)
  return active?.isDistrusted === true
    ? `${explainTrust(active)}: it runs on until its source gives something else, and nothing goes back to it`
    : undefined
}

/** What of a unit is worth a look: as `describeRecord`, that its first revision failed, or that it is not trusted. */
export function explainRecord(record: UnitRecord): string | undefined {
  const active = revisionOf(record, record.active)
  return (
    describeRecord(record) ??
    (active?.verdict === 'failed'
      ? `revision ${record.active} failed, and none is kept to go back to: ${whyFailed(active)}`
      : describeTrust(record))
  )
}

/** How a unit does, by its record alone. */
export function stateOfRecord({ active, pin, revisions }: UnitRecord): UnitState {
  if (pin !== undefined) return pin.why === 'requested' ? 'RollbackRequested' : 'RolledBack'
  const verdict = revisions.find(({ number }) => number === active)?.verdict
  if (verdict === 'failed') return 'Failed'
  return verdict === 'healthy' ? 'Healthy' : 'Progressing'
}

function whyFailed(revision: Revision | undefined): string {
  return revision?.failure?.message ?? 'it did not become healthy'
}

/** @param path where the unit is */
export function problemOf(record: UnitRecord, path: string): Problem | undefined {
  const message = describeRecord(record)
  const trust = describeTrust(record)
  if (message === undefined && trust !== undefined)
    return {
      severity: 'warning',
      place: { path },
      message: trust,
      hint: 'Sign it again, by a key that `verify` of its source lists.',
    }
  if (message === undefined) return undefined
  const isRequested = record.pin?.why === 'requested'
  if (record.pin === undefined && revisionOf(record, record.offered)?.failure?.isHeld === true)
    return {
      severity: 'warning',
      place: { path },
      message,
      hint: 'What it waits for stands with the pod, too: `podd describe pod POD`. It starts by itself once it may.',
    }
  return {
    severity: isRequested ? 'warning' : 'error',
    place: { path },
    message,
    hint: isRequested
      ? `\`podd resume ${record.unit}\` has what the source gives count again.`
      : `\`podd history ${record.unit}\` shows the last log lines. Correct it, or try it again: \`podd resume ${record.unit}\`.`,
  }
}
