/** Entry of the worker threads that decode each text that they are sent; see decode-thread.ts. */
import { parentPort } from 'node:worker_threads'
import type { DecodeResult } from '../pod/decode/decode-documents.ts'
import { decodeOrTellWhy } from './decode-source.ts'
import { DecodeUnavailable, nextPart } from './decode-thread.ts'
import type { DecodeRequest } from './decode-thread.ts'

function isRequest(data: unknown): data is DecodeRequest {
  return typeof data === 'object' && data !== null && 'bytes' in data && 'options' in data
}

/** Of documents and problems, in one part. */
const mostPerPart = 100

/** What was decoded last, and how much of it was given. */
let result: DecodeResult | undefined
let given = 0

function givePart({ documents, problems, heldObjects, holdsAll }: DecodeResult): void {
  const until = given + mostPerPart
  const part = { documents: documents.slice(given, until), problems: problems.slice(given, until) }
  const isLast = until >= documents.length && until >= problems.length
  given = until
  if (isLast) result = undefined
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(isLast ? { ...part, rest: { heldObjects, holdsAll } } : part)
}

parentPort?.on('message', (request: unknown) => {
  if (request === nextPart && result !== undefined) givePart(result)
  if (!isRequest(request)) return
  void decodeOrTellWhy(request).then(
    (decoded) => {
      result = decoded
      given = 0
      givePart(decoded)
    },
    (error: unknown) => {
      // It ends the thread, and its owner gets the error.
      queueMicrotask(() => {
        throw error instanceof DecodeUnavailable ? error.cause : error
      })
    },
  )
})
