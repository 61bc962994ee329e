import { createHash } from 'node:crypto'
import { kubernetesVersion } from '../../api/resource.ts'
import type { ApiResource } from '../../api/served-kind.ts'
import { isKeptKind, isObjectKind, keptKinds, objectKinds } from '../../pod/objects/object-kinds.ts'
import { describeField } from '../../pod/schema/field-words.ts'
import { objectMetaSchema, podSchema } from '../../pod/schema/pod-schema.ts'
import { describeSupport, fieldBelow } from '../../pod/schema/types.ts'
import type { AnyType, Field, Fields, ObjectType } from '../../pod/schema/types.ts'
import { groupsOf } from './discovery-routes.ts'

/** The documents of each group and version, as clients find them: `api/v1`, `apis/node.k8s.io/v1`. */
export function openApiDocuments(resources: readonly ApiResource[]): ReadonlyMap<string, string> {
  return new Map(
    groupsOf(resources).map(({ group, version, resources: own }) => [
      group === '' ? `api/${version}` : `apis/${group}/${version}`,
      JSON.stringify(openApiDocument(own)),
    ]),
  )
}

/** GET /openapi/v3: the address of each document, which has a hash of its content. */
export function openApiIndex(documents: ReadonlyMap<string, string>): object {
  const paths = [...documents].map(([name, text]) => {
    const hash = createHash('sha256').update(text).digest('hex').slice(0, 32).toUpperCase()
    return [name, { serverRelativeURL: `/openapi/v3/${name}?hash=${hash}` }]
  })
  return { paths: Object.fromEntries(paths) }
}

/**
 * The schemas of a group's objects, from the tables that manifests are decoded by. Writes take `fieldValidation`, so
 * that clients leave validation to podd. The schemas have no merge keys, so that clients use those they know.
 */
function openApiDocument(resources: readonly ApiResource[]): object {
  const schemas = new OpenApiSchemas()
  const paths = new Map<string, object>()
  for (const resource of resources) {
    const { group, version, kind, namespaced, verbs } = resource
    const gvk = { group, version, kind }
    addSchema(schemas, kind, gvk)
    const base = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
    const list = `${base}/${namespaced ? 'namespaces/{namespace}/' : ''}${resource.resource}`
    const operation = (verb: string, parameters: readonly string[]): object => ({
      operationId: `${verb}${kind}`,
      'x-kubernetes-group-version-kind': gvk,
      'x-kubernetes-action': verb,
      parameters: parameters.map((name) => ({ name, in: 'query', schema: { type: 'string' } })),
      responses: { 200: { description: 'OK' } },
    })
    const writing = ['dryRun', 'fieldManager', 'fieldValidation']
    const onList = {
      ...(verbs.includes('list') && { get: operation('list', ['labelSelector', 'fieldSelector']) }),
      ...(verbs.includes('create') && { post: operation('post', writing) }),
    }
    const onObject = {
      ...(verbs.includes('get') && { get: operation('get', []) }),
      ...(verbs.includes('update') && { put: operation('put', writing) }),
      ...(verbs.includes('patch') && { patch: operation('patch', [...writing, 'force']) }),
      ...(verbs.includes('delete') && { delete: operation('delete', ['dryRun']) }),
    }
    if (Object.keys(onList).length > 0) paths.set(list, onList)
    if (Object.keys(onObject).length > 0) paths.set(`${list}/{name}`, onObject)
  }
  return {
    openapi: '3.0.0',
    info: { title: 'podd', version: kubernetesVersion },
    paths: Object.fromEntries(paths),
    components: { schemas: schemas.toJson() },
  }
}

function addSchema(
  schemas: OpenApiSchemas,
  kind: string,
  gvk: { readonly group: string; readonly version: string; readonly kind: string },
): void {
  const extra = { 'x-kubernetes-group-version-kind': [gvk] }
  if (kind === 'Pod') schemas.add(podSchema, extra)
  else if (isObjectKind(kind)) schemas.add(objectKinds[kind].schema, extra)
  else if (isKeptKind(kind)) schemas.add(keptKinds[kind].schema, extra)
  else
    schemas.set(kind, {
      type: 'object',
      description: 'Created by podd; it is not written in manifests.',
      properties: {
        apiVersion: { type: 'string' },
        kind: { type: 'string' },
        metadata: { $ref: `#/components/schemas/${schemas.add(objectMetaSchema)}` },
      },
      ...extra,
    })
}

type OpenApiSchema = Readonly<Record<string, unknown>>

/** Collects the schemas of objects by their names, each with those that it refers to. */
class OpenApiSchemas {
  readonly #schemas = new Map<string, OpenApiSchema>()
  /** By the answer of a parent that isn't supported, else by an empty text. */
  readonly #names = new Map<ObjectType<Fields>, Map<string, string>>()

  /** The schemas by name, as `components.schemas` holds them. */
  toJson(): Readonly<Record<string, OpenApiSchema>> {
    return Object.fromEntries([...this.#schemas].sort(([a], [b]) => (a < b ? -1 : 1)))
  }

  /** @param extra fields in addition to the type's own */
  add(type: ObjectType<Fields>, extra: OpenApiSchema = {}): string {
    return this.#add(type, undefined, extra)
  }

  /** A type has a schema for each answer that its fields inherit. */
  #add(type: ObjectType<Fields>, parent: Field['support'] | undefined, extra: OpenApiSchema = {}): string {
    const answer = parent === undefined || parent.kind === 'supported' ? '' : describeSupport(parent)
    const names = this.#names.get(type) ?? new Map<string, string>()
    const known = names.get(answer)
    if (known !== undefined) return known
    const name = this.#freeName(type.name)
    this.#names.set(type, names.set(answer, name))
    // It may refer to itself.
    this.#schemas.set(name, {})
    const fields = Object.entries(type.fields)
    const required = fields.flatMap(([field, { presence }]) => (presence === 'required' ? [field] : []))
    this.#schemas.set(name, {
      type: 'object',
      description: 'What each field means, and what podd does with it where that differs from Kubernetes.',
      properties: Object.fromEntries(
        fields.map(([field, entry]) => [field, this.#property(type.name, field, fieldBelow(parent, entry))]),
      ),
      ...(required.length > 0 && { required }),
      ...extra,
    })
    return name
  }

  /** Adds a hand-written schema. */
  set(name: string, schema: OpenApiSchema): void {
    this.#schemas.set(name, schema)
  }

  /** Types of the same name with different fields get a number. */
  #freeName(wanted: string): string {
    let name = wanted
    for (let count = 2; this.#schemas.has(name); count += 1) name = `${wanted}${count}`
    return name
  }

  #property(owner: string, name: string, { type, presence, value, support }: Field): OpenApiSchema {
    const description = describeField(owner, name, support)
    const schema = this.#schemaOf(type, support)
    const isPlain = presence === 'defaulted' && (typeof value !== 'object' || value === null)
    const extra = { description, ...(isPlain && { default: value }) }
    // A reference allows no other fields beside it (OpenAPI 3.0).
    return '$ref' in schema ? { allOf: [schema], ...extra } : { ...schema, ...extra }
  }

  #schemaOf(type: AnyType, support: Field['support']): OpenApiSchema {
    switch (type.kind) {
      case 'object':
        return { $ref: `#/components/schemas/${this.#add(type, support)}` }
      case 'list':
        return { type: 'array', items: this.#schemaOf(type.item, support) }
      case 'map':
        return { type: 'object', additionalProperties: this.#schemaOf(type.value, support) }
      case 'string':
        return {
          type: 'string',
          ...(type.values !== undefined && { enum: type.values }),
          ...(type.format !== undefined && { format: type.format }),
        }
      case 'int32':
      case 'int64':
        return { type: 'integer', format: type.kind }
      case 'bool':
        return { type: 'boolean' }
      case 'quantity':
        this.#schemas.set('Quantity', { type: 'string', description: 'A quantity, such as 500m or 64Mi.' })
        return { $ref: '#/components/schemas/Quantity' }
      case 'intOrString':
        return { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] }
      case 'any':
        return { type: 'object' }
    }
  }
}
