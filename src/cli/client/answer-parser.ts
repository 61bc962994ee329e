/** What comes of an answer, in the order in which it comes. */
export interface AnswerSink {
  /** The final status; interim answers (1xx) are left out. */
  head(statusCode: number): void
  body(bytes: Buffer): void
  end(): void
}

/** A status line with headers, or one line of a chunked body, longer than this is no answer of podd's. */
const mostHeadBytes = 64 * 1024
const mostLineBytes = 1024

/**
 * Reads one HTTP/1.1 answer as its bytes arrive (RFC 9112): a body that has a length, is chunked, or goes on until the
 * connection ends. It is for podd's own socket, where both ends come from one package; Node's client takes 10 ms to load
 * and to make its first request.
 */
export class AnswerParser {
  readonly #sink: AnswerSink
  #state: 'head' | 'length' | 'untilClosed' | 'chunkSize' | 'chunk' | 'chunkEnd' | 'trailers' | 'done' =
    'head'
  /** What came of a line or of the head, which is not whole yet. */
  #pending: Buffer = Buffer.alloc(0)
  /** How much of the body, or of the chunk, is still to come. */
  #left = 0

  constructor(sink: AnswerSink) {
    this.#sink = sink
  }

  /** Takes what arrived; throws Error where it is no HTTP answer. What follows the answer is ignored. */
  push(bytes: Buffer): void {
    let rest = bytes
    while (rest.length > 0 && this.#state !== 'done') rest = this.#take(rest)
  }

  /** The connection has ended; throws Error where the answer is not whole. */
  close(): void {
    if (this.#state === 'untilClosed') this.#finish()
    if (this.#state !== 'done') throw new Error('it ended before the answer did')
  }

  #take(bytes: Buffer): Buffer {
    switch (this.#state) {
      case 'head':
        return this.#until('\r\n\r\n', mostHeadBytes, bytes, (head) => this.#readHead(head))
      case 'chunkSize':
        return this.#until('\r\n', mostLineBytes, bytes, (line) => this.#readChunkSize(line))
      case 'chunkEnd':
        return this.#until('\r\n', mostLineBytes, bytes, () => {
          this.#state = 'chunkSize'
        })
      case 'trailers':
        return this.#until('\r\n', mostLineBytes, bytes, (line) => {
          if (line === '') this.#finish()
        })
      case 'length':
      case 'chunk':
        return this.#takeBody(bytes)
      case 'untilClosed':
        this.#sink.body(bytes)
        return noBytes
      case 'done':
        return noBytes
    }
  }

  #takeBody(bytes: Buffer): Buffer {
    const body = bytes.subarray(0, this.#left)
    this.#left -= body.length
    this.#sink.body(body)
    if (this.#left === 0) {
      if (this.#state === 'chunk') this.#state = 'chunkEnd'
      else this.#finish()
    }
    return bytes.subarray(body.length)
  }

  /** Hands over what stands before `mark`, once that has come; gives what follows it. */
  #until(mark: string, mostBytes: number, bytes: Buffer, found: (text: string) => void): Buffer {
    const all = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes])
    const at = all.indexOf(mark, Math.max(0, this.#pending.length - mark.length))
    if (at === -1 ? all.length > mostBytes : at > mostBytes) throw new Error('it does not carry HTTP')
    this.#pending = at === -1 ? all : noBytes
    if (at === -1) return noBytes
    found(all.toString('latin1', 0, at))
    return all.subarray(at + mark.length)
  }

  #readHead(head: string): void {
    const [statusLine = '', ...lines] = head.split('\r\n')
    const statusCode = Number(/^HTTP\/1\.[01] ([1-9]\d\d)(?: |$)/u.exec(statusLine)?.[1])
    if (Number.isNaN(statusCode)) throw new Error('it does not carry HTTP')
    if (statusCode < 200) return
    let length: number | undefined
    let isChunked = false
    for (const line of lines) {
      const [, name = '', value = ''] = /^([^:]+):[ \t]*(.*?)[ \t]*$/u.exec(line) ?? []
      const lower = name.toLowerCase()
      if (lower === 'transfer-encoding') isChunked = value.toLowerCase() === 'chunked'
      else if (lower === 'content-length') length = parseLength(value, /^\d{1,15}$/u, 10)
    }
    this.#sink.head(statusCode)
    this.#left = length ?? 0
    if (isChunked) this.#state = 'chunkSize'
    else if (length === undefined && statusCode !== 204 && statusCode !== 304) this.#state = 'untilClosed'
    else if (this.#left === 0) this.#finish()
    else this.#state = 'length'
  }

  #readChunkSize(line: string): void {
    this.#left = parseLength(line.split(';')[0]?.trim() ?? '', /^[\da-f]{1,12}$/iu, 16)
    this.#state = this.#left === 0 ? 'trailers' : 'chunk'
  }

  #finish(): void {
    this.#state = 'done'
    this.#sink.end()
  }
}

const noBytes = Buffer.alloc(0)

function parseLength(text: string, form: RegExp, base: number): number {
  if (!form.test(text)) throw new Error('it does not carry HTTP')
  return Number.parseInt(text, base)
}
