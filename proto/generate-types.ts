/**
 * Writes src/cri-types from the proto files: the definitions as JSON, and for cri-v1.proto the types, in the shapes that
 * src/streams/protobuf-messages.ts gives: camelCase names, 64-bit integers as numbers, enums as their names.
 *
 * Every message gives two types: `XInput` (what may be sent: all fields optional) and `X` (what is
 * received: scalars, lists and maps always present, messages nullable).
 */
import { writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import protobuf from 'protobufjs'

const scalars: Readonly<Record<string, string>> = {
  string: 'string',
  bytes: 'Buffer',
  bool: 'boolean',
  double: 'number',
  int32: 'number',
  int64: 'number',
  uint32: 'number',
  uint64: 'number',
}

function typeName(field: protobuf.Field, suffix: string): string {
  const scalar = scalars[field.type]
  if (scalar !== undefined) return scalar === 'Buffer' && suffix === 'Input' ? 'Uint8Array' : scalar
  const resolved = field.resolve().resolvedType
  if (resolved instanceof protobuf.Enum) return resolved.name
  return `${resolved?.name ?? field.type}${suffix}`
}

function fieldType(field: protobuf.Field, suffix: string): string {
  const name = typeName(field, suffix)
  if (field instanceof protobuf.MapField) return `Readonly<Record<string, ${name}>>`
  if (field.repeated) return `readonly ${name}[]`
  const isMessage = field.resolve().resolvedType instanceof protobuf.Type
  return isMessage ? `${name} | null` : name
}

function messageLines(message: protobuf.Type): string[] {
  const fields = message.fieldsArray
  const none = fields.length === 0
  const received = fields.map((f) => `  readonly ${f.name}: ${fieldType(f, '')}`)
  const sent = fields.map((f) => `  readonly ${f.name}?: ${fieldType(f, 'Input')} | undefined`)
  return [
    none
      ? `export type ${message.name} = Readonly<Record<string, never>>`
      : `export interface ${message.name} {\n${received.join('\n')}\n}`,
    none
      ? `export type ${message.name}Input = Readonly<Record<string, never>>`
      : `export interface ${message.name}Input {\n${sent.join('\n')}\n}`,
  ]
}

function enumLine(en: protobuf.Enum): string {
  return `export type ${en.name} = ${Object.keys(en.values)
    .map((v) => `'${v}'`)
    .join(' | ')}`
}

/** The text of src/cri-types/cri-v1.ts. */
export function generateTypes(): string {
  const path = fileURLToPath(new URL('cri-v1.proto', import.meta.url))
  const root = new protobuf.Root().loadSync(path)
  const lines = ['// Generated from proto/cri-v1.proto by `npm run generate`. Do not edit.']
  const visit = (ns: protobuf.NamespaceBase): void => {
    for (const object of ns.nestedArray) {
      if (object instanceof protobuf.Enum) lines.push(enumLine(object))
      if (object instanceof protobuf.Type) lines.push(...messageLines(object))
      if (object instanceof protobuf.Namespace && !(object instanceof protobuf.Service)) visit(object)
    }
  }
  visit(root)
  return `${lines.join('\n\n')}\n`
}

/** A proto file as data, as src/streams/protobuf-messages.ts reads it: no podd has to parse the file itself. */
export function generateWire(name: WireName): string {
  const path = fileURLToPath(new URL(`${name}.proto`, import.meta.url))
  const root = new protobuf.Root().loadSync(path)
  root.resolveAll()
  const wire = { package: '', services: {}, messages: {}, enums: {} }
  const packageOf = (object: protobuf.ReflectionObject): string =>
    object.fullName.slice(1, -object.name.length - 1)
  const visit = (ns: protobuf.NamespaceBase): void => {
    for (const object of ns.nestedArray) {
      if (object instanceof protobuf.Service) {
        wire.package = packageOf(object)
        Object.assign(wire.services, { [object.name]: serviceWire(object) })
      } else if (object instanceof protobuf.Type)
        Object.assign(wire.messages, { [object.name]: messageWire(object) })
      else if (object instanceof protobuf.Enum) Object.assign(wire.enums, { [object.name]: enumWire(object) })
      if (object instanceof protobuf.Namespace && !(object instanceof protobuf.Service)) visit(object)
    }
  }
  visit(root)
  return `${JSON.stringify(wire)}\n`
}

function serviceWire(service: protobuf.Service): Readonly<Record<string, string>> {
  return Object.fromEntries(
    service.methodsArray.map(({ name, requestType, responseType, responseStream }) => [
      name,
      [requestType, responseType, ...(responseStream === true ? ['stream'] : [])].join(' '),
    ]),
  )
}

function messageWire(message: protobuf.Type): string {
  const fields = message.fieldsArray.map((field) => {
    const type = field.resolvedType?.name ?? field.type
    if (field.partOf !== null) throw new Error(`${message.name}.${field.name}: no oneof is known`)
    if (field instanceof protobuf.MapField && field.keyType !== 'string')
      throw new Error(`${message.name}.${field.name}: only texts are known as keys`)
    const marks = field instanceof protobuf.MapField ? ['{}'] : field.repeated ? ['[]'] : []
    return [field.name, field.id, type, ...marks].join(' ')
  })
  return fields.join(',')
}

function enumWire({ values }: protobuf.Enum): string {
  return Object.entries(values)
    .map(([name, number]) => `${name} ${number}`)
    .join(',')
}

export const wireNames = [
  'cri-v1',
  'containerd-events',
  'containerd-tasks',
  'containerd-containers',
  'containerd-content',
  'containerd-snapshots',
  'containerd-leases',
  'containerd-images',
] as const
export type WireName = (typeof wireNames)[number]

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const target = (file: string): URL => new URL(`../src/cri-types/${file}`, import.meta.url)
  writeFileSync(target('cri-v1.ts'), generateTypes())
  for (const name of wireNames) writeFileSync(target(`${name}.wire.json`), generateWire(name))
}
