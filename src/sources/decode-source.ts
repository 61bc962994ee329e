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

/** A document, or some tokens of one that is large. */
type Item = { readonly document: SourceDocument } | { readonly tokens: readonly unknown[] }

/**
 * A piece of a result that is taken over in a few milliseconds: all of a large one at once would hold the event loop. `rest`
 * comes with the last one.
 */
export interface DecodePart {
  readonly items: readonly Item[]
  readonly problems: readonly Problem[]
  readonly rest?: Pick<DecodeResult, 'heldObjects' | 'holdsAll'>
}

/** How many values one part has. */
const mostPerPart = 4_000
/** A document with more values is sent as tokens. */
const mostPerDocument = 2_000

/** The tokens. Each is followed by its value, an object's key, the number of an earlier array or object, or nothing. */
const token = { value: 0, array: 1, object: 2, key: 3, again: 4, end: 5 } as const
type TokenKind = (typeof token)[keyof typeof token]

/** Cuts a result into parts. */
export function* splitResult({ documents, problems, ...rest }: DecodeResult): Generator<DecodePart, void> {
  let items: Item[] = []
  let left = mostPerPart
  for (const document of documents) {
    const weight = weigh(document)
    if (left < Math.min(weight, mostPerDocument)) {
      yield { items, problems: [] }
      items = []
      left = mostPerPart
    }
    if (weight <= mostPerDocument) {
      items.push({ document })
      left -= weight
      continue
    }
    let tokens: unknown[] = []
    for (const [kind, payload] of tokensOf(document, new Map())) {
      tokens.push(kind, payload)
      left -= 1
      if (left > 0) continue
      yield { items: [...items, { tokens }], problems: [] }
      items = []
      tokens = []
      left = mostPerPart
    }
    items.push({ tokens })
  }
  let given = 0
  for (; problems.length - given > mostPerDocument; given += mostPerDocument) {
    yield { items, problems: problems.slice(given, given + mostPerDocument) }
    items = []
  }
  yield { items, problems: problems.slice(given), rest }
}

/** The number of values in something, counted up to a limit. */
function weigh(value: unknown): number {
  const waiting = [value]
  let weight = 0
  while (waiting.length > 0 && weight <= mostPerDocument) {
    const next = waiting.pop()
    weight += 1
    if (typeof next !== 'object' || next === null) continue
    for (const each of Object.values(next)) waiting.push(each)
  }
  return weight
}

function* tokensOf(
  value: unknown,
  seen: Map<object, number>,
): Generator<readonly [TokenKind, unknown], void> {
  if (typeof value !== 'object' || value === null) return yield [token.value, value]
  const before = seen.get(value)
  if (before !== undefined) return yield [token.again, before]
  seen.set(value, seen.size)
  if (Array.isArray(value)) {
    yield [token.array, undefined]
    for (const item of value) yield* tokensOf(item, seen)
  } else {
    yield [token.object, undefined]
    for (const [key, item] of Object.entries(value)) {
      yield [token.key, key]
      yield* tokensOf(item, seen)
    }
  }
  return yield [token.end, undefined]
}

/** Puts a result together again. */
export class ResultJoiner {
  readonly #documents: SourceDocument[] = []
  readonly #problems: Problem[] = []
  readonly #builder = new ValueBuilder((document) => {
    if (isDocument(document)) this.#documents.push(document)
  })

  /** Returns the result with its last part. */
  add({ items, problems, rest }: DecodePart): DecodeResult | undefined {
    for (const item of items) {
      if ('document' in item) this.#documents.push(item.document)
      else this.#builder.add(item.tokens)
    }
    for (const problem of problems) this.#problems.push(problem)
    return rest && { documents: this.#documents, problems: this.#problems, ...rest }
  }
}

function isDocument(value: unknown): value is SourceDocument {
  return typeof value === 'object' && value !== null && 'manifest' in value && 'place' in value
}

/** Builds values of tokens, which may come in pieces. */
class ValueBuilder {
  readonly #onValue: (value: unknown) => void
  readonly #open: { readonly value: object; key: string }[] = []
  #seen: object[] = []

  constructor(onValue: (value: unknown) => void) {
    this.#onValue = onValue
  }

  add(tokens: readonly unknown[]): void {
    for (let at = 0; at < tokens.length; at += 2) this.#take(tokens[at], tokens[at + 1])
  }

  #take(kind: unknown, payload: unknown): void {
    const top = this.#open.at(-1)
    if (kind === token.key && top !== undefined) top.key = String(payload)
    else if (kind === token.value) this.#put(payload)
    else if (kind === token.again) this.#put(this.#seen[Number(payload)])
    else if (kind === token.array) this.#begin([])
    else if (kind === token.object) this.#begin({})
    else if (kind === token.end && top !== undefined) {
      this.#open.pop()
      if (this.#open.length > 0) return
      this.#seen = []
      this.#onValue(top.value)
    }
  }

  #begin(value: object): void {
    this.#seen.push(value)
    this.#put(value)
    this.#open.push({ value, key: '' })
  }

  #put(value: unknown): void {
    const top = this.#open.at(-1)
    if (top === undefined) return
    if (Array.isArray(top.value)) top.value.push(value)
    // `__proto__` is a key as any other.
    else
      Object.defineProperty(top.value, top.key, {
        value,
        enumerable: true,
        configurable: true,
        writable: true,
      })
  }
}
