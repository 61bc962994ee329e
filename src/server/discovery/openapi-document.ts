import { createHash } from 'node:crypto'
import type { ApiResource } from '../../api/served-kind.ts'
import { kubernetesVersion } from '../../api/resource.ts'
import { isKeptKind, keptKinds, isObjectKind, objectKinds } from '../../pod/objects/object-kinds.ts'
import { objectMetaSchema, podSchema } from '../../pod/schema/pod-schema.ts'
import { OpenApiSchemas } from './openapi-schemas.ts'
import { groupsOf } from './discovery-documents.ts'

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
  const paths = [...documents].map(([name, text]) => [
    name,
    { serverRelativeURL: `/openapi/v3/${name}?hash=${hashOf(text)}` },
  ])
  return { paths: Object.fromEntries(paths) }
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32).toUpperCase()
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
