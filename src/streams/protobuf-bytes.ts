import { PoddError } from '../base/errors.ts'

/** How a field's value is written (Protocol Buffers, Encoding: Message Structure). */
export const wireTypes = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const

const twoTo32 = 2 ** 32

/** A varint has at most ten bytes of seven bits. */
const mostShift = 63

/** Reads one message's bytes from front to back. Throws PoddError INTERNAL for bytes that are not a message. */
export class ProtobufReader {
  readonly #bytes: Buffer
  #position = 0
  /** The low and the high half of the varint that was read last. */
  #low = 0
  #high = 0
  #end: number

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#end = bytes.length
  }

  get isAtEnd(): boolean {
    return this.#position >= this.#end
  }

  /** A field's number and wire type, or a length, as `uint32`. */
  uint32(): number {
    const byte = this.#bytes[this.#position] ?? 0
    // Most are of one byte.
    if (byte < 0x80 && this.#position < this.#end) {
      this.#position += 1
      return byte
    }
    this.#varint()
    return this.#low >>> 0
  }

  int32(): number {
    this.#varint()
    return this.#low | 0
  }

  bool(): boolean {
    this.#varint()
    return this.#low !== 0 || this.#high !== 0
  }

  /** Exact up to 2^53. */
  uint64(): number {
    this.#varint()
    return (this.#high >>> 0) * twoTo32 + (this.#low >>> 0)
  }

  /** Exact between -2^53 and 2^53. */
  int64(): number {
    this.#varint()
    return (this.#high | 0) * twoTo32 + (this.#low >>> 0)
  }

  double(): number {
    const start = this.#take(8)
    return this.#bytes.readDoubleLE(start)
  }

  string(): string {
    const length = this.uint32()
    const start = this.#take(length)
    return this.#bytes.toString('utf8', start, start + length)
  }

  /** A copy: the bytes around it are not kept alive. */
  bytes(): Buffer {
    const length = this.uint32()
    const start = this.#take(length)
    return Buffer.from(this.#bytes.subarray(start, start + length))
  }

  /**
   * Reads a length: until `leave`, the bytes end after that many, those of a message or of packed values. Returns where
   * they ended before, which `leave` is given.
   */
  enter(): number {
    const length = this.uint32()
    const start = this.#take(length)
    const outerEnd = this.#end
    this.#position = start
    this.#end = start + length
    return outerEnd
  }

  /** Skips what is left since `enter`. */
  leave(outerEnd: number): void {
    this.#position = this.#end
    this.#end = outerEnd
  }

  skip(wireType: number): void {
    if (wireType === wireTypes.varint) this.#varint()
    else if (wireType === wireTypes.bytes) this.#take(this.uint32())
    else if (wireType === wireTypes.fixed64) this.#take(8)
    else if (wireType === wireTypes.fixed32) this.#take(4)
    else throw new PoddError('INTERNAL', `the message has a field of wire type ${wireType}`)
  }

  /** Skips this many bytes; returns where they begin. */
  #take(count: number): number {
    const start = this.#position
    if (start + count > this.#end) throw new PoddError('INTERNAL', 'the message ends within a field')
    this.#position = start + count
    return start
  }

  #varint(): void {
    this.#low = 0
    this.#high = 0
    for (let shift = 0; shift <= mostShift; shift += 7) {
      const byte = this.#bytes[this.#take(1)] ?? 0
      const bits = byte & 0x7f
      if (shift < 32) this.#low |= bits << shift
      if (shift > 28) this.#high |= bits << (shift - 32)
      else if (shift === 28) this.#high |= bits >>> 4
      if (byte < 0x80) return
    }
    throw new PoddError('INTERNAL', 'the message has an integer of more than 64 bits')
  }
}

const firstBytes = 256

/** Writes one message. */
export class ProtobufWriter {
  #bytes = Buffer.allocUnsafe(firstBytes)
  #length = 0

  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** Also negative ones, as 64 bits. Exact between -2^53 and 2^53. */
  integer(value: number): void {
    this.#reserve(10)
    let low = value >>> 0
    let high = Math.floor(value / twoTo32) >>> 0
    while (high > 0 || low > 0x7f) {
      this.#bytes[this.#length++] = (low & 0x7f) | 0x80
      low = ((low >>> 7) | (high << 25)) >>> 0
      high >>>= 7
    }
    this.#bytes[this.#length++] = low
  }

  double(value: number): void {
    this.#reserve(8)
    this.#length = this.#bytes.writeDoubleLE(value, this.#length)
  }

  string(value: string): void {
    const length = Buffer.byteLength(value)
    this.integer(length)
    this.#reserve(length)
    this.#length += this.#bytes.write(value, this.#length)
  }

  bytes(value: Uint8Array): void {
    this.integer(value.length)
    this.#reserve(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
  }

  /** Writes what `write` writes, preceded by its length. */
  within(write: () => void): void {
    this.#reserve(1)
    this.#length += 1
    const start = this.#length
    write()
    const length = this.#length - start
    const prefixBytes = length < 0x80 ? 1 : Math.ceil(Math.log2(length + 1) / 7)
    if (prefixBytes > 1) {
      this.#reserve(prefixBytes - 1)
      this.#bytes.copyWithin(start + prefixBytes - 1, start, start + length)
    }
    this.#length = start - 1
    this.integer(length)
    this.#length += length
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#length + count))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}
