/** Entry of the worker threads that decode each text that they are sent; see decode-thread.ts. */
import { parentPort } from 'node:worker_threads'
import { decodeOrTellWhy } from './decode-source.ts'
import { DecodeUnavailable } from './decode-thread.ts'
import type { DecodeRequest } from './decode-thread.ts'

function isRequest(data: unknown): data is DecodeRequest {
  return typeof data === 'object' && data !== null && 'bytes' in data && 'options' in data
}

parentPort?.on('message', (request: unknown) => {
  if (!isRequest(request)) return
  void decodeOrTellWhy(request).then(
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    (result) => parentPort?.postMessage(result),
    (error: unknown) => {
      // It ends the thread, and its owner gets the error.
      queueMicrotask(() => {
        throw error instanceof DecodeUnavailable ? error.cause : error
      })
    },
  )
})
