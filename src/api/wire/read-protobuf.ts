import { PoddError } from '../../base/errors.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'

/** Name, type, and `*` for a pointer, `[]` for a list, `{}` for a map, `.` for what is inlined in JSON. */
type FieldRow = readonly string[]

/** See proto/generate-kubernetes.ts. A type is a scalar's, a word that is treated below, or a message's place. */
export interface WireTable {
  readonly kinds: Readonly<Record<string, number>>
  readonly messages: readonly Readonly<Record<string, FieldRow>>[]
}

/** Malformed bytes. */
export class WireError extends PoddError {
  constructor(message: string) {
    super('API_BadRequest', message)
  }
}

/** `k8s\0`, then runtime.Unknown. */
const magic = [0x6b, 0x38, 0x73, 0x00]

/** The deepest nesting; clients send none as deep. */
const mostLevels = 50

/**
 * The object of a request body in Kubernetes' protobuf (`apimachinery/pkg/runtime/serializer/protobuf`, 1.36), as JSON
 * has it: zeros of fields that are no pointers are left out.
 * @throws WireError
 */
export function readProtobuf(body: Uint8Array, table: WireTable): JsonObject {
  if (!magic.every((byte, index) => body[index] === byte)) throw new WireError('the body is not protobuf')
  const { apiVersion, kind, raw } = readEnvelope(body.subarray(magic.length))
  // Options have the API version of their object.
  const key = kind === 'DeleteOptions' ? `v1/${kind}` : `${apiVersion}/${kind}`
  const index = Object.hasOwn(table.kinds, key) ? table.kinds[key] : undefined
  if (index === undefined)
    throw new WireError(`no kind ${JSON.stringify(kind)} is known in ${JSON.stringify(apiVersion)}`)
  const object = new MessageReader(table).read(index, raw, 0)
  return { apiVersion, kind, ...object }
}

function readEnvelope(bytes: Uint8Array): { apiVersion: string; kind: string; raw: Uint8Array } {
  let [apiVersion, kind] = ['', '']
  let raw = new Uint8Array()
  const reader = new ByteReader(bytes)
  for (let tag = reader.tag(); tag !== undefined; tag = reader.tag()) {
    if (tag.number === 1 && tag.type === 2) {
      const meta = new ByteReader(reader.bytes())
      for (let inner = meta.tag(); inner !== undefined; inner = meta.tag()) {
        if (inner.number === 1 && inner.type === 2) apiVersion = toText(meta.bytes())
        else if (inner.number === 2 && inner.type === 2) kind = toText(meta.bytes())
        else meta.skip(inner.type)
      }
    } else if (tag.number === 2 && tag.type === 2) raw = Uint8Array.from(reader.bytes())
    else reader.skip(tag.type)
  }
  return { apiVersion, kind, raw }
}

class MessageReader {
  readonly #table: WireTable

  constructor(table: WireTable) {
    this.#table = table
  }

  read(index: number, bytes: Uint8Array, level: number): JsonObject {
    if (level > mostLevels) throw new WireError('the body nests too deeply')
    const fields = this.#table.messages[index] ?? {}
    const found = new Map<string, Json>()
    // A value in many pieces is joined once.
    const lists = new Map<string, Json[]>()
    const maps = new Map<string, Map<string, Json>>()
    const reader = new ByteReader(bytes)
    for (let tag = reader.tag(); tag !== undefined; tag = reader.tag()) {
      const row = Object.hasOwn(fields, tag.number) ? fields[tag.number] : undefined
      if (row === undefined) {
        reader.skip(tag.type)
        continue
      }
      const [name = '', type = '', form = ''] = row
      if (form === '{}') {
        const [key, value] = this.#entry(type, reader.bytes(), level)
        const entries = maps.get(name) ?? new Map<string, Json>()
        maps.set(name, entries.set(key, value))
        continue
      }
      const value = this.#value(type, tag.type, reader, level)
      if (form === '[]') {
        const items = lists.get(name)
        if (items === undefined) lists.set(name, [value])
        else items.push(value)
      } else if (form === '.') {
        if (isJsonObject(value)) for (const [key, inner] of Object.entries(value)) found.set(key, inner)
      } else if (value !== null && (form === '*' || !isZero(value))) found.set(name, value)
    }
    for (const [name, items] of lists) found.set(name, items)
    for (const [name, entries] of maps) found.set(name, Object.fromEntries(entries))
    return Object.fromEntries(found)
  }

  #entry(type: string, bytes: Uint8Array, level: number): readonly [string, Json] {
    const reader = new ByteReader(bytes)
    let key = ''
    let value: Json = emptyOf(type)
    for (let tag = reader.tag(); tag !== undefined; tag = reader.tag()) {
      if (tag.number === 1) key = toText(reader.bytes())
      else if (tag.number === 2) value = this.#value(type, tag.type, reader, level)
      else reader.skip(tag.type)
    }
    return [key, value]
  }

  #value(type: string, wireType: number, reader: ByteReader, level: number): Json {
    switch (type) {
      case 'bool':
        return reader.integer(wireType) !== 0
      case 'int32':
      case 'int64':
        return reader.integer(wireType)
      case 'double':
        return reader.double(wireType)
      case 'string':
        return toText(reader.bytes())
      case 'bytes':
        return Buffer.from(reader.bytes()).toString('base64')
      case 'time':
        return readTime(reader.bytes(), 0)
      case 'microTime':
        return readTime(reader.bytes(), 6)
      case 'quantity':
        return readString(reader.bytes())
      case 'intOrString':
        return readIntOrString(reader.bytes())
      case 'rawJson':
        return readRawJson(reader.bytes())
      case 'items':
        return readItems(reader.bytes())
      default:
        return this.read(Number(type), reader.bytes(), level + 1)
    }
  }
}

/** The default value of a map's entry. */
function emptyOf(type: string): Json {
  if (type === 'string' || type === 'bytes') return ''
  if (type === 'quantity') return '0'
  return type === 'items' ? [] : {}
}

/** The encoding of an unset field. */
function isZero(value: Json): boolean {
  if (value === 0 || value === '' || value === false) return true
  return isJsonObject(value) && Object.keys(value).length === 0
}

/** An empty time is absent. */
function readTime(bytes: Uint8Array, digits: number): Json {
  if (bytes.length === 0) return null
  const reader = new ByteReader(bytes)
  let [seconds, nanos] = [0, 0]
  for (let tag = reader.tag(); tag !== undefined; tag = reader.tag()) {
    if (tag.number === 1) seconds = reader.integer(tag.type)
    else if (tag.number === 2) nanos = reader.integer(tag.type)
    else reader.skip(tag.type)
  }
  const date = new Date(seconds * 1000)
  if (Number.isNaN(date.getTime())) throw new WireError('a time is out of range')
  const fraction = digits === 0 ? '' : `.${String(nanos).padStart(9, '0').slice(0, digits)}`
  return `${date.toISOString().slice(0, -5)}${fraction}Z`
}

/** The one string of a message. */
function readString(bytes: Uint8Array): string {
  const reader = new ByteReader(bytes)
  let text = ''
  for (let tag = reader.tag(); tag !== undefined; tag = reader.tag()) {
    if (tag.number === 1 && tag.type === 2) text = toText(reader.bytes())
    else reader.skip(tag.type)
  }
  return text
}

function readIntOrString(bytes: Uint8Array): Json {
  const reader = new ByteReader(bytes)
  let [type, number, text] = [0, 0, '']
  for (let tag = reader.tag(); tag !== undefined; tag = reader.tag()) {
    if (tag.number === 1) type = reader.integer(tag.type)
    else if (tag.number === 2) number = reader.integer(tag.type)
    else if (tag.number === 3) text = toText(reader.bytes())
    else reader.skip(tag.type)
  }
  return type === 0 ? number : text
}

function readRawJson(bytes: Uint8Array): Json {
  const text = readString(bytes)
  try {
    const value: Json = text === '' ? {} : JSON.parse(text)
    return value
  } catch {
    // Not JSON: the client's fault.
    throw new WireError('the fields of a manager are not JSON')
  }
}

function readItems(bytes: Uint8Array): readonly string[] {
  const reader = new ByteReader(bytes)
  const items: string[] = []
  for (let tag = reader.tag(); tag !== undefined; tag = reader.tag()) {
    if (tag.number === 1) items.push(toText(reader.bytes()))
    else reader.skip(tag.type)
  }
  return items
}

function toText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    // Not UTF-8: that is what is asked.
    throw new WireError('a string is not UTF-8')
  }
}

/** The wire format of protobuf; every read is within the bytes. */
class ByteReader {
  readonly #bytes: Uint8Array
  #at = 0

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** Undefined at the end. */
  tag(): { readonly number: number; readonly type: number } | undefined {
    if (this.#at >= this.#bytes.length) return undefined
    const key = Number(this.#varint())
    return { number: Math.floor(key / 8), type: key % 8 }
  }

  /** A whole number, whose first bit may be its sign. */
  integer(wireType: number): number {
    if (wireType !== 0) throw new WireError('a number is of another type')
    return Number(BigInt.asIntN(64, this.#varint()))
  }

  double(wireType: number): number {
    if (wireType !== 1) throw new WireError('a number is of another type')
    const at = this.#advance(8)
    return new DataView(this.#bytes.buffer, this.#bytes.byteOffset).getFloat64(at, true)
  }

  bytes(): Uint8Array {
    const length = Number(this.#varint())
    const at = this.#advance(length)
    return this.#bytes.subarray(at, at + length)
  }

  skip(wireType: number): void {
    if (wireType === 0) this.#varint()
    else if (wireType === 1) this.#advance(8)
    else if (wireType === 2) this.bytes()
    else if (wireType === 5) this.#advance(4)
    else throw new WireError(`the wire type ${wireType} is not known`)
  }

  #advance(length: number): number {
    const at = this.#at
    if (at + length > this.#bytes.length) throw new WireError('the body ends within a field')
    this.#at = at + length
    return at
  }

  #varint(): bigint {
    let value = 0n
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.#bytes[this.#at]
      if (byte === undefined) throw new WireError('the body ends within a number')
      this.#at += 1
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return value
    }
    throw new WireError('a number has too many bytes')
  }
}
