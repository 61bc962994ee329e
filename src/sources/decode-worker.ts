/** Entry of the worker threads that decode each text that they are sent: see decode-source.ts. */
import { parentPort } from 'node:worker_threads'
import type { DecodePart, DecodeRequest } from './decode-source.ts'
import { decodeOrTellWhy, DecodeUnavailable, nextPart, splitResult } from './decode-source.ts'

function isRequest(data: unknown): data is DecodeRequest {
  return typeof data === 'object' && data !== null && 'bytes' in data && 'options' in data
}

/** The parts of the last result that were not sent yet. */
let parts: Generator<DecodePart, void> | undefined

function givePart(): void {
  const { value: part } = parts?.next() ?? {}
  if (part === undefined) return
  if (part.rest !== undefined) parts = undefined
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(part)
}

parentPort?.on('message', (request: unknown) => {
  if (request === nextPart) givePart()
  if (!isRequest(request)) return
  void decodeOrTellWhy(request).then(
    (decoded) => {
      parts = splitResult(decoded)
      givePart()
    },
    (error: unknown) => {
      // It ends the thread, and its owner gets the error.
      queueMicrotask(() => {
        throw error instanceof DecodeUnavailable ? error.cause : error
      })
    },
  )
})
