import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Clock, Timer } from '../base/clock.ts'
import type { DecodeResult } from '../pod/decode/decode-documents.ts'
import { decodeWorkerUrl, DecodeUnavailable } from './decode-thread.ts'
import type { DecodeRequest } from './decode-thread.ts'

/** A text for the process, and what came of it. */
export interface NumberedRequest {
  readonly id: number
  readonly request: DecodeRequest
}
export interface NumberedResult {
  readonly id: number
  readonly result: DecodeResult
}

/** Throws what the system throws. */
export type StartProcess = () => ChildProcess

export interface DecodeProcessOptions {
  readonly clock: Clock
  readonly start: StartProcess
}

interface Waiting {
  readonly resolve: (result: DecodeResult) => void
  readonly reject: (error: DecodeUnavailable) => void
}

/** How long the process may take from one answer to the next. */
const timeoutMs = 10_000
/** How long an idle process waits for the next text. */
const idleMs = 1000

/**
 * A process that decodes many small texts. It starts with the first one and ends when it has been idle for a second, and
 * with the channel to podd. It compiles hot functions, from which podd's own settings keep V8 for the memory
 * that it takes: that memory goes with the process.
 */
export class DecodeProcess {
  readonly #options: DecodeProcessOptions
  readonly #waiting = new Map<number, Waiting>()
  #child: ChildProcess | undefined
  #timer: Timer | undefined
  #lastId = 0
  #hasAnswered = false

  constructor(options: DecodeProcessOptions) {
    this.#options = options
  }

  /** Whether it was given its first text and hasn't answered yet. */
  get isStarting(): boolean {
    return this.#child !== undefined && !this.#hasAnswered
  }

  /** Decodes one text; a bad text is a result, not an error. @throws DecodeUnavailable where the process fails */
  async decode(request: DecodeRequest): Promise<DecodeResult> {
    const child = (this.#child ??= this.#start())
    const id = (this.#lastId += 1)
    const message: NumberedRequest = { id, request }
    const { promise, resolve, reject } = Promise.withResolvers<DecodeResult>()
    if (this.#waiting.size === 0) child.channel?.ref()
    this.#waiting.set(id, { resolve, reject })
    this.#await()
    child.send(message, (error) => {
      if (error !== null) this.#end(child, error)
    })
    return promise
  }

  #start(): ChildProcess {
    this.#hasAnswered = false
    let child: ChildProcess
    try {
      child = this.#options.start()
    } catch (error) {
      throw new DecodeUnavailable('no process can be started', error)
    }
    child.on('message', (message: NumberedResult) => this.#take(child, message))
    child.on('error', (error) => this.#end(child, error))
    child.on('exit', () => this.#end(child))
    // An idle process must not keep podd alive.
    child.unref()
    return child
  }

  #take(child: ChildProcess, { id, result }: NumberedResult): void {
    if (this.#child !== child) return
    this.#hasAnswered = true
    this.#waiting.get(id)?.resolve(result)
    this.#waiting.delete(id)
    if (this.#waiting.size === 0) child.channel?.unref()
    this.#await()
  }

  /** Waits for the next answer, or for the next text. */
  #await(): void {
    const { clock } = this.#options
    const child = this.#child
    this.#timer?.cancel()
    this.#timer = clock.startTimer(this.#waiting.size === 0 ? idleMs : timeoutMs, () => this.#end(child))
  }

  #end(child: ChildProcess | undefined, cause?: unknown): void {
    child?.kill('SIGKILL')
    if (this.#child !== child) return
    this.#child = undefined
    this.#timer?.cancel()
    for (const { reject } of this.#waiting.values())
      reject(new DecodeUnavailable('the process that decodes ended', cause))
    this.#waiting.clear()
  }
}

/** V8's Turbofan compiles what is hot for longer than this process lives; its young generation is large enough for many texts. */
const settings = ['--no-opt', '--min-semi-space-size=16']

export function startDecodeProcess(file = decodeWorkerUrl()): ChildProcess {
  return spawn(process.execPath, [...settings, fileURLToPath(file)], {
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    // As between threads: with bytes, and with values that are undefined.
    serialization: 'advanced',
    env: {},
  })
}
