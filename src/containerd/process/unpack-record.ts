import { putAside } from '../../base/atomic-file.ts'
import type { Json } from '../../base/json.ts'
import { readState } from '../../base/state-file.ts'
import type { Migration } from '../../base/state-file.ts'
import type { SmallFile } from '../../store/small-file.ts'

/** One step for each version before the current one, oldest first. */
const migrations: readonly Migration[] = []

/** The record exists while layers may be only in the page cache. */
export interface UnpackRecord {
  /** The boot in which they were unpacked. */
  readonly bootId: string
  /** The ids of the images whose layers are on the disk. */
  readonly written: readonly string[]
}

/**
 * Undefined where no image was being unpacked, or the record can't be read and is put aside. Throws the system's error
 * where the disk can't be read.
 */
export async function readUnpackRecord(file: SmallFile): Promise<UnpackRecord | undefined> {
  const text = await file.read()
  if (text === undefined) return undefined
  const reading = readState(text, migrations)
  const record = reading.kind === 'current' ? toRecord(reading.content) : undefined
  if (record === undefined) await putAside(file.path)
  return record
}

/** Throws the system's error (ENOSPC, EROFS, …). */
export async function writeUnpackRecord(file: SmallFile, record: UnpackRecord): Promise<void> {
  await file.write(`${JSON.stringify({ version: migrations.length + 1, ...record })}\n`)
}

function toRecord({ bootId, written }: { readonly [key: string]: Json }): UnpackRecord | undefined {
  if (typeof bootId !== 'string' || !Array.isArray(written)) return undefined
  const ids = written.flatMap((id: Json) => (typeof id === 'string' ? [id] : []))
  return ids.length === written.length ? { bootId, written: ids } : undefined
}
