import type { ServedKind } from '../../api/served-kind.ts'
import { isKeptKind, keptKinds, isObjectKind, objectKinds } from '../../pod/objects/object-kinds.ts'
import { fieldBelow, string } from '../../pod/schema/types.ts'
import { objectMetaSchema, podSchema } from '../../pod/schema/pod-schema.ts'
import type { Fields, ObjectType } from '../../pod/schema/types.ts'
import { nearestName } from '../../base/text.ts'
import { UsageError } from '../arguments/usage-error.ts'
import type { Verb } from '../arguments/verb.ts'
import { explainType, fieldsOf } from '../output/explanation.ts'
import type { Explained } from '../output/explanation.ts'
import { requireKind } from '../arguments/kind-argument.ts'

export const explainVerb: Verb = {
  usage: 'explain KIND[.FIELD...] [--recursive]',
  help: `Shows the fields that manifests of a kind may have, their types, and what podd does with each: whether it works as in
Kubernetes, has no effect here, or is refused. It needs no daemon; the fields are those that this podd decodes.
What a field means, the Kubernetes documentation tells.`,
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
  let found: Explained = { name: undefined, type: root, field: undefined }
  for (const name of names) {
    const fields: Fields = fieldsOf(found.type)
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    if (field === undefined) {
      const near = nearestName(name, Object.keys(fields))
      throw new UsageError(
        `field ${JSON.stringify(name)} does not exist`,
        near === undefined
          ? Object.keys(fields).length === 0
            ? `${found.name ?? root.name} has no fields.`
            : `There are ${Object.keys(fields).toSorted().join(', ')}.`
          : `Did you mean ${near}?`,
      )
    }
    found = { name, type: field.type, field: fieldBelow(found.field?.support, field) }
  }
  return found
}
