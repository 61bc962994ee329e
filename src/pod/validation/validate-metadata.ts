import { isJsonObject } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { fieldOf } from '../schema/issues.ts'
import type { FieldPath, Issues } from '../schema/issues.ts'
import { ownerReferenceSchema } from '../schema/pod-schema.ts'
import type { ObjectMeta } from '../schema/pod-schema.ts'
import type { labelSelectorSchema, nodeSelectorTermSchema } from '../schema/scheduling-schema.ts'
import { fillDefaults, int64, list, object, optional, string } from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
import { dnsLabel, dnsSubdomain, labelValue, qualifiedName } from './name-rules.ts'

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

/** The API server makes a name of it, which has to be good as well. Source: k8s.io/apiserver/pkg/storage/names, 1.36. */
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

type Requirement = Infer<typeof labelSelectorSchema>['matchExpressions'][number]

/** Keys and values of labels; complaints are about the map as a whole, as the API server's are. */
export function validateLabels(
  labels: Readonly<Record<string, string>>,
  path: FieldPath,
  issues: Issues,
): void {
  for (const [key, value] of Object.entries(labels)) {
    issues.entry(path, key, key, qualifiedName)
    issues.entry(path, key, value, labelValue)
  }
}

/** Source: k8s.io/apimachinery/pkg/apis/meta/v1/validation (ValidateLabelSelector), 1.36. */
export function validateLabelSelector(
  selector: Infer<typeof labelSelectorSchema> | undefined,
  path: FieldPath,
  issues: Issues,
): void {
  if (selector === undefined) return
  validateLabels(selector.matchLabels, [...path, 'matchLabels'], issues)
  for (const [index, requirement] of selector.matchExpressions.entries()) {
    const at = [...path, 'matchExpressions', index]
    validateOperator(requirement, at, issues)
    issues.name([...at, 'key'], requirement.key, qualifiedName)
    validateValues(requirement.values, at, issues)
  }
}

/**
 * `anyValue`: values that no label can have are accepted, as in a term that is merely preferred.
 * Source: pkg/apis/core/validation (ValidateNodeSelectorTerm), 1.36.
 */
export function validateNodeSelectorTerm(
  { matchExpressions, matchFields }: Infer<typeof nodeSelectorTermSchema>,
  { anyValue }: { readonly anyValue: boolean },
  path: FieldPath,
  issues: Issues,
): void {
  for (const [index, requirement] of matchExpressions.entries()) {
    const at = [...path, 'matchExpressions', index]
    if (requirement.operator === 'Gt' || requirement.operator === 'Lt') {
      const detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
      if (requirement.values.length !== 1) issues.required([...at, 'values'], detail)
    } else validateOperator(requirement, at, issues)
    issues.name([...at, 'key'], requirement.key, qualifiedName)
    if (!anyValue) validateValues(requirement.values, at, issues)
  }
  for (const [index, requirement] of matchFields.entries()) {
    validateFieldRequirement(requirement, [...path, 'matchFields', index], issues)
  }
}

function validateFieldRequirement(
  { key, operator, values }: Requirement,
  path: FieldPath,
  issues: Issues,
): void {
  if (operator !== 'In' && operator !== 'NotIn') {
    issues.invalid([...path, 'operator'], operator, 'not a valid selector operator')
  } else if (values.length !== 1) {
    const detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
    issues.required([...path, 'values'], detail)
  }
  if (key !== 'metadata.name') issues.invalid([...path, 'key'], key, 'not a valid field selector key')
  else for (const [at, value] of values.entries()) issues.name([...path, 'values', at], value, dnsSubdomain)
}

function validateOperator({ operator, values }: Requirement, path: FieldPath, issues: Issues): void {
  const at = [...path, 'values']
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) {
      issues.required(at, "must be specified when `operator` is 'In' or 'NotIn'")
    }
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0) {
      issues.forbidden(at, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    }
  } else issues.invalid([...path, 'operator'], operator, 'not a valid selector operator')
}

function validateValues(values: readonly string[], path: FieldPath, issues: Issues): void {
  for (const [index, value] of values.entries()) issues.name([...path, 'values', index], value, labelValue)
}
