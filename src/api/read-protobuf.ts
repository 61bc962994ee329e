import protobuf from 'protobufjs/minimal.js'
import { errorMessage, PoddError } from '../base/errors.ts'
import { isJsonObject } from '../base/json.ts'
import type { Json, JsonObject } from '../base/json.ts'

/** Name, type, and `*` for a pointer, `[]` for a list, `{}` for a map, `.` for what is inlined in JSON. */
type FieldRow = readonly string[]

/** See proto/generate-kubernetes.ts. A type is a scalar's, a word that is treated below, or a message's place. */
interface WireTable {
  readonly kinds: Readonly<Record<string, number>>
  readonly messages: readonly Readonly<Record<string, FieldRow>>[]
}

export class WireError extends PoddError {
  constructor(message: string) {
    super('API_BadRequest', message)
  }
}

/** `k8s\0`, then runtime.Unknown. */
const magic = [0x6b, 0x38, 0x73, 0x00]

/** The deepest nesting; clients send none as deep. */
const maxLevels = 50

/**
 * The object of a request body in Kubernetes' protobuf (`apimachinery/pkg/runtime/serializer/protobuf`, 1.36), as JSON
 * has it: zeros of fields that are no pointers are left out.
 * @throws WireError
 */
export function readProtobuf(body: Uint8Array, table: WireTable): JsonObject {
  if (!magic.every((byte, index) => body[index] === byte)) throw new WireError('the body is not protobuf')
  try {
    return readObject(body.subarray(magic.length), table)
  } catch (error) {
    if (error instanceof WireError) throw error
    throw new WireError(`the body is not valid protobuf: ${errorMessage(error)}`)
  }
}

function readObject(body: Uint8Array, table: WireTable): JsonObject {
  const { apiVersion, kind, raw } = readEnvelope(body)
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
  for (const field of fieldsOf(bytes)) {
    if (field.number === 2) raw = Uint8Array.from(field.bytes())
    if (field.number !== 1) continue
    for (const inner of fieldsOf(field.bytes())) {
      if (inner.number === 1) apiVersion = inner.text()
      if (inner.number === 2) kind = inner.text()
    }
  }
  return { apiVersion, kind, raw }
}

class MessageReader {
  readonly #table: WireTable

  constructor(table: WireTable) {
    this.#table = table
  }

  read(index: number, bytes: Uint8Array, level: number): JsonObject {
    if (level > maxLevels) throw new WireError('the body nests too deeply')
    const fields = this.#table.messages[index] ?? {}
    const found = new Map<string, Json>()
    // A value in many pieces is joined once.
    const lists = new Map<string, Json[]>()
    const maps = new Map<string, Map<string, Json>>()
    for (const field of fieldsOf(bytes)) {
      const row = Object.hasOwn(fields, field.number) ? fields[field.number] : undefined
      if (row === undefined) continue
      const [name = '', type = '', form = ''] = row
      if (form === '{}') {
        const [key, value] = this.#entry(type, field.bytes(), level)
        const entries = maps.get(name) ?? new Map<string, Json>()
        maps.set(name, entries.set(key, value))
        continue
      }
      const value = this.#value(type, field, level)
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
    let key = ''
    let value: Json = emptyOf(type)
    for (const field of fieldsOf(bytes)) {
      if (field.number === 1) key = field.text()
      if (field.number === 2) value = this.#value(type, field, level)
    }
    return [key, value]
  }

  #value(type: string, field: Field, level: number): Json {
    switch (type) {
      case 'bool':
        return field.integer() !== 0
      case 'int32':
      case 'int64':
        return field.integer()
      case 'double':
        return field.double()
      case 'string':
        return field.text()
      case 'bytes':
        return Buffer.from(field.bytes()).toString('base64')
      case 'time':
        return readTime(field.bytes(), 0)
      case 'microTime':
        return readTime(field.bytes(), 6)
      case 'quantity':
        return readString(field.bytes())
      case 'intOrString':
        return readIntOrString(field.bytes())
      case 'rawJson':
        return readRawJson(field.bytes())
      case 'items':
        return [...fieldsOf(field.bytes())].flatMap((item) => (item.number === 1 ? [item.text()] : []))
      default:
        return this.read(Number(type), field.bytes(), level + 1)
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
  let [seconds, nanos] = [0, 0]
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) seconds = field.integer()
    if (field.number === 2) nanos = field.integer()
  }
  const date = new Date(seconds * 1000)
  if (Number.isNaN(date.getTime())) throw new WireError('a time is out of range')
  const fraction = digits === 0 ? '' : `.${String(nanos).padStart(9, '0').slice(0, digits)}`
  return `${date.toISOString().slice(0, -5)}${fraction}Z`
}

/** The one string of a message. */
function readString(bytes: Uint8Array): string {
  let text = ''
  for (const field of fieldsOf(bytes)) if (field.number === 1) text = field.text()
  return text
}

function readIntOrString(bytes: Uint8Array): Json {
  let [type, number, text] = [0, 0, '']
  for (const field of fieldsOf(bytes)) {
    if (field.number === 1) type = field.integer()
    if (field.number === 2) number = field.integer()
    if (field.number === 3) text = field.text()
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

/** One field of a message. A value that is not taken is skipped. */
class Field {
  readonly number: number
  readonly #wireType: number
  readonly #reader: protobuf.Reader
  #isTaken = false

  constructor(reader: protobuf.Reader) {
    const tag = reader.uint32()
    this.number = tag >>> 3
    this.#wireType = tag & 7
    this.#reader = reader
  }

  /** A whole number, whose first bit may be its sign. */
  integer(): number {
    return Number(this.#take(0).int64())
  }

  double(): number {
    return this.#take(1).double()
  }

  bytes(): Uint8Array {
    return this.#take(2).bytes()
  }

  text(): string {
    try {
      return new TextDecoder('utf-8', { fatal: true }).decode(this.bytes())
    } catch (error) {
      throw error instanceof TypeError ? new WireError('a string is not UTF-8') : error
    }
  }

  skip(): void {
    if (!this.#isTaken) this.#reader.skipType(this.#wireType)
  }

  #take(wireType: number): protobuf.Reader {
    if (this.#wireType !== wireType) throw new WireError('a value is of another type')
    this.#isTaken = true
    return this.#reader
  }
}

function* fieldsOf(bytes: Uint8Array): Generator<Field, void> {
  const reader = protobuf.Reader.create(bytes)
  while (reader.pos < reader.len) {
    const field = new Field(reader)
    yield field
    field.skip()
  }
}
