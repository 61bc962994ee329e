import type { Worker } from 'node:worker_threads'
import type { Clock, Timer } from '../base/clock.ts'
import { PoddError, errorCode, errorMessage } from '../base/errors.ts'
import { Semaphore } from '../base/waits.ts'
import type { DecodeOptions, DecodeResult } from '../pod/decode/decode-documents.ts'
import { unreadable } from '../pod/decode/decode-documents.ts'
import type { DecodePart } from './decode-parts.ts'
import { ResultJoiner } from './decode-parts.ts'

/** What a decode worker is given. */
export interface DecodeRequest {
  readonly bytes: Uint8Array
  readonly options: DecodeOptions
}

/** Asks for the next part of a result. */
export const nextPart = 'next'

/** A text could not be decoded for now, for a reason other than the text. */
export class DecodeUnavailable extends PoddError {
  constructor(message: string, cause?: unknown) {
    super('DECODE_UNAVAILABLE', `cannot be decoded for now: ${message}`, {
      cause,
      hint: 'podd retries; check which resource the system lacks (processes, memory, open files).',
    })
  }
}

/** The part of a worker thread that decoding needs. */
export interface DecodeWorker {
  postMessage(request: DecodeRequest | typeof nextPart): void
  on(event: 'error', listener: (error: unknown) => void): unknown
  on(event: 'message', listener: (part: DecodePart) => void): unknown
  once(event: 'error', listener: (error: unknown) => void): unknown
  once(event: 'exit', listener: () => void): unknown
  off(event: 'message', listener: (part: DecodePart) => void): unknown
  off(event: 'error', listener: (error: unknown) => void): unknown
  off(event: 'exit', listener: () => void): unknown
  ref(): void
  unref(): void
  terminate(): Promise<unknown>
}

/** Throws what the system throws. */
export type StartWorker = () => DecodeWorker

export interface DecodeThreadOptions {
  readonly clock: Clock
  readonly startWorker?: StartWorker
  /** How long one text may take. */
  readonly timeoutMs: number
}

/** How long an idle thread waits for the next text: starting one takes longer than decoding. */
const idleMs = 10_000
const heapMiB = 1024

/**
 * A thread that decodes one text after another. It starts with the first one and ends when it has been idle for a
 * while.
 */
export class DecodeThread {
  readonly #options: DecodeThreadOptions
  readonly #turn = new Semaphore(1)
  #worker: DecodeWorker | undefined
  #idle: Timer | undefined

  constructor(options: DecodeThreadOptions) {
    this.#options = options
  }

  /** Decodes one text; a bad text is a result, not an error. @throws DecodeUnavailable where the system failed */
  decode(request: DecodeRequest): Promise<DecodeResult> {
    return this.#turn.run(async () => {
      this.#idle?.cancel()
      this.#worker ??= this.#start()
      const worker = this.#worker
      worker.ref()
      try {
        return await this.#ask(worker, request)
      } catch (error) {
        this.end()
        return resultOf(error, request.options)
      } finally {
        // An idle thread must not keep the process alive.
        worker.unref()
        if (this.#worker !== undefined) this.#idle = this.#options.clock.startTimer(idleMs, () => this.end())
      }
    })
  }

  /** Ends the thread; the next text gets another one. */
  end(): void {
    const worker = this.#worker
    this.#worker = undefined
    this.#idle?.cancel()
    void worker?.terminate()
  }

  #start(): DecodeWorker {
    const { startWorker = startDecodeWorker } = this.#options
    try {
      const worker = startWorker()
      // The text in progress fails too.
      worker.on('error', () => undefined)
      return worker
    } catch (error) {
      throw new DecodeUnavailable(`no thread can be started: ${errorMessage(error)}`, error)
    }
  }

  async #ask(worker: DecodeWorker, request: DecodeRequest): Promise<DecodeResult> {
    const { clock, timeoutMs } = this.#options
    const { promise, resolve, reject } = Promise.withResolvers<DecodeResult>()
    const onExit = (): void => reject(new DecodeUnavailable('the decoder ended early'))
    const timer = clock.startTimer(timeoutMs, () =>
      reject(new DecodeUnavailable(`it took longer than ${timeoutMs / 1000} s`)),
    )
    const joiner = new ResultJoiner()
    const onPart = (part: DecodePart): void => {
      const result = joiner.add(part)
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      if (result === undefined) worker.postMessage(nextPart)
      else resolve(result)
    }
    worker.on('message', onPart)
    worker.once('error', reject)
    worker.once('exit', onExit)
    try {
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      worker.postMessage(request)
      return await promise
    } finally {
      timer.cancel()
      worker.off('message', onPart)
      worker.off('error', reject)
      worker.off('exit', onExit)
    }
  }
}

/** podd, not the system, bounds the thread's heap: a text that needs more is an error of the text. */
function resultOf(error: unknown, options: DecodeOptions): DecodeResult {
  if (errorCode(error) === 'ERR_WORKER_OUT_OF_MEMORY')
    return unreadable(options, `cannot be decoded: it takes more than ${heapMiB} MiB of memory`)
  throw error instanceof DecodeUnavailable ? error : new DecodeUnavailable(errorMessage(error), error)
}

function startDecodeWorker(): Worker {
  // Loaded here, as few sources ever need it.
  const { Worker: NodeWorker } = process.getBuiltinModule('node:worker_threads')
  return new NodeWorker(decodeWorkerUrl(), { resourceLimits: { maxOldGenerationSizeMb: heapMiB } })
}

/** The file of the worker stands beside this module: as source while developing, as its own bundle once built. */
export function decodeWorkerUrl(): URL {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return new URL(`./decode-worker.${extension}`, import.meta.url)
}
