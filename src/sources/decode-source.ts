import type { Clock } from '../base/clock.ts'
import { errorMessage, isSystemError } from '../base/errors.ts'
import type { DecodeOptions, DecodeResult } from '../pod/decode/decode-documents.ts'
import { decodeDocuments, unreadable } from '../pod/decode/decode-documents.ts'
import type { DecodeRequest, StartWorker } from './decode-thread.ts'
import { DecodeThread, DecodeUnavailable } from './decode-thread.ts'

/**
 * Decodes what a source read. A result is about the text alone and holds as long as the text does.
 * @throws DecodeUnavailable where the system failed
 */
export type DecodeSource = (bytes: Uint8Array, options: DecodeOptions) => Promise<DecodeResult>

export interface DecodeSourceDeps {
  readonly decode?: typeof decodeDocuments
  readonly startWorker?: StartWorker
}

/** Each text from this size on is decoded in a thread of its own, so that none waits for another. */
export const largeDocumentBytes = 64 * 1024
/** Up to this size the worst text blocks the main thread for a few milliseconds. */
export const smallDocumentBytes = 4 * 1024
/** Many times longer than the worst texts of these sizes take. */
const largeTimeoutMs = 120_000
const timeoutMs = 30_000

/**
 * Decodes small texts on the main thread and all others in worker threads: a mebibyte of YAML takes most of a second.
 */
export function createDecodeSource(
  clock: Clock,
  { decode = decodeDocuments, ...worker }: DecodeSourceDeps = {},
): DecodeSource {
  const shared = new DecodeThread({ clock, timeoutMs, ...worker })
  return async (bytes, options) => {
    const request = { bytes, options }
    if (isSmall(bytes)) return decodeOrTellWhy(request, decode)
    if (bytes.byteLength < largeDocumentBytes) return shared.decode(request)
    const own = new DecodeThread({ clock, timeoutMs: largeTimeoutMs, ...worker })
    try {
      return await own.decode(request)
    } finally {
      own.end()
    }
  }
}

/** A text with aliases may produce a hundred thousand values from a few lines. */
function isSmall(bytes: Uint8Array): boolean {
  if (bytes.byteLength > smallDocumentBytes) return false
  if (!bytes.includes(ampersand)) return true
  return !/(?:^|[\s,:?[{-])\*[^\s,[\]{}]/u.test(Buffer.from(bytes).toString('latin1'))
}

const ampersand = 0x26

/**
 * A fault in decoding a text is a problem of the text.
 * @throws DecodeUnavailable where the system failed
 */
export async function decodeOrTellWhy(
  { bytes, options }: DecodeRequest,
  decode = decodeDocuments,
): Promise<DecodeResult> {
  try {
    return await decode(bytes, options)
  } catch (error) {
    if (isSystemError(error)) throw new DecodeUnavailable(errorMessage(error), error)
    return unreadable(options, `cannot be decoded: ${errorMessage(error)}`)
  }
}
