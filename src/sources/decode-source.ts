import { Worker } from 'node:worker_threads'
import type { Clock } from '../base/clock.ts'
import { PoddError, errorCode, errorMessage, isSystemError } from '../base/errors.ts'
import type { DecodeOptions, DecodeResult } from '../pod/decode-documents.ts'
import { decodeDocuments, unreadable } from '../pod/decode-documents.ts'

/** What a decode worker is given. */
export interface DecodeRequest {
  readonly bytes: Uint8Array
  readonly options: DecodeOptions
}

/** A text could not be decoded for now; that says nothing about the text. */
export class DecodeUnavailable extends PoddError {
  constructor(message: string, cause?: unknown) {
    super('DECODE_UNAVAILABLE', `cannot be decoded for now: ${message}`, {
      cause,
      hint: 'podd tries again by itself; see what the system runs short of (processes, memory, open files).',
    })
  }
}

/**
 * Decodes what a source read. A result is about the text alone and holds as long as the text does.
 * @throws DecodeUnavailable where the system failed
 */
export type DecodeSource = (bytes: Uint8Array, options: DecodeOptions) => Promise<DecodeResult>

/** The part of a worker thread that decoding needs. */
export interface DecodeThread {
  once(event: 'message', listener: (result: DecodeResult) => void): unknown
  once(event: 'error', listener: (error: unknown) => void): unknown
  once(event: 'exit', listener: () => void): unknown
  terminate(): Promise<unknown>
}

export interface DecodeSourceDeps {
  readonly decode?: typeof decodeDocuments
  /** Throws what the system throws. */
  readonly startThread?: (request: DecodeRequest) => DecodeThread
}

/** Texts from this size on are decoded off the main thread: a mebibyte of YAML takes most of a second. */
export const largeDocumentBytes = 64 * 1024
const decodeTimeoutMs = 120_000
const heapMiB = 1024

/** Decodes small texts here and large ones in a worker thread that lives as long as it takes. */
export function createDecodeSource(
  clock: Clock,
  { decode = decodeDocuments, startThread = startWorker }: DecodeSourceDeps = {},
): DecodeSource {
  return async (bytes, options) => {
    if (bytes.byteLength >= largeDocumentBytes)
      return await decodeInThread(clock, startThread, { bytes, options })
    return await decodeOrTellWhy({ bytes, options }, decode)
  }
}

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

async function decodeInThread(
  clock: Clock,
  startThread: NonNullable<DecodeSourceDeps['startThread']>,
  request: DecodeRequest,
): Promise<DecodeResult> {
  const thread = begin(startThread, request)
  const { promise, resolve, reject } = Promise.withResolvers<DecodeResult>()
  const fail = (message: string, cause?: unknown): void => reject(new DecodeUnavailable(message, cause))
  const timer = clock.startTimer(decodeTimeoutMs, () =>
    fail(`it took longer than ${decodeTimeoutMs / 1000} s`),
  )
  thread.once('message', resolve)
  thread.once('error', (error) => {
    // Its heap is bounded by podd, not by the system: what the text needs is too much.
    if (errorCode(error) === 'ERR_WORKER_OUT_OF_MEMORY')
      resolve(unreadable(request.options, `cannot be decoded: it takes more than ${heapMiB} MiB of memory`))
    else fail(errorMessage(error), error)
  })
  thread.once('exit', () => fail('the decoder ended early'))
  try {
    return await promise
  } finally {
    timer.cancel()
    void thread.terminate()
  }
}

function begin(
  startThread: NonNullable<DecodeSourceDeps['startThread']>,
  request: DecodeRequest,
): DecodeThread {
  try {
    return startThread(request)
  } catch (error) {
    throw new DecodeUnavailable(`no thread can be started: ${errorMessage(error)}`, error)
  }
}

function startWorker(request: DecodeRequest): DecodeThread {
  return new Worker(workerUrl(), {
    workerData: request,
    resourceLimits: { maxOldGenerationSizeMb: heapMiB },
  })
}

/** The worker stands beside this module: as source while developing, as its own bundle once built. */
function workerUrl(): URL {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return new URL(`./decode-worker.${extension}`, import.meta.url)
}
