import type { Json } from '../base/json.ts'
import { isJsonObject } from '../base/json.ts'

/** From one list of documents to the next: from `at` on, `remove` of them go and `documents` come. */
export interface DocumentChange<Document> {
  readonly at: number
  readonly remove: number
  readonly documents: readonly Document[]
}

/** What changed between two lists, from the first document that differs to the last one. Compares by identity. */
export function selectChange<Document>(
  before: readonly Document[],
  after: readonly Document[],
): DocumentChange<Document> {
  let at = 0
  const shorter = Math.min(before.length, after.length)
  while (at < shorter && before[at] === after[at]) at += 1
  let same = 0
  while (same < shorter - at && before[before.length - 1 - same] === after[after.length - 1 - same]) same += 1
  return { at, remove: before.length - at - same, documents: after.slice(at, after.length - same) }
}

export function applyChange<Document>(
  list: readonly Document[],
  { at, remove, documents }: DocumentChange<Document>,
): readonly Document[] {
  return [...list.slice(0, at), ...documents, ...list.slice(at + remove)]
}

/**
 * The changes in lines of a text. The last line is what stands behind the last line break: it was cut off while it was
 * written, and doesn't count. Undefined where another one is no change.
 */
export function parseChanges(lines: readonly string[]): readonly DocumentChange<Json>[] | undefined {
  const changes = lines.slice(0, -1).map((line) => parseChange(line))
  const good = changes.filter((change) => change !== undefined)
  return good.length === changes.length ? good : undefined
}

function parseChange(line: string): DocumentChange<Json> | undefined {
  try {
    const value: Json = JSON.parse(line)
    if (!isJsonObject(value)) return undefined
    const { at, remove, documents } = value
    return typeof at === 'number' && typeof remove === 'number' && Array.isArray(documents)
      ? { at, remove, documents }
      : undefined
  } catch {
    // No JSON: that is what is asked.
    return undefined
  }
}
