import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorMessage } from '../base/errors.ts'
import { isJsonObject } from '../base/json.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { readState } from '../base/state-file.ts'
import type { Migration } from '../base/state-file.ts'
import type { HeldSet, TrialRecord, WorkedSet } from '../decide/sources/judge-trial.ts'
import { parseSourceName } from '../pod/values/ids.ts'
import type { SourceName } from '../pod/values/ids.ts'
import { loadState } from './state-report.ts'
import type { SmallFile, StateReport } from './state-report.ts'

/** One step for each version before the current one, oldest first. */
const migrations: readonly Migration[] = []

/** Never throws: without a record no source is held. One that can't be read is put aside and reported. */
export async function readTrialRecord(
  file: SmallFile,
  report: StateReport,
): Promise<TrialRecord | undefined> {
  try {
    return await loadState(file, migrations, toRecord, report)
  } catch (error) {
    report({ path: file.path, message: errorMessage(error) })
    return undefined
  }
}

/** Throws the system's error (ENOSPC, EROFS, …). */
export async function writeTrialRecord(file: SmallFile, record: TrialRecord): Promise<void> {
  await file.write(`${JSON.stringify({ version: migrations.length + 1, ...record })}\n`)
}

function toRecord(content: JsonObject): TrialRecord | undefined {
  const { bootId, running, crashes, reports, worked, held } = content
  if (typeof bootId !== 'string' || typeof running !== 'boolean' || typeof crashes !== 'number')
    return undefined
  if (!Array.isArray(reports) || !reports.every((report) => typeof report === 'number')) return undefined
  return { bootId, running, crashes, reports, worked: mapOf(worked, toWorked), held: mapOf(held, toHeld) }
}

function mapOf<T>(value: Json | undefined, read: (item: JsonObject) => T | undefined): Record<string, T> {
  if (!isJsonObject(value)) return {}
  const entries = Object.entries(value).flatMap(([name, item]) => {
    const known = isJsonObject(item) ? read(item) : undefined
    return known === undefined ? [] : [[name, known] as const]
  })
  return Object.fromEntries(entries)
}

function toWorked({ location, fingerprint, digest }: JsonObject): WorkedSet | undefined {
  return typeof location === 'string' && typeof fingerprint === 'string' && typeof digest === 'string'
    ? { location, fingerprint, digest }
    : undefined
}

function toHeld({ location, fingerprint, podd }: JsonObject): HeldSet | undefined {
  return typeof location === 'string' && typeof fingerprint === 'string' && typeof podd === 'string'
    ? { location, fingerprint, podd }
    : undefined
}

/** A source that is held. */
export interface Hold {
  /** Wall milliseconds. */
  readonly sinceMs: number
  /** Whether a copy of the source is kept; false where it had given nothing. */
  readonly hasCopy: boolean
}

export type Holds = ReadonlyMap<SourceName, Hold>

/** Never throws: without a record no source is held. One that can't be read is put aside and reported. */
export async function readHolds(file: SmallFile, report: StateReport): Promise<Holds> {
  try {
    return (await loadState(file, migrations, toHolds, report)) ?? new Map()
  } catch (error) {
    report({ path: file.path, message: errorMessage(error) })
    return new Map()
  }
}

/** The sources that a podd holds, read without changing anything; none where they can't be read. */
export function readHoldsAt(rootDir: string): Holds {
  try {
    const reading = readState(readFileSync(join(rootDir, 'holds.json'), 'utf8'), migrations)
    return (reading.kind === 'current' ? toHolds(reading.content) : undefined) ?? new Map()
  } catch {
    // podd was never here, or only root may look.
    return new Map()
  }
}

/** Throws the system's error (ENOSPC, EROFS, …). */
export async function writeHolds(file: SmallFile, holds: Holds): Promise<void> {
  await file.write(`${JSON.stringify({ version: migrations.length + 1, held: Object.fromEntries(holds) })}\n`)
}

function toHolds({ held }: JsonObject): Holds | undefined {
  if (!isJsonObject(held)) return undefined
  return new Map(
    Object.entries(held).flatMap(([key, value]): [SourceName, Hold][] => {
      const name = parseSourceName(key)
      if (name === undefined || !isJsonObject(value) || typeof value['sinceMs'] !== 'number') return []
      return [[name, { sinceMs: value['sinceMs'], hasCopy: value['hasCopy'] === true }]]
    }),
  )
}

/** The newest signature that was accepted of a manifest. */
export interface SignedAt {
  /** Seconds since 1970. */
  readonly timestamp: number
  /** The SHA-256 of what was signed; undefined where it is no longer known. */
  readonly digest?: string | undefined
}

/** The newest signatures that were accepted. */
export interface SignatureTimes {
  /** By manifest (a path, a source, or the name of a file in it), then by the id of the key. */
  readonly signed: ReadonlyMap<string, Readonly<Record<string, SignedAt>>>
  /** Of manifests that are no longer remembered, by the id of the key. */
  readonly forgotten: Readonly<Record<string, SignedAt>>
}

/**
 * A record that is corrupt is put aside and reported; any signature counts as new then. Throws the system's error where it
 * can't be read: what it says still holds, so it must not be replaced.
 */
export async function readSignatureTimes(file: SmallFile, report: StateReport): Promise<SignatureTimes> {
  return (await loadState(file, migrations, toSignatureTimes, report)) ?? { signed: new Map(), forgotten: {} }
}

/** Throws the system's error (ENOSPC, EROFS, …). */
export async function writeSignatureTimes(
  file: SmallFile,
  { signed, forgotten }: SignatureTimes,
): Promise<void> {
  const content = { version: migrations.length + 1, signed: Object.fromEntries(signed), forgotten }
  await file.write(`${JSON.stringify(content)}\n`)
}

function toSignatureTimes({ signed, forgotten }: JsonObject): SignatureTimes | undefined {
  if (!isJsonObject(signed)) return undefined
  return { signed: new Map(Object.entries(mapOf(signed, toTimes))), forgotten: toTimes(forgotten) }
}

function toTimes(value: Json | undefined): Readonly<Record<string, SignedAt>> {
  if (!isJsonObject(value)) return {}
  const times = Object.entries(value).flatMap(([id, item]): [string, SignedAt][] => {
    // Records of before have the timestamp alone.
    if (typeof item === 'number') return [[id, { timestamp: item }]]
    if (!isJsonObject(item) || typeof item['timestamp'] !== 'number') return []
    const { timestamp, digest } = item
    return [[id, { timestamp, digest: typeof digest === 'string' ? digest : undefined }]]
  })
  return Object.fromEntries(times)
}
