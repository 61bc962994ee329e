import fc from 'fast-check'
import protobuf from 'protobufjs'
import { describe, expect, it } from 'vitest'
import { generateWire, wireNames } from '../../../proto/generate-types.ts'
import { ProtobufMessages } from '../../../src/streams/protobuf-messages.ts'

/** Messages as podd has them, by an implementation that shares nothing with podd's. */
const conversion: protobuf.IConversionOptions = {
  longs: Number,
  enums: String,
  defaults: true,
  arrays: true,
  objects: true,
}

const files = wireNames.map((name) => {
  const root = new protobuf.Root().loadSync(new URL(`../../../proto/${name}.proto`, import.meta.url).pathname)
  return { name, root: root.resolveAll(), messages: new ProtobufMessages(JSON.parse(generateWire(name))) }
})

function typesOf(namespace: protobuf.NamespaceBase): protobuf.Type[] {
  return namespace.nestedArray.flatMap((object) => [
    ...(object instanceof protobuf.Type ? [object] : []),
    ...(object instanceof protobuf.Namespace ? typesOf(object) : []),
  ])
}

const wholeNumbers: Readonly<Record<string, fc.Arbitrary<number>>> = {
  int32: fc.integer(),
  uint32: fc.nat(2 ** 32 - 1),
  int64: fc.maxSafeInteger(),
  uint64: fc.maxSafeNat(),
}

function valueOf(field: protobuf.Field, depth: number): fc.Arbitrary<unknown> {
  const { resolvedType } = field
  if (resolvedType instanceof protobuf.Enum) return fc.constantFrom(...Object.keys(resolvedType.values))
  if (resolvedType instanceof protobuf.Type) return messageOf(resolvedType, depth + 1)
  if (field.type === 'bool') return fc.boolean()
  if (field.type === 'double') return fc.double({ noNaN: true })
  if (field.type === 'bytes') return fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes))
  return wholeNumbers[field.type] ?? fc.string({ unit: 'grapheme', maxLength: 200 })
}

function messageOf(type: protobuf.Type, depth = 0): fc.Arbitrary<object> {
  const fields = type.fieldsArray.map((field) => {
    const one = valueOf(field, depth)
    const key = fc.string({ minLength: 1 }).filter((text) => text !== '__proto__')
    if (field instanceof protobuf.MapField)
      return [field.name, fc.dictionary(key, one, { maxKeys: 3, noNullPrototype: true })]
    return [field.name, field.repeated ? fc.array(one, { maxLength: 3 }) : one]
  })
  return fc.record(Object.fromEntries(fields), { requiredKeys: [] })
}

describe.each(files)('the messages of $name.proto', ({ root, messages }) => {
  it.each(typesOf(root).map((type) => [type.name, type] as const))(
    '%s is written and read as protobufjs does',
    (name, type) => {
      fc.assert(
        fc.property(messageOf(type), (message) => {
          const theirs = Buffer.from(type.encode(type.fromObject(message)).finish())
          const decoded = type.toObject(type.decode(theirs), conversion)
          expect(messages.decode(name, theirs)).toEqual(decoded)
          const ours = messages.encode(name, message)
          expect(type.toObject(type.decode(ours), conversion)).toEqual(decoded)
        }),
        { numRuns: 20 },
      )
    },
  )
})

describe('what a peer may send', () => {
  const messages = new ProtobufMessages({
    package: 'a',
    services: {},
    messages: {
      All: 'number 1 int32,wide 2 int64,text 3 string,inner 4 All,list 5 uint32 [],map 6 string {},state 7 State,raw 8 bytes',
    },
    enums: { State: 'OFF 0,ON 1' },
  })
  const decode = (...bytes: number[]): object => messages.decode('All', Buffer.from(bytes))
  const nothing = { number: 0, wide: 0, text: '', inner: null, list: [], map: {}, state: 'OFF' }

  it.each([
    ['nothing', [], {}],
    ['a number below zero', [0x08, ...Array<number>(9).fill(0xff), 0x01], { number: -1 }],
    ['64 bits below zero', [0x10, 0xfe, ...Array<number>(8).fill(0xff), 0x01], { wide: -2 }],
    ['packed numbers', [0x2a, 0x03, 0x01, 0x80, 0x01], { list: [1, 128] }],
    ['numbers one by one, and packed', [0x28, 0x07, 0x2a, 0x01, 0x08], { list: [7, 8] }],
    ['a state that is not known', [0x38, 0x05], { state: 5 }],
    ['the same field twice', [0x08, 0x01, 0x08, 0x02], { number: 2 }],
    [
      'fields that are not known',
      [0x78, 0x01, 0x7a, 0x01, 0x00, 0x7d, 0, 0, 0, 0, 0x08, 0x03],
      { number: 3 },
    ],
    ['a known field of another wire type', [0x0a, 0x01, 0x00], {}],
    ['an entry without a value', [0x32, 0x03, 0x0a, 0x01, 0x6b], { map: { k: '' } }],
  ])('%s', (_, bytes, expected) => {
    expect(decode(...bytes)).toMatchObject({ ...nothing, ...expected })
  })

  it('takes __proto__ for a key like others', () => {
    const key = Buffer.from('__proto__')
    const entry = Buffer.concat([Buffer.from([0x0a, key.length]), key, Buffer.from([0x12, 1, 0x76])])
    const map = Reflect.get(decode(0x32, entry.length, ...entry), 'map')
    expect(Object.entries(map)).toEqual([['__proto__', 'v']])
    expect(Object.getPrototypeOf(map)).toBe(Object.prototype)
  })

  it.each([
    ['ends within a number', [0x08]],
    ['ends within a text', [0x1a, 0x05, 0x61]],
    [
      'has a message that is longer than what holds it',
      [0x22, 0x02, 0x1a, 0x05, 0x61, 0x61, 0x61, 0x61, 0x61],
    ],
    ['has a number of more than ten bytes', [0x08, ...Array<number>(11).fill(0xff)]],
    ['has a group', [0x7b]],
  ])('is refused where it %s', (_, bytes) => {
    expect(() => decode(...bytes)).toThrow(/^the message /u)
  })

  it('is refused, or read to its end, whatever the bytes are', () => {
    const codes = new Set<unknown>()
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
        try {
          messages.decode('All', bytes)
        } catch (error) {
          codes.add(Reflect.get(Object(error), 'code'))
        }
      }),
      { numRuns: 2000 },
    )
    expect([...codes]).toEqual(['INTERNAL'])
  })
})
