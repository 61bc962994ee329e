import type { DecodeResult } from '../pod/decode/decode-documents.ts'
import type { SourceDocument } from '../pod/objects/document.ts'
import { documentKey } from '../pod/objects/document.ts'

/**
 * What one file or response gives now: its good documents, and in place of bad ones what they gave
 * before. Something bad without a name may stand for anything, so it holds all that was there.
 */
export function mergeLastGood(
  before: readonly SourceDocument[],
  { documents, heldObjects, holdsAll }: DecodeResult,
): readonly SourceDocument[] {
  const given = new Set(documents.map((document) => documentKey(document)))
  const held = before.filter((document) => {
    const key = documentKey(document)
    return !given.has(key) && (holdsAll || heldObjects.includes(key))
  })
  return [...documents, ...held]
}
