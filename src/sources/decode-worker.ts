/** Entry of the worker thread that decodes one large text and ends; see decode-source.ts. */
import { parentPort, workerData } from 'node:worker_threads'
import type { DecodeRequest } from './decode-source.ts'
import { decodeOrTellWhy } from './decode-source.ts'

function isRequest(data: unknown): data is DecodeRequest {
  return typeof data === 'object' && data !== null && 'bytes' in data && 'options' in data
}

const request: unknown = workerData
if (isRequest(request)) {
  const result = await decodeOrTellWhy(request)
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(result)
}
