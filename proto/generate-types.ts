/**
 * Writes the types of src/cri-types from cri-v1.proto, in the shapes that src/grpc/load-proto.ts has grpc-js give: camelCase
 * names, 64-bit integers as numbers, enums as their names.
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

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL('../src/cri-types/cri-v1.ts', import.meta.url), generateTypes())
