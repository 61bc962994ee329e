import { ApiError } from '../requests/api-error.ts'

/** A field as it stands on the wire: a number, eight or four bytes, or bytes of a length of their own. */
export interface WireField {
  readonly id: number
  readonly value: bigint | Uint8Array
}

/** The fields of one message, in their order. Throws ApiError BadRequest for bytes that are none. */
export function* readFields(bytes: Uint8Array): Generator<WireField, void> {
  const reader = new Reader(bytes)
  while (!reader.isAtEnd) {
    const tag = Number(reader.varint())
    const id = Math.floor(tag / 8)
    switch (tag % 8) {
      case 0:
        yield { id, value: reader.varint() }
        break
      case 1:
        yield { id, value: reader.take(8) }
        break
      case 2:
        yield { id, value: reader.take(Number(reader.varint())) }
        break
      case 5:
        yield { id, value: reader.take(4) }
        break
      default:
        throw malformed()
    }
  }
}

export function malformed(): ApiError {
  return new ApiError(400, 'the body of the request is no well-formed protobuf message')
}

class Reader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  /** Of 64 bits, unsigned. */
  varint(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at]
      if (byte === undefined) throw malformed()
      this.#at += 1
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw malformed()
  }

  take(length: number): Uint8Array {
    const end = this.#at + length
    if (!(end <= this.#bytes.length)) throw malformed()
    const taken = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return taken
  }
}
