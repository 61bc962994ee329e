import { createInflate } from 'node:zlib'
import type { Inflate } from 'node:zlib'
import { PoddError } from '../base/errors.ts'

const flush = Buffer.from([0, 0, 0, 0xff, 0xff])

export type SpdyHeaders = Readonly<Record<string, string>>

/** The largest uncompressed block, in bytes: it holds a few names of streams and ports. */
const mostBlockBytes = 16 * 1024

/** The words of the dictionary of SPDY/3 (draft-mbelshe-httpbis-spdy-00, section 2.6.10.1), each with its length before it. */
const words =
  'options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow ' +
  'authorization cache-control connection content-base content-encoding content-language content-length ' +
  'content-location content-md5 content-range content-type date etag expect expires from host if-match ' +
  'if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma ' +
  'proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade ' +
  'user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie ' +
  'keep-alive origin'

/** The rest of the dictionary, without lengths. */
const tail =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505' +
  '203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized' +
  '403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable' +
  'Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT' +
  'chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,' +
  'text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.'

export function spdyDictionary(): Buffer {
  const parts = words.split(' ').map((word) => lengthAndText(word.replace('_', ' ')))
  return Buffer.concat([...parts, Buffer.from(tail)])
}

/** Decompresses the header blocks of one direction of a connection, which are one zlib stream. */
export class HeaderReader {
  readonly #inflate: Inflate
  #unpacked: Buffer[] = []
  #bytes = 0
  #fail: (error: Error) => void = () => {}

  constructor() {
    this.#inflate = createInflate({ dictionary: spdyDictionary() })
    this.#inflate.on('error', (error) => this.#fail(error))
    this.#inflate.on('data', (chunk: Buffer) => {
      this.#unpacked.push(chunk)
      this.#bytes += chunk.length
      if (this.#bytes > mostBlockBytes) this.#fail(badHeaders('a header block is too large'))
    })
  }

  /** One block at a time. Throws PoddError BAD_FRAME. */
  async read(block: Uint8Array): Promise<SpdyHeaders> {
    this.#unpacked = []
    this.#bytes = 0
    await new Promise<void>((resolve, reject) => {
      this.#fail = (error) => reject(error)
      this.#inflate.write(block, (error) => (error ? reject(error) : resolve()))
    }).catch((error: unknown) => {
      throw badHeaders('a header block can not be unpacked', error)
    })
    return parseHeaders(Buffer.concat(this.#unpacked))
  }

  close(): void {
    this.#fail(badHeaders('the connection has ended'))
    this.#inflate.destroy()
  }
}

/** Encodes the header blocks of one direction as stored blocks, which need neither the dictionary nor state. */
export class HeaderWriter {
  #isFirst = true

  write(headers: SpdyHeaders): Buffer {
    const pairs = Object.entries(headers)
    const plain = Buffer.concat([
      uint32(pairs.length),
      ...pairs.flatMap(([name, value]) => [lengthAndText(name), lengthAndText(value)]),
    ])
    const stored = Buffer.alloc(5)
    stored.writeUInt16LE(plain.length, 1)
    stored.writeUInt16LE(~plain.length & 0xffff, 3)
    // The zlib header: deflate, window of 32 KiB, no dictionary.
    const head = this.#isFirst ? Buffer.from([0x78, 0x01]) : Buffer.alloc(0)
    this.#isFirst = false
    // An empty block flushes the reader, as zlib's sync flush does; Go's reader waits for it.
    return Buffer.concat([head, stored, plain, flush])
  }
}

function parseHeaders(bytes: Buffer): SpdyHeaders {
  let at = 0
  const count = (): number => {
    if (at + 4 > bytes.length) throw badHeaders('a header block is cut short')
    at += 4
    return bytes.readUInt32BE(at - 4)
  }
  const text = (): string => {
    const length = count()
    if (at + length > bytes.length) throw badHeaders('a header block is cut short')
    at += length
    return bytes.toString('utf8', at - length, at)
  }
  const headers = new Map<string, string>()
  for (let left = count(); left > 0; left -= 1) {
    const name = text().toLowerCase()
    headers.set(name, text())
  }
  return Object.fromEntries(headers)
}

function lengthAndText(text: string): Buffer {
  return Buffer.concat([uint32(Buffer.byteLength(text)), Buffer.from(text)])
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function badHeaders(what: string, cause?: unknown): PoddError {
  return new PoddError('BAD_FRAME', `the data on the connection violates SPDY/3.1: ${what}`, { cause })
}
