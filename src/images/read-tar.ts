import { createHash } from 'node:crypto'
import type { ByteSource } from './byte-source.ts'

/** A file in a tar archive with its requested content. */
export interface TarFile {
  readonly path: string
  readonly data: Buffer
}

/** The result of reading a tar archive. */
export type TarEnd =
  /** With its end mark. */
  | { readonly kind: 'complete' }
  /** Between two entries, without an end mark: some programs write none. */
  | { readonly kind: 'unmarked' }
  /** In the middle of an entry. */
  | { readonly kind: 'truncated' }
  /** It is no tar, or not a well-formed one, or a wanted file is too large. */
  | { readonly kind: 'malformed'; readonly message: string }

const blockBytes = 512
/** Of headers that hold long names. */
const mostHeaderBytes = 1024 * 1024

/**
 * Walks through a tar archive (ustar, GNU, pax), checks the digests of files, and hands over those that `wants` names,
 * each of at most `mostBytes`; whatever the size of the others, only these are held in memory. Throws what the source
 * throws.
 */
export async function readTar(
  source: ByteSource,
  options: {
    readonly wants: (path: string) => boolean
    /** The expected SHA-256 of a file, in hex; undefined for any. */
    readonly digestOf: (path: string) => string | undefined
    readonly mostBytes: number
    readonly onFile: (file: TarFile) => void
  },
): Promise<TarEnd> {
  let longPath: string | undefined
  let longSize: number | undefined
  for (let isFirst = true; ; isFirst = false) {
    const header = await source.read(blockBytes)
    if (header.length === 0) return isFirst ? { kind: 'truncated' } : { kind: 'unmarked' }
    if (header.length < blockBytes) return { kind: 'truncated' }
    if (header.every((byte) => byte === 0))
      return isFirst ? { kind: 'malformed', message: 'it is not a tar archive' } : { kind: 'complete' }
    if (!hasChecksum(header)) {
      const message = isFirst ? 'it is not a tar archive' : 'an entry of the tar archive has a wrong checksum'
      return { kind: 'malformed', message }
    }
    const type = String.fromCharCode(header[156] ?? 0)
    const sizeBytes =
      type === 'x' || type === 'L' ? readNumber(header, 124, 12) : (longSize ?? readNumber(header, 124, 12))
    if (!(sizeBytes >= 0))
      return { kind: 'malformed', message: 'an entry of the tar archive has no valid size' }
    const paddingBytes = (blockBytes - (sizeBytes % blockBytes)) % blockBytes
    const path = longPath ?? readPath(header)
    const isLong = type === 'x' || type === 'L'
    const isWanted = (type === '0' || type === '\0') && options.wants(path)
    if (!isLong) {
      longPath = undefined
      longSize = undefined
    }
    const digest = type === '0' || type === '\0' ? options.digestOf(path) : undefined
    if (digest !== undefined) {
      const found = await hash(source, sizeBytes)
      if (found === undefined || !(await source.skip(paddingBytes))) return { kind: 'truncated' }
      if (found !== digest)
        return { kind: 'malformed', message: `${path} is damaged: its digest is sha256:${found}` }
      continue
    }
    if (!isLong && !isWanted) {
      if (!(await source.skip(sizeBytes + paddingBytes))) return { kind: 'truncated' }
      continue
    }
    if (sizeBytes > (isLong ? mostHeaderBytes : options.mostBytes))
      return {
        kind: 'malformed',
        message: `${isLong ? 'a header' : path} of ${sizeBytes} bytes is too large`,
      }
    const data = await source.read(sizeBytes)
    if (data.length < sizeBytes || !(await source.skip(paddingBytes))) return { kind: 'truncated' }
    if (type === 'L') longPath = textUntilZero(data)
    else if (type === 'x') {
      const records = parsePax(data)
      const size = records?.get('size')
      longSize = size === undefined ? undefined : readDecimal(size)
      if (records === undefined || (size !== undefined && longSize === undefined))
        return { kind: 'malformed', message: 'an extended header of the tar archive is not valid' }
      longPath = records.get('path') ?? longPath
    } else options.onFile({ path, data })
  }
}

const hashedBytes = 1024 * 1024

/** Of the next bytes; undefined where the source ends before so many. */
async function hash(source: ByteSource, length: number): Promise<string | undefined> {
  const digest = createHash('sha256')
  for (let left = length; left > 0;) {
    const part = await source.read(Math.min(left, hashedBytes))
    if (part.length === 0) return undefined
    digest.update(part)
    left -= part.length
  }
  return digest.digest('hex')
}

function readPath(header: Buffer): string {
  const name = textUntilZero(header.subarray(0, 100))
  const isUstar = header.toString('latin1', 257, 262) === 'ustar' && header[262] === 0
  const prefix = isUstar ? textUntilZero(header.subarray(345, 500)) : ''
  return prefix === '' ? name : `${prefix}/${name}`
}

/** Octal digits, or, where the first bit is set, a binary number; NaN for any other, and for a negative one. */
function readNumber(header: Buffer, at: number, length: number): number {
  const field = header.subarray(at, at + length)
  if (((field[0] ?? 0) & 0x80) !== 0) {
    if (((field[0] ?? 0) & 0x40) !== 0) return Number.NaN
    let value = (field[0] ?? 0) & 0x7f
    for (const byte of field.subarray(1)) value = value * 256 + byte
    return Number.isSafeInteger(value) ? value : Number.NaN
  }
  const text = textUntilZero(field).trim()
  return /^[0-7]*$/u.test(text) ? Number.parseInt(text === '' ? '0' : text, 8) : Number.NaN
}

/** The sum of all bytes, the checksum's own counted as spaces. */
function hasChecksum(header: Buffer): boolean {
  let sum = 8 * 0x20
  for (const [index, byte] of header.entries()) if (index < 148 || index >= 156) sum += byte
  return readNumber(header, 148, 8) === sum
}

/** `LENGTH KEY=VALUE\n`, many times; the length counts all of it. Undefined where it is something else. */
function parsePax(data: Buffer): ReadonlyMap<string, string> | undefined {
  const records = new Map<string, string>()
  for (let at = 0; at < data.length;) {
    const space = data.indexOf(0x20, at)
    const length = space < 0 ? undefined : readDecimal(data.toString('latin1', at, space))
    if (length === undefined || at + length > data.length) return undefined
    const end = at + length - 1
    if (end <= space || data[end] !== 0x0a) return undefined
    const text = data.toString('utf8', space + 1, end)
    const equals = text.indexOf('=')
    if (equals <= 0) return undefined
    // An empty value keeps the value of the entry's own header.
    if (equals < text.length - 1) records.set(text.slice(0, equals), text.slice(equals + 1))
    at = end + 1
  }
  return records
}

function readDecimal(text: string): number | undefined {
  const value = /^\d{1,16}$/u.test(text) ? Number(text) : undefined
  return Number.isSafeInteger(value) ? value : undefined
}

function textUntilZero(bytes: Buffer): string {
  const end = bytes.indexOf(0)
  return bytes.toString('utf8', 0, end < 0 ? bytes.length : end)
}
