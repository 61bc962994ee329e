import { PoddError } from '../base/errors.ts'
import { ProtobufReader, ProtobufWriter, wireTypes } from './protobuf-bytes.ts'

/** A proto file as data (`proto/generate-types.ts` writes it). Names are those within the file's package. */
export interface ProtobufDefinitions {
  readonly package: string
  /** By the service's name, its methods: `RequestType ReplyType`, with ` stream` where there are many replies. */
  readonly services: Readonly<Record<string, Readonly<Record<string, string>>>>
  /** By the message's name, its fields with commas between: `name number type`, with `[]` behind a list's and `{}` behind a map's. */
  readonly messages: Readonly<Record<string, string>>
  /** By the enum's name, its values: `NAME number`, with commas between. */
  readonly enums: Readonly<Record<string, string>>
}

type Message = Record<string, unknown>

interface Field {
  readonly name: string
  readonly number: number
  readonly rule: 'one' | 'list' | 'map'
  readonly wireType: number
  /** The value of an absent field. */
  readonly absent: unknown
  readonly read: (reader: ProtobufReader) => unknown
  readonly write: (writer: ProtobufWriter, value: unknown) => void
}

interface MessageType {
  readonly fields: readonly Field[]
  /** The message without any field. */
  readonly empty: Message
  readonly byNumber: ReadonlyMap<number, Field>
}

type Values = Pick<Field, 'wireType' | 'absent' | 'read' | 'write'>

const { varint, bytes, fixed64 } = wireTypes

const integer = {
  wireType: varint,
  absent: 0,
  write: (writer: ProtobufWriter, value: unknown) => writer.integer(Number(value)),
}

const scalars: Readonly<Record<string, Values>> = {
  string: {
    wireType: bytes,
    absent: '',
    read: (reader) => reader.string(),
    write: (writer, value) => writer.string(String(value)),
  },
  bytes: {
    wireType: bytes,
    absent: Buffer.alloc(0),
    read: (reader) => reader.bytes(),
    write: (writer, value) => {
      if (value instanceof Uint8Array) writer.bytes(value)
      else throw new PoddError('INTERNAL', 'a message to be sent has no bytes where it must')
    },
  },
  bool: {
    wireType: varint,
    absent: false,
    read: (reader) => reader.bool(),
    write: (writer, value) => writer.integer(value === true ? 1 : 0),
  },
  double: {
    wireType: fixed64,
    absent: 0,
    read: (reader) => reader.double(),
    write: (writer, value) => writer.double(Number(value)),
  },
  int32: { ...integer, read: (reader) => reader.int32() },
  int64: { ...integer, read: (reader) => reader.int64() },
  uint32: { ...integer, read: (reader) => reader.uint32() },
  uint64: { ...integer, read: (reader) => reader.uint64() },
}

/** Shared by all messages without values in these fields, as they are frozen. */
const noList: readonly unknown[] = Object.freeze([])
const noMap: object = Object.freeze({})

/**
 * Encodes and decodes the messages of one proto file by a table, so that V8 compiles no code for each message.
 * Decoded messages have camelCase names, 64-bit integers as numbers, enums as names (unknown ones as numbers), all scalars,
 * lists and maps, and null where a message is absent. A message's table is parsed when it is first used.
 */
export class ProtobufMessages {
  readonly #definitions: ProtobufDefinitions
  readonly #types = new Map<string, MessageType>()

  constructor(definitions: ProtobufDefinitions) {
    this.#definitions = definitions
  }

  /** Throws PoddError INTERNAL if there is no such message. */
  encode(name: string, message: object): Buffer {
    const writer = new ProtobufWriter()
    this.#write(writer, this.#type(name), message)
    return writer.finish()
  }

  /** Throws PoddError INTERNAL if there is no such message, or if the bytes are not one. */
  decode(name: string, encoded: Uint8Array): object {
    return this.#read(new ProtobufReader(encoded), this.#type(name))
  }

  #write(writer: ProtobufWriter, { fields }: MessageType, message: object): void {
    for (const field of fields) {
      const value: unknown = Reflect.get(message, field.name)
      if (value === undefined || value === null) continue
      if (field.rule === 'one') writeOne(writer, field, value)
      else if (Array.isArray(value)) for (const item of value) writeOne(writer, field, item)
      else for (const entry of Object.entries(value)) writeEntry(writer, field, entry)
    }
  }

  #read(reader: ProtobufReader, { empty, byNumber }: MessageType): object {
    const message = { ...empty }
    while (!reader.isAtEnd) {
      const tag = reader.uint32()
      const field = byNumber.get(tag >>> 3)
      const wireType = tag & 7
      if (field === undefined) reader.skip(wireType)
      else if (field.rule === 'map') readEntry(reader, field, message)
      else if (field.rule === 'one' && wireType === field.wireType) message[field.name] = field.read(reader)
      else if (field.rule === 'list') readItems(reader, field, wireType, message)
      else reader.skip(wireType)
    }
    return message
  }

  #type(name: string): MessageType {
    const known = this.#types.get(name)
    if (known !== undefined) return known
    const text = this.#definitions.messages[name]
    if (text === undefined) throw new PoddError('INTERNAL', `no message ${name} is defined`)
    const fields = text === '' ? [] : text.split(',').map((field) => this.#field(field))
    const type = {
      fields,
      empty: Object.fromEntries(
        fields.map(({ name, rule, absent }) => [
          name,
          rule === 'one' ? absent : rule === 'list' ? noList : noMap,
        ]),
      ),
      byNumber: new Map(fields.map((field) => [field.number, field])),
    }
    this.#types.set(name, type)
    return type
  }

  #field(text: string): Field {
    const [name = '', number, typeName = '', mark] = text.split(' ')
    const rule = mark === '[]' ? 'list' : mark === '{}' ? 'map' : 'one'
    return { name, number: Number(number), rule, ...this.#values(typeName) }
  }

  #values(typeName: string): Values {
    const scalar = scalars[typeName]
    if (scalar !== undefined) return scalar
    const names = this.#definitions.enums[typeName]
    return names === undefined ? this.#messageValues(typeName) : enumValues(names)
  }

  #messageValues(typeName: string): Values {
    return {
      wireType: bytes,
      absent: null,
      read: (reader) => {
        const outerEnd = reader.enter()
        const message = this.#read(reader, this.#type(typeName))
        reader.leave(outerEnd)
        return message
      },
      write: (writer, value) => {
        if (typeof value !== 'object' || value === null)
          throw new PoddError('INTERNAL', `a message to be sent has no ${typeName} where it must`)
        writer.within(() => this.#write(writer, this.#type(typeName), value))
      },
    }
  }
}

function enumValues(text: string): Values {
  const values = text.split(',').map((value) => {
    const [name = '', number] = value.split(' ')
    return [name, Number(number)] as const
  })
  const numbers = new Map<unknown, number>(values)
  const names = new Map(values.map(([name, number]) => [number, name]))
  return {
    wireType: varint,
    absent: names.get(0) ?? 0,
    read: (reader) => {
      const number = reader.int32()
      return names.get(number) ?? number
    },
    write: (writer, value) => writer.integer(numbers.get(value) ?? (Number(value) || 0)),
  }
}

function writeOne(writer: ProtobufWriter, { number, wireType, write }: Field, value: unknown): void {
  writer.integer(number * 8 + wireType)
  write(writer, value)
}

/** A map is a list of messages whose first field is the key and whose second one is the value. */
function writeEntry(writer: ProtobufWriter, field: Field, [key, value]: [string, unknown]): void {
  writer.integer(field.number * 8 + bytes)
  writer.within(() => {
    writer.integer(8 + bytes)
    writer.string(key)
    writer.integer(16 + field.wireType)
    field.write(writer, value)
  })
}

function readEntry(reader: ProtobufReader, field: Field, message: Message): void {
  const outerEnd = reader.enter()
  let key = ''
  let value = field.absent
  while (!reader.isAtEnd) {
    const tag = reader.uint32()
    if (tag === 8 + bytes) key = reader.string()
    else if (tag === 16 + field.wireType) value = field.read(reader)
    else reader.skip(tag & 7)
  }
  reader.leave(outerEnd)
  const found = message[field.name]
  const map = typeof found === 'object' && found !== null && found !== noMap ? found : {}
  setOwn(map, key, value)
  message[field.name] = map
}

function setOwn(map: object, key: string, value: unknown): void {
  // An assignment to `__proto__` would set the prototype.
  if (key === '__proto__')
    Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true })
  else Reflect.set(map, key, value)
}

/** Reads one item, or packed numbers. */
function readItems(reader: ProtobufReader, field: Field, wireType: number, message: Message): void {
  const found = message[field.name]
  const list: unknown[] = Array.isArray(found) && found !== noList ? found : []
  message[field.name] = list
  if (wireType === field.wireType) list.push(field.read(reader))
  else if (wireType === bytes) {
    const outerEnd = reader.enter()
    while (!reader.isAtEnd) list.push(field.read(reader))
    reader.leave(outerEnd)
  } else reader.skip(wireType)
}
