import type { ServedKind } from '../../api/served-kind.ts'
import { describeSupport, fieldBelow } from '../../pod/schema/types.ts'
import type { AnyType, Field, Fields } from '../../pod/schema/types.ts'
import { wrap } from './wrap.ts'

/** A type, and the field that has it, as it is below its parents; the kind itself has neither name nor field. */
export interface Explained {
  readonly name: string | undefined
  readonly type: AnyType
  readonly field: Field | undefined
}

const widest = 80

/** The fields of a type as `kubectl explain` shows them (`kubectl/pkg/explain/v2/templates/plaintext.tmpl`, 1.36). */
export function explainType(kind: ServedKind, { name, type, field }: Explained, recursive: boolean): string {
  const [version = '', group] = kind.apiVersion.split('/').toReversed()
  const fields = fieldsOf(type)
  const told = field === undefined ? [] : [...describe(field), '']
  return [
    ...(group === undefined ? [] : [`GROUP:      ${group}`]),
    `KIND:       ${kind.kind}`,
    `VERSION:    ${version}`,
    '',
    ...(name === undefined ? [] : [`FIELD: ${name} <${typeName(type)}>`, ...enumOf(type, ''), '']),
    ...(told.length === 0 ? [] : ['DESCRIPTION:', ...told]),
    ...(Object.keys(fields).length === 0
      ? []
      : ['FIELDS:', ...(recursive ? listNames(fields, '  ', []) : listFields(fields, field))]),
    '',
  ].join('\n')
}

/** Of an object, or of what a list or a map holds. */
export function fieldsOf(type: AnyType): Fields {
  switch (type.kind) {
    case 'object':
      return type.fields
    case 'list':
      return fieldsOf(type.item)
    case 'map':
      return fieldsOf(type.value)
    case 'string':
    case 'int32':
    case 'int64':
    case 'bool':
    case 'quantity':
    case 'intOrString':
    case 'any':
      return {}
  }
}

function listFields(fields: Fields, parent: Field | undefined): readonly string[] {
  return sorted(fields).flatMap(([name, field]) =>
    [headOf(name, field)].concat(enumOf(field.type, '  '), describe(fieldBelow(parent?.support, field)), ''),
  )
}

/** A recursive type is not expanded further. */
function listNames(fields: Fields, indent: string, within: readonly Fields[]): readonly string[] {
  return sorted(fields).flatMap(([name, field]) => {
    const below = fieldsOf(field.type)
    const names = within.includes(below) ? [] : listNames(below, `${indent}  `, [...within, below])
    return [headOf(name, field, indent)].concat(names)
  })
}

function headOf(name: string, { type, presence }: Field, indent = '  '): string {
  return `${indent}${name}\t<${typeName(type)}>${presence === 'required' ? ' -required-' : ''}`
}

function sorted(fields: Fields): readonly (readonly [string, Field])[] {
  return Object.entries(fields).toSorted(([one], [other]) => (one < other ? -1 : 1))
}

function describe({ support, presence, value }: Field): readonly string[] {
  const isPlain = presence === 'defaulted' && ['string', 'number', 'boolean'].includes(typeof value)
  const text = `${describeSupport(support)}${isPlain ? ` By default ${JSON.stringify(value)}.` : ''}`
  return wrap(text, widest - 4).map((line) => `    ${line}`)
}

function enumOf(type: AnyType, indent: string): readonly string[] {
  return 'values' in type && type.values !== undefined ? [`${indent}enum: ${type.values.join(', ')}`] : []
}

function typeName(type: AnyType): string {
  switch (type.kind) {
    case 'object':
      return type.name
    case 'list':
      return `[]${typeName(type.item)}`
    case 'map':
      return `map[string]${typeName(type.value)}`
    case 'int32':
    case 'int64':
      return 'integer'
    case 'bool':
      return 'boolean'
    case 'quantity':
      return 'Quantity'
    case 'intOrString':
      return 'IntOrString'
    case 'any':
      return 'Object'
    case 'string':
      return 'string'
  }
}
