import type { DecodeResult } from '../../pod/decode/decode-documents.ts'
import { unreadable } from '../../pod/decode/decode-documents.ts'
import type { FieldValidation } from '../../pod/schema/check-value.ts'
import type { DecodeSource } from '../decode-source.ts'
import type { FollowedValues } from '../followed-values.ts'
import type { PendingFile, ReadContent } from './pending-file.ts'
import { readUnchanged } from './read-manifest-file.ts'
import { endsCleanly } from './settle-file.ts'

export interface FileToRead {
  readonly path: string
  readonly look: PendingFile['look']
  readonly decode: DecodeSource
  readonly values?: FollowedValues | undefined
  readonly fieldValidation: FieldValidation
}

/**
 * What a file holds; undefined where it changed meanwhile. Throws what the system throws, and DecodeUnavailable.
 * @param known what content of this hash was decoded to, where it was before
 */
export async function readContent(
  { path, look, decode, values, fieldValidation }: FileToRead,
  known: (hash: string) => DecodeResult | undefined,
): Promise<ReadContent | undefined> {
  if (look.kind === 'unreadable') {
    if (look.error !== undefined) throw look.error
    return { hash: look.reason, result: unreadable({ path }, look.reason), endsCleanly: true }
  }
  const content = await readUnchanged(path, look.fingerprint)
  if (content === undefined) return undefined
  const { bytes } = content
  // The same text says something else with other values.
  const { revision = 0 } = values ?? {}
  const hash = revision === 0 ? content.hash : `${content.hash} ${revision}`
  const result = known(hash) ?? (await decode(bytes, { path, fieldValidation }))
  return { hash, result, endsCleanly: endsCleanly(bytes) }
}
