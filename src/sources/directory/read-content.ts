import type { DecodeResult } from '../../pod/decode/decode-documents.ts'
import { unreadable } from '../../pod/decode/decode-documents.ts'
import type { FieldValidation } from '../../pod/schema/check-value.ts'
import type { DecodeSource } from '../decode-source.ts'
import type { FollowedValues } from '../followed-values.ts'
import type { PendingFile, ReadContent } from './pending-file.ts'
import { readUnchanged } from '../read-manifest-file.ts'
import { endsCleanly, isBraced } from './settle-file.ts'

export interface FileToRead {
  readonly path: string
  readonly look: PendingFile['look']
  readonly decode: DecodeSource
  readonly values?: FollowedValues | undefined
  readonly fieldValidation: FieldValidation
}

/**
 * The content of a file; undefined where it changed meanwhile. Throws what the system throws, and DecodeUnavailable.
 * @param known the earlier result of decoding content with this hash
 */
export async function readContent(
  { path, look, decode, values, fieldValidation }: FileToRead,
  known: (hash: string) => DecodeResult | undefined,
): Promise<ReadContent | undefined> {
  if (look.kind === 'unreadable') {
    if (look.error !== undefined) throw look.error
    return {
      hash: look.reason,
      result: unreadable({ path }, look.reason),
      endsCleanly: true,
      isBraced: false,
    }
  }
  const content = await readUnchanged(path, look.fingerprint)
  if (content === undefined) return undefined
  const { bytes } = content
  // With other values the same text decodes differently.
  const { revision = 0 } = values ?? {}
  const hash = revision === 0 ? content.hash : `${content.hash} ${revision}`
  const result = known(hash) ?? (await decode(bytes, { path, fieldValidation }))
  return { hash, result, endsCleanly: endsCleanly(bytes), isBraced: isBraced(bytes) }
}
