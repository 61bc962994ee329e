import type { Worker } from 'node:worker_threads'
import type { Clock, Timer } from '../base/clock.ts'
import { errorCode, errorMessage, isSystemError, PoddError } from '../base/errors.ts'
import { Semaphore } from '../base/waits.ts'
import { decodeDocuments, unreadable } from '../pod/decode/decode-documents.ts'
import type { DecodeOptions, DecodeResult } from '../pod/decode/decode-documents.ts'
import type { Problem, SourceDocument } from '../pod/objects/document.ts'

/**
 * Decodes what a source read. A result is about the text alone and holds as long as the text does.
 * @throws DecodeUnavailable where the system failed
 */
export type DecodeSource = (bytes: Uint8Array, options: DecodeOptions) => Promise<DecodeResult>

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
  decode = decodeDocuments,
  startWorker: StartWorker = startDecodeWorker,
): DecodeSource {
  const shared = new DecodeThread(clock, timeoutMs, startWorker)
  return async (bytes, options) => {
    const request = { bytes, options }
    if (isSmall(bytes)) return decodeOrTellWhy(request, decode)
    if (bytes.byteLength < largeDocumentBytes) return shared.decode(request)
    const own = new DecodeThread(clock, largeTimeoutMs, startWorker)
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

/** Decodes as `decode` does, by what the config says of all texts of a source. */
export function decodeBy(
  decode: DecodeSource,
  config: Pick<DecodeOptions, 'requireDigest' | 'ignoreKinds'>,
): DecodeSource {
  return (bytes, options) => decode(bytes, { ...options, ...config })
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

/** How long an idle thread waits for the next text: starting one takes longer than decoding. */
const idleMs = 10_000
const heapMiB = 1024

/**
 * A thread that decodes one text after another. It starts with the first one and ends when it has been idle for a
 * while.
 */
class DecodeThread {
  readonly #clock: Clock
  readonly #timeoutMs: number
  readonly #startWorker: StartWorker
  readonly #turn = new Semaphore(1)
  #worker: DecodeWorker | undefined
  #idle: Timer | undefined

  /** @param timeoutMs how long one text may take */
  constructor(clock: Clock, timeoutMs: number, startWorker: StartWorker) {
    this.#clock = clock
    this.#timeoutMs = timeoutMs
    this.#startWorker = startWorker
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
        if (this.#worker !== undefined) this.#idle = this.#clock.startTimer(idleMs, () => this.end())
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
    try {
      const worker = this.#startWorker()
      // The text in progress fails too.
      worker.on('error', () => undefined)
      return worker
    } catch (error) {
      throw new DecodeUnavailable(`no thread can be started: ${errorMessage(error)}`, error)
    }
  }

  async #ask(worker: DecodeWorker, request: DecodeRequest): Promise<DecodeResult> {
    const timeoutMs = this.#timeoutMs
    const { promise, resolve, reject } = Promise.withResolvers<DecodeResult>()
    const onExit = (): void => reject(new DecodeUnavailable('the decoder ended early'))
    const timer = this.#clock.startTimer(timeoutMs, () =>
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

/** A piece of a result: a thousand documents at once would hold the event loop. `rest` comes with the last one. */
export type DecodePart = Pick<DecodeResult, 'documents' | 'problems'> & {
  readonly rest?: Omit<DecodeResult, 'documents' | 'problems'>
}

/** How many documents, and how many problems, are in one part: they are taken over in a few milliseconds. */
const maxPerPart = { documents: 40, problems: 2000 }

/** Cuts a result into parts. */
export function* splitResult({ documents, problems, ...rest }: DecodeResult): Generator<DecodePart, void> {
  const parts = Math.max(
    1,
    Math.ceil(documents.length / maxPerPart.documents),
    Math.ceil(problems.length / maxPerPart.problems),
  )
  for (let at = 0; at < parts; at += 1)
    yield {
      documents: documents.slice(at * maxPerPart.documents, (at + 1) * maxPerPart.documents),
      problems: problems.slice(at * maxPerPart.problems, (at + 1) * maxPerPart.problems),
      ...(at === parts - 1 && { rest }),
    }
}

/** Puts a result together again. */
export class ResultJoiner {
  readonly #documents: SourceDocument[] = []
  readonly #problems: Problem[] = []

  /** Returns the result with its last part. */
  add({ documents, problems, rest }: DecodePart): DecodeResult | undefined {
    this.#documents.push(...documents)
    this.#problems.push(...problems)
    return rest && { documents: this.#documents, problems: this.#problems, ...rest }
  }
}
