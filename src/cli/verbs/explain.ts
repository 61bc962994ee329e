import { splitApiVersion } from '../../api/resource.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import { isKeptKind, isObjectKind, keptKinds, objectKinds } from '../../pod/objects/object-kinds.ts'
import { objectMetaSchema, podSchema } from '../../pod/schema/pod-schema.ts'
import { describeField } from '../../pod/schema/field-words.ts'
import { fieldBelow, string } from '../../pod/schema/types.ts'
import type { AnyType, Field, Fields, ObjectType } from '../../pod/schema/types.ts'
import { requireKind } from '../arguments/kind-argument.ts'
import { nearestOr, UsageError } from '../arguments/parse-arguments.ts'
import type { Verb } from '../arguments/verb.ts'
import { wrap } from '../output/table.ts'

export const explainVerb: Verb = {
  usage: 'explain KIND[.FIELD...] [--recursive]',
  help: `Shows the fields that manifests of a kind may have, their types, what they mean, and where podd differs from Kubernetes:
what has no effect here, and what is refused. It needs no daemon; the fields are those that this podd decodes.`,
  flags: [{ name: 'recursive', doc: 'The names of all fields below, without their descriptions.' }],
  examples: [
    ['explain pod.spec.containers', 'what a container may have'],
    ['explain pods --recursive', 'all fields of a pod'],
    ['explain configmap', 'the fields of a ConfigMap'],
  ],
  async run({ args }) {
    const [path, extra] = args.positionals
    if (path === undefined) throw new UsageError('explain what?', 'Try `podd explain pod.spec`.')
    if (extra !== undefined) throw new UsageError(`explain takes no argument ${JSON.stringify(extra)}`)
    const [word = '', ...names] = path.split('.').filter((part) => part !== '')
    const kind = requireKind(word)
    const text = explainType(kind, findField(schemaOf(kind), names), args.has('recursive'))
    return { kind: 'text', text }
  },
}

function schemaOf({ kind }: ServedKind): ObjectType<Fields> {
  if (kind === 'Pod') return podSchema
  if (isObjectKind(kind)) return objectKinds[kind].schema
  if (isKeptKind(kind)) return keptKinds[kind].schema
  const type = (of: Fields[string]['type']): Fields[string] => ({
    type: of,
    presence: 'optional',
    support: { kind: 'supported', note: 'podd creates these objects; they are not written in manifests' },
  })
  const fields = { apiVersion: type(string), kind: type(string), metadata: type(objectMetaSchema) }
  return { kind: 'object', name: kind, fields }
}

/** What a path of fields leads to; lists and maps are passed through. Throws UsageError. */
function findField(root: ObjectType<Fields>, names: readonly string[]): Explained {
  let found: Explained = { name: undefined, type: root, field: undefined, owner: '' }
  for (const name of names) {
    const fields: Fields = fieldsOf(found.type)
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field === undefined) {
      const known = Object.keys(fields)
      const otherwise =
        known.length === 0
          ? `${found.name ?? root.name} has no fields.`
          : `There are ${known.toSorted().join(', ')}.`
      throw new UsageError(`field ${JSON.stringify(name)} does not exist`, nearestOr(name, known, otherwise))
    }
    const owner = objectOf(found.type)?.name ?? ''
    found = { name, type: field.type, field: fieldBelow(found.field?.support, field), owner }
  }
  return found
}

/** A type, and the field that has it, as it is below its parents; the kind itself has neither name nor field. */
interface Explained {
  readonly name: string | undefined
  readonly type: AnyType
  readonly field: Field | undefined
  /** The type that has the field. */
  readonly owner: string
}

const widest = 80

/** The fields of a type as `kubectl explain` shows them (`kubectl/pkg/explain/v2/templates/plaintext.tmpl`, 1.36). */
function explainType(
  kind: ServedKind,
  { name = '', type, field, owner }: Explained,
  recursive: boolean,
): string {
  const { group, version } = splitApiVersion(kind.apiVersion)
  const fields = fieldsOf(type)
  const told = field === undefined ? [] : [...describe(owner, name, field), '']
  return [
    ...(group === '' ? [] : [`GROUP:      ${group}`]),
    `KIND:       ${kind.kind}`,
    `VERSION:    ${version}`,
    '',
    ...(name === '' ? [] : [`FIELD: ${name} <${typeName(type)}>`, ...enumOf(type, ''), '']),
    ...(told.length === 0 ? [] : ['DESCRIPTION:', ...told]),
    ...(Object.keys(fields).length === 0
      ? []
      : ['FIELDS:', ...(recursive ? listNames(fields, '  ', []) : listFields(type, field))]),
    '',
  ].join('\n')
}

/** What lists and maps are of, too. */
function objectOf(type: AnyType): ObjectType<Fields> | undefined {
  if (type.kind === 'object') return type
  if (type.kind === 'list') return objectOf(type.item)
  return type.kind === 'map' ? objectOf(type.value) : undefined
}

function fieldsOf(type: AnyType): Fields {
  return objectOf(type)?.fields ?? {}
}

function listFields(type: AnyType, parent: Field | undefined): readonly string[] {
  const owner = objectOf(type)?.name ?? ''
  return sorted(fieldsOf(type)).flatMap(([name, field]) => {
    const told = describe(owner, name, fieldBelow(parent?.support, field))
    return [headOf(name, field)].concat(enumOf(field.type, '  '), told, '')
  })
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

function describe(owner: string, name: string, { support, presence, value }: Field): readonly string[] {
  const isPlain = presence === 'defaulted' && ['string', 'number', 'boolean'].includes(typeof value)
  const told = describeField(owner, name, support)
  const text = isPlain ? `${told} By default ${JSON.stringify(value)}.` : told
  return wrap(text, widest - 4).map((line) => `    ${line}`)
}

function enumOf(type: AnyType, indent: string): readonly string[] {
  return 'values' in type && type.values !== undefined ? [`${indent}enum: ${type.values.join(', ')}`] : []
}

const scalarNames = {
  int32: 'integer',
  int64: 'integer',
  bool: 'boolean',
  quantity: 'Quantity',
  intOrString: 'IntOrString',
  any: 'Object',
  string: 'string',
}

function typeName(type: AnyType): string {
  if (type.kind === 'object') return type.name
  if (type.kind === 'list') return `[]${typeName(type.item)}`
  return type.kind === 'map' ? `map[string]${typeName(type.value)}` : scalarNames[type.kind]
}
