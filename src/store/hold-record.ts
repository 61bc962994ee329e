import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { putAside } from '../base/atomic-file.ts'
import { errorMessage } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import { isJsonObject } from '../base/json.ts'
import { readState } from '../base/state-file.ts'
import type { Migration } from '../base/state-file.ts'
import type { SourceName } from '../pod/objects/document.ts'
import { parseSourceName } from '../pod/values/ids.ts'
import type { SmallFile } from './small-file.ts'
import type { StateReport } from './state-report.ts'

/** One step for each version before the current one, oldest first. */
const migrations: readonly Migration[] = []

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
    const text = await file.read()
    if (text === undefined) return new Map()
    const reading = readState(text, migrations)
    const held = reading.kind === 'current' ? reading.content['held'] : undefined
    if (isJsonObject(held)) return toHolds(held)
    const message = reading.kind === 'current' ? 'it lacks what it must have' : reading.message
    report({ path: await putAside(file.path), message })
  } catch (error) {
    report({ path: file.path, message: errorMessage(error) })
  }
  return new Map()
}

/** The sources that a podd holds, read without changing anything; none where they can't be read. */
export function readHoldsAt(rootDir: string): Holds {
  try {
    const reading = readState(readFileSync(join(rootDir, 'holds.json'), 'utf8'), migrations)
    const held = reading.kind === 'current' ? reading.content['held'] : undefined
    return isJsonObject(held) ? toHolds(held) : new Map()
  } catch {
    // podd was never here, or only root may look.
    return new Map()
  }
}

/** Throws the system's error (ENOSPC, EROFS, …). */
export async function writeHolds(file: SmallFile, holds: Holds): Promise<void> {
  await file.write(`${JSON.stringify({ version: migrations.length + 1, held: Object.fromEntries(holds) })}\n`)
}

function toHolds(held: JsonObject): Holds {
  return new Map(
    Object.entries(held).flatMap(([key, value]): [SourceName, Hold][] => {
      const name = parseSourceName(key)
      if (name === undefined || !isJsonObject(value) || typeof value['sinceMs'] !== 'number') return []
      return [[name, { sinceMs: value['sinceMs'], hasCopy: value['hasCopy'] === true }]]
    }),
  )
}
