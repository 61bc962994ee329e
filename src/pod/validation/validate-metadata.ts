import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldPath } from '../schema/field-path.ts'
import { fillDefaults } from '../schema/fill-defaults.ts'
import type { ObjectMeta } from '../schema/pod-schema.ts'
import { ownerReferenceSchema } from '../schema/pod-schema.ts'
import type { Infer } from '../schema/types.ts'
import { int64, list, object, optional, string } from '../schema/types.ts'
import type { Issues } from './issues.ts'
import { fieldOf } from './issues.ts'
import { validateLabels } from './validate-selectors.ts'
import { dnsLabel, dnsSubdomain, qualifiedName } from './name-rules.ts'

/** What a control plane writes, as validation looks at it. */
const clusterMetadataSchema = object('ObjectMeta', {
  finalizers: optional(list(string)),
  generation: optional(int64),
  ownerReferences: optional(list(ownerReferenceSchema)),
})

const maxAnnotationBytes = 256 * 1024

/** Source: k8s.io/apimachinery/pkg/api/validation/objectmeta.go, 1.36. */
export function validateMetadata(metadata: ObjectMeta, path: FieldPath, issues: Issues): void {
  const { name, namespace, labels, annotations } = metadata
  if (name === '') issues.required([...path, 'name'], 'name or generateName is required')
  else issues.name([...path, 'name'], name, dnsSubdomain)
  issues.name([...path, 'namespace'], namespace, dnsLabel)
  validateLabels(labels, [...path, 'labels'], issues)
  let annotationBytes = 0
  for (const [key, value] of Object.entries(annotations)) {
    issues.entry([...path, 'annotations'], key, key, (name) => qualifiedName(name.toLowerCase()))
    annotationBytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (annotationBytes > maxAnnotationBytes) issues.tooLong([...path, 'annotations'], maxAnnotationBytes)
}

/** Fields that a dump of a cluster carries, which have no effect here. */
export function validateClusterMetadata(
  kind: string,
  metadata: Json | undefined,
  path: FieldPath,
  issues: Issues,
): void {
  if (!isJsonObject(metadata)) return
  validateTemplateOfName(metadata, path, issues)
  const filled = { metadata: fillDefaults(clusterMetadataSchema, metadata) }
  const fields = fieldOf(filled, 'metadata', clusterMetadataSchema)
  if (!newGeneration.includes(kind)) issues.range([...path, 'generation'], fields?.generation, 0)
  for (const [index, finalizer] of (fields?.finalizers ?? []).entries()) {
    issues.name([...path, 'finalizers'], finalizer, qualifiedName, [...path, 'finalizers', index])
    if (kind !== 'RuntimeClass') validateFinalizer(finalizer, [...path, 'finalizers', index], issues)
  }
  validateOwners(fields?.ownerReferences ?? [], [...path, 'ownerReferences'], issues)
}

/** Kinds whose generation the API server sets, whatever was given (`PrepareForCreate` in pkg/registry). */
const newGeneration: readonly string[] = ['Pod', 'PriorityClass']

/**
 * The API server makes a name of it, which has to be good as well.
 * Source: k8s.io/apiserver/pkg/storage/names, 1.36.
 */
function validateTemplateOfName({ name, generateName }: JsonObject, path: FieldPath, issues: Issues): void {
  if (typeof generateName !== 'string' || generateName === '' || (name ?? '') !== '') return
  issues.name([...path, 'generateName'], generateName.replace(/(?<=[^-])-$/, 'a'), dnsSubdomain)
  const generated = `${generateName.slice(0, longestTemplate)}xxxxx`
  issues.name([...path, 'name'], generated, dnsSubdomain, [...path, 'generateName'])
}

const longestTemplate = 58

/** Source: pkg/apis/core/validation (validateKubeFinalizerName), 1.36. */
function validateFinalizer(finalizer: string, path: FieldPath, issues: Issues): void {
  if (finalizer.includes('/') || standardFinalizers.includes(finalizer)) return
  issues.invalid(path, finalizer, 'name is neither a standard finalizer name nor is it fully qualified')
}

const standardFinalizers = ['kubernetes', 'orphan', 'foregroundDeletion']

/** Source: k8s.io/apimachinery/pkg/api/validation (ValidateOwnerReferences), 1.36. */
function validateOwners(
  owners: readonly Infer<typeof ownerReferenceSchema>[],
  path: FieldPath,
  issues: Issues,
): void {
  let controller: string | undefined
  for (const [index, owner] of owners.entries()) {
    const [version = '', ...more] = owner.apiVersion.split('/').reverse()
    const near = [...path, index]
    if (version === '' || more.length > 1)
      issues.invalid([...path, 'apiVersion'], owner.apiVersion, 'version must not be empty', near)
    for (const field of ['kind', 'name', 'uid'] as const) {
      if (owner[field] === '') issues.invalid([...path, field], '', 'must not be empty', near)
    }
    if (owner.apiVersion === 'v1' && owner.kind === 'Event') {
      issues.invalid(path, owner, '/v1, Kind=Event is disallowed from being an owner', near)
    }
    if (owner.controller !== true) continue
    const name = `${owner.kind}/${owner.name}`
    if (controller === undefined) controller = name
    else {
      const detail = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${name}`
      issues.invalid(path, owners, detail, near)
    }
  }
}
