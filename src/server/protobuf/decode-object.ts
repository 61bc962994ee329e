import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { ApiError } from '../requests/api-error.ts'
import { Messages } from './message-fields.ts'
import type { MessageField } from './message-fields.ts'
import { malformed, readFields } from './wire-reader.ts'

export const protobufType = 'application/vnd.kubernetes.protobuf'

/** What such a body begins with (`apimachinery/pkg/runtime/serializer/protobuf/protobuf.go`, 1.36). */
const magic = Buffer.from('k8s\0')

/** A message within messages of its own kind ends here. */
const deepest = 64

/**
 * The object in a body of the type `application/vnd.kubernetes.protobuf`, as it would be in JSON. Zero values that say
 * nothing are left out; fields that podd doesn't know are passed over. Throws ApiError BadRequest.
 */
export async function decodeObject(body: Uint8Array): Promise<JsonObject> {
  const bytes = Buffer.from(body)
  if (!bytes.subarray(0, magic.length).equals(magic)) throw malformed()
  const messages = await Messages.load()
  let type: JsonObject = {}
  let raw: Uint8Array = new Uint8Array()
  for (const { id, value } of readFields(bytes.subarray(magic.length))) {
    if (id === 1) type = decodeMessage(messages, 'TypeMeta', bytesOf(value), 0)
    if (id === 2) raw = bytesOf(value)
  }
  const { apiVersion, kind } = type
  if (typeof kind !== 'string' || !messages.has(kind))
    throw new ApiError(400, `podd does not read objects of kind ${JSON.stringify(kind ?? '')} as protobuf`)
  return { ...(apiVersion !== undefined && { apiVersion }), kind, ...decodeMessage(messages, kind, raw, 0) }
}

function decodeMessage(messages: Messages, name: string, bytes: Uint8Array, depth: number): JsonObject {
  if (depth > deepest) throw malformed()
  const fields = messages.fieldsOf(name)
  const result: Record<string, Json> = {}
  for (const { id, value } of readFields(bytes)) {
    const field = fields.get(id)
    if (field === undefined) continue
    if (field.kind === 'map') {
      const [key, entry] = decodeEntry(messages, field, bytesOf(value), depth)
      const map = result[field.name]
      result[field.name] = { ...(isJsonObject(map) ? map : {}), [key]: entry }
      continue
    }
    const decoded = decodeValue(messages, field.type, value, depth)
    if (field.kind === 'list') {
      const list = result[field.name]
      result[field.name] = [...(Array.isArray(list) ? list : []), decoded]
    } else if (field.isInline) {
      if (isJsonObject(decoded)) Object.assign(result, decoded)
    } else if (!(decoded === null || (field.omitsZero && isZero(decoded)))) result[field.name] = decoded
  }
  return result
}

function decodeEntry(
  messages: Messages,
  { type }: MessageField,
  bytes: Uint8Array,
  depth: number,
): readonly [key: string, value: Json] {
  let key = ''
  let entry: Json = type === 'string' || type === 'bytes' ? '' : {}
  for (const { id, value } of readFields(bytes)) {
    if (id === 1) key = textOf(value)
    if (id === 2) entry = decodeValue(messages, type, value, depth)
  }
  return [key, entry]
}

function decodeValue(messages: Messages, type: string, value: bigint | Uint8Array, depth: number): Json {
  switch (type) {
    case 'string':
      return textOf(value)
    case 'bytes':
      return Buffer.from(bytesOf(value)).toString('base64')
    case 'bool':
      return numberOf(value) !== 0
    case 'int32':
    case 'int64':
      return numberOf(value)
    case 'double':
      return Buffer.from(bytesOf(value)).readDoubleLE(0)
    default:
      return fromMessage(type, decodeMessage(messages, type, bytesOf(value), depth + 1))
  }
}

/** Messages that JSON writes as something else. */
function fromMessage(type: string, message: JsonObject): Json {
  switch (type) {
    case 'Time':
      return Object.keys(message).length === 0 ? null : formatTime(message, '')
    case 'MicroTime':
      return Object.keys(message).length === 0 ? null : formatTime(message, micros(message))
    case 'Quantity':
      return message['string'] ?? '0'
    case 'IntOrString':
      return message['type'] === 1 ? (message['strVal'] ?? '') : (message['intVal'] ?? 0)
    case 'FieldsV1':
    case 'RawExtension':
      return parseRaw(message['Raw'] ?? message['raw'])
    default:
      return message
  }
}

function formatTime({ seconds }: JsonObject, fraction: string): string {
  const time = new Date((typeof seconds === 'number' ? seconds : 0) * 1000)
  if (Number.isNaN(time.getTime())) throw malformed()
  return `${time.toISOString().slice(0, 19)}${fraction}Z`
}

function micros({ nanos }: JsonObject): string {
  const count = typeof nanos === 'number' ? Math.floor(nanos / 1000) : 0
  return `.${String(count).padStart(6, '0')}`
}

function parseRaw(base64: Json | undefined): Json {
  if (typeof base64 !== 'string' || base64 === '') return null
  try {
    const value: Json = JSON.parse(Buffer.from(base64, 'base64').toString())
    return value
  } catch {
    throw malformed()
  }
}

function isZero(value: Json): boolean {
  if (isJsonObject(value)) return Object.keys(value).length === 0
  return value === '' || value === 0 || value === false
}

function bytesOf(value: bigint | Uint8Array): Uint8Array {
  if (typeof value === 'bigint') throw malformed()
  return value
}

function numberOf(value: bigint | Uint8Array): number {
  if (typeof value !== 'bigint') throw malformed()
  return Number(BigInt.asIntN(64, value))
}

function textOf(value: bigint | Uint8Array): string {
  return Buffer.from(bytesOf(value)).toString('utf8')
}
