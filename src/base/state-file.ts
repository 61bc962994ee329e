import { readFileSync, renameSync } from 'node:fs'
import { unreadableSuffix, writeFileAtomicSync } from './atomic-file.ts'
import { errorCode, errorMessage } from './errors.ts'
import type { Json, JsonObject } from './json.ts'
import { isJsonObject } from './json.ts'

/**
 * One step: the content that version N wrote, in the form of version N + 1. Pure; throws where the content is not
 * what version N wrote. Once released, a step never changes.
 */
export type Migration = (content: Json) => JsonObject

/** The result of reading a state file. */
export type StateReading =
  /** In the form of the current version; unknown fields are kept. */
  | { readonly kind: 'current'; readonly content: JsonObject }
  /** A newer podd wrote it, in a form that this one may misread. */
  | { readonly kind: 'newer'; readonly message: string }
  | { readonly kind: 'unreadable'; readonly message: string }

/**
 * Reads the text of a state file: a JSON object with a `version`. Content without one is of version 1. The current
 * version is the number of migrations plus one; an older form goes through the remaining steps.
 */
export function readState(text: string, migrations: readonly Migration[]): StateReading {
  const current = migrations.length + 1
  try {
    const json: Json = JSON.parse(text)
    const version = isJsonObject(json) ? (json['version'] ?? 1) : 1
    if (typeof version !== 'number' || !Number.isInteger(version) || version < 1)
      return { kind: 'unreadable', message: 'its version is not a number from 1 on' }
    if (version > current)
      return { kind: 'newer', message: `it has version ${version}, and this podd reads up to ${current}` }
    let content = json
    for (const migrate of migrations.slice(version - 1)) content = migrate(content)
    if (!isJsonObject(content)) return { kind: 'unreadable', message: 'it is not an object' }
    return { kind: 'current', content: { ...content, version: current } }
  } catch (error) {
    return { kind: 'unreadable', message: errorMessage(error) }
  }
}

/**
 * Reads a state file that is needed before anything else is; undefined where there is none. Throws the system's error where it
 * exists and can't be read: what it says may still hold, so it must not be replaced.
 */
export function readStateSync(path: string, migrations: readonly Migration[]): StateReading | undefined {
  try {
    return readState(readFileSync(path, 'utf8'), migrations)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    return undefined
  }
}

/** Replaces such a file durably. One that can't be read is put aside before, and reported. Throws the system's error. */
export function replaceStateSync(
  path: string,
  before: StateReading | undefined,
  content: JsonObject,
  {
    mode,
    report,
  }: {
    readonly mode?: number
    readonly report?: ((unreadable: { readonly path: string; readonly message: string }) => void) | undefined
  },
): void {
  if (before !== undefined && before.kind !== 'current') {
    const aside = `${path}${unreadableSuffix}`
    renameSync(path, aside)
    report?.({ path: aside, message: before.message })
  }
  writeFileAtomicSync(path, `${JSON.stringify(content)}\n`, mode)
}
