import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { PoddError } from '../../base/errors.ts'
import { AnswerParser } from './answer-parser.ts'
import type { AnswerSink } from './answer-parser.ts'

export interface Request {
  readonly method: string
  readonly path: string
  readonly body?: { readonly type: string; readonly text: string }
}

export interface Answer {
  readonly statusCode: number
  /** The body as it comes, once; throws what the connection fails with, or PoddError INTERRUPTED. */
  chunks(): AsyncGenerator<Buffer, void>
  /** All of the body; throws as `chunks`. */
  text(): Promise<string>
}

/**
 * Sends one request over a connection of its own to a unix socket; resolves with the answer once its head is there.
 * Rejects with what the connection failed with, and with PoddError INTERRUPTED once the signal is aborted, which ends the
 * connection also while the body comes.
 */
export function sendRequest(socketPath: string, request: Request, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const text = formatRequest(request)
    if (signal.aborted) throw new PoddError('INTERRUPTED', 'interrupted', { cause: signal.reason })
    const exchange = new Exchange(connect(socketPath), signal, resolve, reject)
    exchange.send(text)
  })
}

/** The socket is read no further while so much waits for its reader. */
const mostWaitingBytes = 256 * 1024

/** One request and its answer. */
class Exchange implements Answer, AnswerSink {
  statusCode = 0
  readonly #socket: Socket
  readonly #signal: AbortSignal
  readonly #resolve: (answer: Answer) => void
  readonly #reject: (error: unknown) => void
  readonly #parser = new AnswerParser(this)
  /** What has come of the body and nobody took. */
  #waiting: Buffer[] = []
  #waitingBytes = 0
  #isWhole = false
  #failure: { readonly error: unknown } | undefined
  /** Wakes who waits for more of the body. */
  #wake = (): void => {}

  constructor(
    socket: Socket,
    signal: AbortSignal,
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
  ) {
    this.#socket = socket
    this.#signal = signal
    this.#resolve = resolve
    this.#reject = reject
    socket.on('data', (bytes: Buffer) => this.#parse(bytes))
    socket.on('end', () => this.#parse(undefined))
    socket.on('error', (error) => this.#fail(error))
    signal.addEventListener('abort', this.#abort)
  }

  send(text: string): void {
    this.#socket.write(text)
  }

  head(statusCode: number): void {
    this.statusCode = statusCode
    this.#resolve(this)
  }

  body(bytes: Buffer): void {
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    if (this.#waitingBytes > mostWaitingBytes) this.#socket.pause()
    this.#wake()
  }

  end(): void {
    this.#isWhole = true
    this.#close()
  }

  async *chunks(): AsyncGenerator<Buffer, void> {
    try {
      for (;;) {
        const taken = this.#waiting
        this.#waiting = []
        this.#waitingBytes = 0
        yield* taken
        if (this.#waiting.length > 0) continue
        if (this.#failure !== undefined) throw this.#failure.error
        if (this.#isWhole) return
        await this.#more()
      }
    } finally {
      this.#close()
    }
  }

  async text(): Promise<string> {
    const all: Buffer[] = []
    for await (const chunk of this.chunks()) all.push(chunk)
    return Buffer.concat(all).toString('utf8')
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
      if (this.#socket.isPaused()) this.#socket.resume()
    })
  }

  /** Undefined where the connection has ended. */
  #parse(bytes: Buffer | undefined): void {
    try {
      if (bytes === undefined) this.#parser.close()
      else this.#parser.push(bytes)
    } catch (error) {
      this.#fail(error)
    }
  }

  readonly #abort = (): void =>
    this.#fail(new PoddError('INTERRUPTED', 'interrupted', { cause: this.#signal.reason }))

  #fail(error: unknown): void {
    if (this.#isWhole || this.#failure !== undefined) return
    this.#failure = { error }
    this.#reject(error)
    this.#close()
  }

  #close(): void {
    this.#signal.removeEventListener('abort', this.#abort)
    this.#socket.destroy()
    this.#wake()
  }
}

/** Throws Error where the path is none that HTTP can carry. */
function formatRequest({ method, path, body }: Request): string {
  if (!/^[\u0021-\u007E]+$/u.test(path)) throw new Error(`no path of a request: ${JSON.stringify(path)}`)
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: podd', 'Connection: close']
  if (body !== undefined) lines.push(`Content-Type: ${body.type}`)
  if (method !== 'GET') lines.push(`Content-Length: ${Buffer.byteLength(body?.text ?? '')}`)
  return `${lines.join('\r\n')}\r\n\r\n${body?.text ?? ''}`
}
