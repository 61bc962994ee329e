/**
 * Writes the types of src/cri-types from cri-v1.proto, in the shapes that src/grpc/load-proto.ts has grpc-js give: camelCase
 * names, 64-bit integers as numbers, enums as their names.
 *
 * A message's type is what is received: scalars, lists and maps always present, messages nullable. `Sent` of it is what
 * may be sent: all fields optional.
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

function fieldType(field: protobuf.Field): string {
  const resolved = field.resolve().resolvedType
  const name = resolved?.name ?? scalars[field.type] ?? field.type
  if (field instanceof protobuf.MapField) return `Readonly<Record<string, ${name}>>`
  if (field.repeated) return `readonly ${name}[]`
  return resolved instanceof protobuf.Type ? `${name} | null` : name
}

function messageLines({ name, fieldsArray }: protobuf.Type): string {
  const fields = fieldsArray.map((field) => `  readonly ${field.name}: ${fieldType(field)}`)
  return fields.length === 0
    ? `export type ${name} = Readonly<Record<string, never>>`
    : `export interface ${name} {\n${fields.join('\n')}\n}`
}

const sentType = `/** A message as it may be sent: what it leaves out has its default. */
export type Sent<Message> = { readonly [Field in keyof Message]?: SentValue<Message[Field]> | undefined }

type SentValue<Value> = Value extends Uint8Array
  ? Uint8Array
  : Value extends readonly (infer Item)[]
    ? readonly SentValue<Item>[]
    : Value extends object
      ? string extends keyof Value
        ? { readonly [Key in keyof Value]: SentValue<Value[Key]> }
        : Sent<Value>
      : Value`

function enumLine(en: protobuf.Enum): string {
  return `export type ${en.name} = ${Object.keys(en.values)
    .map((v) => `'${v}'`)
    .join(' | ')}`
}

/** The text of src/cri-types/cri-v1.ts. */
export function generateTypes(): string {
  const path = fileURLToPath(new URL('cri-v1.proto', import.meta.url))
  const root = new protobuf.Root().loadSync(path)
  const lines = ['// Generated from proto/cri-v1.proto by `npm run generate`. Do not edit.', sentType]
  const visit = (ns: protobuf.NamespaceBase): void => {
    for (const object of ns.nestedArray) {
      if (object instanceof protobuf.Enum) lines.push(enumLine(object))
      if (object instanceof protobuf.Type) lines.push(messageLines(object))
      if (object instanceof protobuf.Namespace && !(object instanceof protobuf.Service)) visit(object)
    }
  }
  visit(root)
  return `${lines.join('\n\n')}\n`
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL('../src/cri-types/cri-v1.ts', import.meta.url), generateTypes())
