import { Worker } from 'node:worker_threads'
import type { Clock } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { DecodeOptions, DecodeResult } from '../pod/decode-documents.ts'
import { decodeDocuments, unreadable } from '../pod/decode-documents.ts'

/** What a decode worker is given. */
export interface DecodeRequest {
  readonly bytes: Uint8Array
  readonly options: DecodeOptions
}

/** Decodes what a source read; never rejects. */
export type DecodeSource = (bytes: Uint8Array, options: DecodeOptions) => Promise<DecodeResult>

/** Texts from this size on are decoded off the main thread: a mebibyte of YAML takes most of a second. */
export const largeDocumentBytes = 64 * 1024
const decodeTimeoutMs = 120_000

/** Decodes small texts here and large ones in a worker thread that lives as long as it takes. */
export function createDecodeSource(clock: Clock, decode = decodeDocuments): DecodeSource {
  return async (bytes, options) => {
    try {
      if (bytes.byteLength >= largeDocumentBytes) return await decodeInWorker(clock, { bytes, options })
      return await decode(bytes, options)
    } catch (error) {
      return unreadable(options, `cannot be decoded: ${errorMessage(error)}`)
    }
  }
}

function decodeInWorker(clock: Clock, request: DecodeRequest): Promise<DecodeResult> {
  return new Promise((resolve) => {
    const worker = new Worker(workerUrl(), {
      workerData: request,
      resourceLimits: { maxOldGenerationSizeMb: 1024 },
    })
    const fail = (message: string): void => finish(unreadable(request.options, message))
    const timer = clock.startTimer(decodeTimeoutMs, () =>
      fail(`took longer than ${decodeTimeoutMs / 1000} s to decode`),
    )
    const finish = (result: DecodeResult): void => {
      timer.cancel()
      void worker.terminate()
      resolve(result)
    }
    worker.once('message', (result: DecodeResult) => finish(result))
    worker.once('error', (error) => fail(`cannot be decoded: ${errorMessage(error)}`))
    worker.once('exit', () => fail('cannot be decoded: the decoder ended early'))
  })
}

/** The worker stands beside this module: as source while developing, as its own bundle once built. */
function workerUrl(): URL {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return new URL(`./decode-worker.${extension}`, import.meta.url)
}
