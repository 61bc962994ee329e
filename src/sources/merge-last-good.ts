import type { DecodeResult } from '../pod/decode/decode-documents.ts'
import type { SourceDocument } from '../pod/objects/document.ts'
import { documentKey } from '../pod/objects/document.ts'

/**
 * Merges a file or response with its last good version: its good documents, and the last good form of bad ones. A bad
 * document without a name may be any of the earlier ones, so all of them are kept.
 */
export function mergeLastGood(
  before: readonly SourceDocument[],
  { documents, heldObjects, holdsAll }: DecodeResult,
): readonly SourceDocument[] {
  const given = new Set(documents.map((document) => documentKey(document)))
  const isHeld = new Set(heldObjects)
  const held = before.filter((document) => {
    const key = documentKey(document)
    return !given.has(key) && (holdsAll || isHeld.has(key))
  })
  return [...documents, ...held]
}
