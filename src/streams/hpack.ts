import { Http2Error } from './http2-frames.ts'
import { decodeHuffman } from './huffman.ts'

export type HeaderList = readonly (readonly [name: string, value: string])[]

/** RFC 7541, appendix A. */
const staticTable: HeaderList = [
  [':authority', ''],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset', ''],
  ['accept-encoding', 'gzip, deflate'],
  ['accept-language', ''],
  ['accept-ranges', ''],
  ['accept', ''],
  ['access-control-allow-origin', ''],
  ['age', ''],
  ['allow', ''],
  ['authorization', ''],
  ['cache-control', ''],
  ['content-disposition', ''],
  ['content-encoding', ''],
  ['content-language', ''],
  ['content-length', ''],
  ['content-location', ''],
  ['content-range', ''],
  ['content-type', ''],
  ['cookie', ''],
  ['date', ''],
  ['etag', ''],
  ['expect', ''],
  ['expires', ''],
  ['from', ''],
  ['host', ''],
  ['if-match', ''],
  ['if-modified-since', ''],
  ['if-none-match', ''],
  ['if-range', ''],
  ['if-unmodified-since', ''],
  ['last-modified', ''],
  ['link', ''],
  ['location', ''],
  ['max-forwards', ''],
  ['proxy-authenticate', ''],
  ['proxy-authorization', ''],
  ['range', ''],
  ['referer', ''],
  ['refresh', ''],
  ['retry-after', ''],
  ['server', ''],
  ['set-cookie', ''],
  ['strict-transport-security', ''],
  ['transfer-encoding', ''],
  ['user-agent', ''],
  ['vary', ''],
  ['via', ''],
  ['www-authenticate', ''],
]

/** The default of SETTINGS_HEADER_TABLE_SIZE, which podd doesn't change. */
const mostTableBytes = 4096
/** The size of an entry beyond its name and value (RFC 7541, 4.1). */
const entryOverheadBytes = 32

/** Reads the header blocks of one connection, in order (RFC 7541). After an unreadable block it can't read any more. */
export class HeaderDecoder {
  readonly #recent: (readonly [name: string, value: string])[] = []
  #recentBytes = 0
  #limitBytes = mostTableBytes

  /** @throws Http2Error */
  decode(block: Uint8Array): HeaderList {
    const bytes = new BlockReader(block)
    const headers: (readonly [string, string])[] = []
    while (!bytes.isAtEnd) {
      const first = bytes.peek()
      if (first >= 0x80) headers.push(this.#entry(bytes.integer(7)))
      else if (first >= 0x40) {
        const header = this.#literal(bytes, 6)
        headers.push(header)
        this.#remember(header)
      } else if (first >= 0x20) this.#resize(bytes.integer(5))
      else headers.push(this.#literal(bytes, 4))
    }
    return headers
  }

  #literal(bytes: BlockReader, indexBits: number): readonly [string, string] {
    const index = bytes.integer(indexBits)
    const name = index === 0 ? bytes.text() : this.#entry(index)[0]
    return [name, bytes.text()]
  }

  #entry(index: number): readonly [string, string] {
    const entry =
      index > staticTable.length ? this.#recent[index - staticTable.length - 1] : staticTable[index - 1]
    if (entry === undefined) throw new Http2Error(`no header has the index ${index}`)
    return entry
  }

  #remember(header: readonly [string, string]): void {
    this.#recent.unshift(header)
    this.#recentBytes += sizeOf(header)
    this.#evict()
  }

  #resize(limitBytes: number): void {
    if (limitBytes > mostTableBytes) throw new Http2Error('the table of headers is too large')
    this.#limitBytes = limitBytes
    this.#evict()
  }

  #evict(): void {
    while (this.#recentBytes > this.#limitBytes) {
      const oldest = this.#recent.pop()
      if (oldest === undefined) return
      this.#recentBytes -= sizeOf(oldest)
    }
  }
}

function sizeOf([name, value]: readonly [string, string]): number {
  return name.length + value.length + entryOverheadBytes
}

class BlockReader {
  readonly #bytes: Uint8Array
  #position = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#bytes.length
  }

  peek(): number {
    const byte = this.#bytes[this.#position]
    if (byte === undefined) throw new Http2Error('the header block ends within a header')
    return byte
  }

  /** An integer in the last bits of a byte, and in more bytes where these don't suffice (RFC 7541, 5.1). */
  integer(bits: number): number {
    const most = 2 ** bits - 1
    const first = this.#next() & most
    if (first < most) return first
    let value = most
    for (let shift = 0; shift <= 21; shift += 7) {
      const byte = this.#next()
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
    throw new Http2Error('the header block has a number that is too large')
  }

  text(): string {
    const isCoded = this.peek() >= 0x80
    const length = this.integer(7)
    const end = this.#position + length
    if (end > this.#bytes.length) throw new Http2Error('the header block ends within a text')
    const bytes = this.#bytes.subarray(this.#position, end)
    this.#position = end
    const text = isCoded ? decodeHuffman(bytes) : Buffer.from(bytes).toString('latin1')
    if (text === undefined) throw new Http2Error('the header block has a text in an unknown code')
    return text
  }

  #next(): number {
    const byte = this.peek()
    this.#position += 1
    return byte
  }
}

/** A header block of literal names and values, without references to a table. */
export function encodeHeaders(headers: HeaderList): Buffer {
  const parts: Buffer[] = []
  for (const [name, value] of headers) parts.push(Buffer.from([0]), ...textParts(name), ...textParts(value))
  return Buffer.concat(parts)
}

function textParts(text: string): Buffer[] {
  const bytes = Buffer.from(text, 'latin1')
  const prefix: number[] = []
  let rest = bytes.length
  if (rest < 0x7f) prefix.push(rest)
  else {
    prefix.push(0x7f)
    for (rest -= 0x7f; rest > 0x7f; rest >>>= 7) prefix.push((rest & 0x7f) | 0x80)
    prefix.push(rest)
  }
  return [Buffer.from(prefix), bytes]
}
