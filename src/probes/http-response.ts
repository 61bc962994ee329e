import { maxOutputBytes } from './probe-outcome.ts'

/** A response as far as it was read. */
export interface ReadResponse {
  readonly status: number
  readonly location: string | undefined
  readonly body: string
}

/** `invalid`: what came is no HTTP; the reason is in Go's words. */
export type ResponseProgress =
  | { readonly kind: 'more' }
  | { readonly kind: 'done'; readonly response: ReadResponse }
  | { readonly kind: 'invalid'; readonly message: string }

/** Go reads ten times as much. */
const maxHeadBytes = 1024 * 1024
/** Of a chunk's size, with what may stand behind it. */
const maxChunkLineBytes = 4096

const more: ResponseProgress = { kind: 'more' }

type Body =
  /** None has begun. */
  | { readonly kind: 'head' }
  | { readonly kind: 'rest' }
  | { readonly kind: 'length'; leftBytes: number }
  /** `size`: its line comes next; `end`: the line break behind a chunk does. */
  | { readonly kind: 'chunked'; next: 'size' | 'data' | 'end'; leftBytes: number }

/**
 * Reads one HTTP/1 response to a GET, byte by byte as it comes: its status, where it leads, and the first 10 KiB of its body.
 * What isn't HTTP is told apart as Go's client does (`net/http/response.go` ReadResponse, `net/textproto/reader.go`).
 */
export class HttpResponseReader {
  #pending: Buffer = Buffer.alloc(0)
  #body: Body = { kind: 'head' }
  #status = 0
  #location: string | undefined
  readonly #chunks: Buffer[] = []
  #sizeBytes = 0

  /** The head was read. */
  get hasHead(): boolean {
    return this.#body.kind !== 'head'
  }

  /** Takes what has come; not to be called after anything but `more`. */
  push(bytes: Buffer): ResponseProgress {
    this.#pending = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes])
    if (this.#body.kind === 'head') {
      const progress = this.#readHead()
      if (progress !== undefined) return progress
    }
    return this.#readBody()
  }

  /** The connection was closed. */
  end(): ResponseProgress {
    if (this.#body.kind === 'rest') return this.#done()
    const isEmpty = this.#body.kind === 'head' && this.#pending.length === 0
    return { kind: 'invalid', message: isEmpty ? 'EOF' : 'unexpected EOF' }
  }

  /** Undefined where the body comes next. */
  #readHead(): ResponseProgress | undefined {
    for (;;) {
      const text = this.#pending.toString('latin1', 0, Math.min(this.#pending.length, maxHeadBytes))
      const firstEnd = text.indexOf('\n')
      if (firstEnd >= 0 || text.length === maxHeadBytes) {
        const invalid = checkStatusLine(trimLine(text.slice(0, firstEnd)))
        if (invalid !== undefined) return broken(invalid)
      }
      const end = /\r?\n\r?\n/u.exec(text)
      if (end === null) return text.length < maxHeadBytes ? more : tooLarge()
      this.#pending = this.#pending.subarray(end.index + end[0].length)
      const [statusLine = '', ...lines] = text.slice(0, end.index).split('\n').map(trimLine)
      this.#status = Number(/^\S+ +(\d{3})/u.exec(statusLine)?.[1])
      // What a server says before its answer.
      if (this.#status >= 100 && this.#status < 200 && this.#status !== 101) continue
      return this.#readFields(lines)
    }
  }

  #readFields(lines: readonly string[]): ResponseProgress | undefined {
    let length: string | undefined
    let coding: string | undefined
    for (const line of lines) {
      const colon = line.indexOf(':')
      // A line that goes on belongs to the one before, and is of no interest.
      if (colon < 0 && !/^[ \t]/u.test(line)) return broken(`malformed MIME header line: ${line}`)
      const name = line.slice(0, colon).toLowerCase()
      if (name === 'location') this.#location ??= Buffer.from(valueOf(line, colon), 'latin1').toString()
      else if (name === 'content-length') length ??= valueOf(line, colon)
      else if (name === 'transfer-encoding') coding ??= valueOf(line, colon)
    }
    if (coding !== undefined && coding.toLowerCase() !== 'chunked')
      return broken(`unsupported transfer encoding: ${JSON.stringify(coding)}`)
    if (length !== undefined && coding === undefined && !/^\d+$/u.test(length))
      return broken(`bad Content-Length ${JSON.stringify(length)}`)
    const hasNoBody = this.#status < 200 || this.#status === 204 || this.#status === 304
    if (hasNoBody) this.#body = { kind: 'length', leftBytes: 0 }
    else if (coding !== undefined) this.#body = { kind: 'chunked', next: 'size', leftBytes: 0 }
    else if (length !== undefined) this.#body = { kind: 'length', leftBytes: Number(length) }
    else this.#body = { kind: 'rest' }
    return undefined
  }

  #readBody(): ResponseProgress {
    const body = this.#body
    if (body.kind === 'chunked') return this.#readChunks(body)
    if (body.kind === 'length') {
      this.#take(Math.min(body.leftBytes, this.#pending.length), body)
      return body.leftBytes === 0 || this.#isEnough ? this.#done() : more
    }
    this.#take(this.#pending.length)
    return this.#isEnough ? this.#done() : more
  }

  #readChunks(body: Extract<Body, { readonly kind: 'chunked' }>): ResponseProgress {
    for (;;) {
      if (body.next === 'data') {
        this.#take(Math.min(body.leftBytes, this.#pending.length), body)
        if (this.#isEnough) return this.#done()
        if (body.leftBytes > 0) return more
        body.next = 'end'
      }
      const end = this.#pending.indexOf('\n')
      if (end < 0 && this.#pending.length <= maxChunkLineBytes) return more
      if (end < 0) return { kind: 'invalid', message: 'http: chunk header too long' }
      const line = trimLine(this.#pending.toString('latin1', 0, end))
      this.#pending = this.#pending.subarray(end + 1)
      if (body.next === 'end') {
        if (line !== '') return { kind: 'invalid', message: 'malformed chunked encoding' }
        body.next = 'size'
        continue
      }
      const size = /^([0-9a-f]{1,12})[ \t]*(?:;.*)?$/iu.exec(line)?.[1]
      if (size === undefined) return { kind: 'invalid', message: 'invalid byte in chunk length' }
      body.leftBytes = Number.parseInt(size, 16)
      // What follows the last chunk is of no interest.
      if (body.leftBytes === 0) return this.#done()
      body.next = 'data'
    }
  }

  get #isEnough(): boolean {
    return this.#sizeBytes >= maxOutputBytes
  }

  #take(bytes: number, from?: { leftBytes: number }): void {
    if (from !== undefined) from.leftBytes -= bytes
    if (bytes === 0) return
    this.#chunks.push(this.#pending.subarray(0, bytes))
    this.#sizeBytes += bytes
    this.#pending = this.#pending.subarray(bytes)
  }

  #done(): ResponseProgress {
    const bytes = Buffer.concat(this.#chunks)
    const body = bytes.toString('utf8', 0, Math.min(this.#sizeBytes, maxOutputBytes))
    return { kind: 'done', response: { status: this.#status, location: this.#location, body } }
  }
}

function checkStatusLine(line: string): string | undefined {
  const [, version, code] = /^(\S+) +(\S*)/u.exec(line) ?? []
  if (version === undefined || code === undefined) return `malformed HTTP response ${JSON.stringify(line)}`
  if (!/^\d{3}$/u.test(code)) return `malformed HTTP status code ${JSON.stringify(code)}`
  return /^HTTP\/\d\.\d$/u.test(version) ? undefined : `malformed HTTP version ${JSON.stringify(version)}`
}

function trimLine(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line
}

function valueOf(line: string, colon: number): string {
  return line.slice(colon + 1).trim()
}

function broken(reason: string): ResponseProgress {
  return { kind: 'invalid', message: `net/http: HTTP/1.x transport connection broken: ${reason}` }
}

function tooLarge(): ResponseProgress {
  return broken(`net/http: server response headers exceeded ${maxHeadBytes} bytes; aborted`)
}
