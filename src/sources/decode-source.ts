import type { Clock } from '../base/clock.ts'
import { errorMessage, isSystemError } from '../base/errors.ts'
import type { DecodeOptions, DecodeResult } from '../pod/decode/decode-documents.ts'
import { decodeDocuments, unreadable } from '../pod/decode/decode-documents.ts'
import { DecodeProcess, startDecodeProcess } from './decode-process.ts'
import type { DecodeProcessOptions, StartProcess } from './decode-process.ts'
import type { DecodeRequest, StartWorker } from './decode-thread.ts'
import { DecodeThread, DecodeUnavailable } from './decode-thread.ts'

/**
 * Decodes what a source read. A result is about the text alone and holds as long as the text does.
 * @throws DecodeUnavailable where the system failed
 */
export interface DecodeSource {
  (bytes: Uint8Array, options: DecodeOptions): Promise<DecodeResult>
  /** Tells how many texts are about to come. */
  readonly expect?: (texts: number) => void
}

export interface DecodeSourceDeps {
  readonly decode?: typeof decodeDocuments
  readonly startWorker?: StartWorker
  /** Starts the process that decodes many small texts. */
  readonly startProcess?: StartProcess
}

/** Each text from this size on is decoded in a thread of its own, so that none waits for another. */
export const largeDocumentBytes = 64 * 1024
/** Up to this size the worst text blocks the main thread for a few milliseconds. */
export const smallDocumentBytes = 4 * 1024
/** Many times longer than the worst texts of these sizes take. */
const largeTimeoutMs = 120_000
const timeoutMs = 30_000

/**
 * Decodes small texts on the main thread and all others in worker threads: a mebibyte of YAML takes most of a second. Of
 * many small ones at once, as at the start, a process decodes most.
 */
export function createDecodeSource(
  clock: Clock,
  { decode = decodeDocuments, startProcess = startDecodeProcess, ...worker }: DecodeSourceDeps = {},
): DecodeSource {
  const shared = new DecodeThread({ clock, timeoutMs, ...worker })
  const burst = new DecodeBurst({ clock, start: startProcess })
  const decodeSource: DecodeSource = async (bytes, options) => {
    const request = { bytes, options }
    if (isSmall(bytes)) return (await burst.decode(request)) ?? decodeOrTellWhy(request, decode)
    if (bytes.byteLength < largeDocumentBytes) return shared.decode(request)
    const own = new DecodeThread({ clock, timeoutMs: largeTimeoutMs, ...worker })
    try {
      return await own.decode(request)
    } finally {
      own.end()
    }
  }
  return Object.assign(decodeSource, { expect: (texts: number) => burst.expect(texts) })
}

/** After so many small texts, each soon after the one before, a process is worth its start. */
const burstTexts = 64
const pauseMs = 250

/** Many small texts, one right after the other. */
class DecodeBurst {
  readonly #clock: Clock
  readonly #process: DecodeProcess
  #count = 0
  #hasFailed = false
  #lastMs = -Infinity

  constructor(options: DecodeProcessOptions) {
    this.#clock = options.clock
    this.#process = new DecodeProcess(options)
  }

  /** What is announced is counted when it comes: a process is only worth it earlier where there is enough at once. */
  expect(texts: number): void {
    if (texts > burstTexts) this.#add(burstTexts)
  }

  /** Undefined where the main thread is to decode it: it goes on while a process starts. */
  async decode(request: DecodeRequest): Promise<DecodeResult | undefined> {
    this.#add(1)
    if (this.#count <= burstTexts || this.#hasFailed || this.#process.isStarting) return undefined
    try {
      return await this.#process.decode(request)
    } catch {
      // The main thread can. Another process is tried in the next burst.
      this.#hasFailed = true
      return undefined
    }
  }

  #add(texts: number): void {
    const nowMs = this.#clock.monotonicMs()
    if (nowMs - this.#lastMs >= pauseMs) {
      this.#count = 0
      this.#hasFailed = false
    }
    this.#count += texts
    this.#lastMs = nowMs
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
