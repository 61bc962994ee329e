import { isJsonObject } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { Issues, NameRule } from '../schema/issues.ts'
import { ownerReferenceSchema } from '../schema/pod-schema.ts'
import type { ObjectMeta } from '../schema/pod-schema.ts'
import type { labelSelectorSchema, nodeSelectorTermSchema } from '../schema/scheduling-schema.ts'
import { int64, list, object, optional, readAs, string } from '../schema/types.ts'
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
export function validateMetadata(
  metadata: ObjectMeta,
  issues: Issues,
  nameRule: NameRule = dnsSubdomain,
): void {
  const { name, namespace, labels, annotations } = metadata
  if (name === '') issues.of('name').required('name or generateName is required')
  else issues.of('name').name(name, nameRule)
  issues.of('namespace').name(namespace, dnsLabel)
  validateLabels(labels, issues.of('labels'))
  let annotationBytes = 0
  for (const [key, value] of Object.entries(annotations)) {
    issues.of('annotations').entry(key, key, (name) => qualifiedName(name.toLowerCase()))
    annotationBytes += Buffer.byteLength(key) + Buffer.byteLength(value)
  }
  if (annotationBytes > maxAnnotationBytes) issues.of('annotations').tooLong(maxAnnotationBytes)
}

/** Fields that a dump of a cluster carries, which have no effect here. */
export function validateClusterMetadata(kind: string, metadata: Json | undefined, issues: Issues): void {
  if (!isJsonObject(metadata)) return
  validateTemplateOfName(metadata, issues)
  const fields = readAs(clusterMetadataSchema, metadata)
  if (!newGeneration.includes(kind)) issues.of('generation').range(fields?.generation, 0)
  for (const [index, finalizer] of (fields?.finalizers ?? []).entries()) {
    issues.of('finalizers').name(finalizer, qualifiedName, issues.of('finalizers', index))
    if (kind !== 'RuntimeClass') validateFinalizer(finalizer, issues.of('finalizers', index))
  }
  validateOwners(fields?.ownerReferences ?? [], issues.of('ownerReferences'))
}

/** Kinds whose generation the API server sets, whatever was given (`PrepareForCreate` in pkg/registry). */
const newGeneration: readonly string[] = ['Pod', 'PriorityClass']

/** The API server makes a name of it, which has to be good as well. Source: k8s.io/apiserver/pkg/storage/names, 1.36. */
function validateTemplateOfName({ name, generateName }: JsonObject, issues: Issues): void {
  if (typeof generateName !== 'string' || generateName === '' || (name ?? '') !== '') return
  issues.of('generateName').name(generateName.replace(/(?<=[^-])-$/, 'a'), dnsSubdomain)
  const generated = `${generateName.slice(0, longestTemplate)}xxxxx`
  issues.of('name').name(generated, dnsSubdomain, issues.of('generateName'))
}

const longestTemplate = 58

/** Source: pkg/apis/core/validation (validateKubeFinalizerName), 1.36. */
function validateFinalizer(finalizer: string, issues: Issues): void {
  if (finalizer.includes('/') || standardFinalizers.includes(finalizer)) return
  issues.invalid(finalizer, 'name is neither a standard finalizer name nor is it fully qualified')
}

const standardFinalizers = ['kubernetes', 'orphan', 'foregroundDeletion']

/** Source: k8s.io/apimachinery/pkg/api/validation (ValidateOwnerReferences), 1.36. */
function validateOwners(owners: readonly Infer<typeof ownerReferenceSchema>[], issues: Issues): void {
  let controller: string | undefined
  for (const [index, owner] of owners.entries()) {
    const [version = '', ...more] = owner.apiVersion.split('/').reverse()
    const near = issues.of(index)
    if (version === '' || more.length > 1)
      issues.of('apiVersion').invalid(owner.apiVersion, 'version must not be empty', near)
    for (const field of ['kind', 'name', 'uid'] as const) {
      if (owner[field] === '') issues.of(field).invalid('', 'must not be empty', near)
    }
    if (owner.apiVersion === 'v1' && owner.kind === 'Event') {
      issues.invalid(owner, '/v1, Kind=Event is disallowed from being an owner', near)
    }
    if (owner.controller !== true) continue
    const name = `${owner.kind}/${owner.name}`
    if (controller === undefined) controller = name
    else {
      const detail = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${name}`
      issues.invalid(owners, detail, near)
    }
  }
}

type Requirement = Infer<typeof labelSelectorSchema>['matchExpressions'][number]

/** Keys and values of labels; complaints are about the map as a whole, as the API server's are. */
export function validateLabels(labels: Readonly<Record<string, string>>, issues: Issues): void {
  for (const [key, value] of Object.entries(labels)) {
    issues.entry(key, key, qualifiedName)
    issues.entry(key, value, labelValue)
  }
}

/** Source: k8s.io/apimachinery/pkg/apis/meta/v1/validation (ValidateLabelSelector), 1.36. */
export function validateLabelSelector(
  selector: Infer<typeof labelSelectorSchema> | undefined,
  issues: Issues,
): void {
  if (selector === undefined) return
  validateLabels(selector.matchLabels, issues.of('matchLabels'))
  for (const [index, requirement] of selector.matchExpressions.entries()) {
    const at = issues.of('matchExpressions', index)
    validateOperator(requirement, at)
    at.of('key').name(requirement.key, qualifiedName)
    validateValues(requirement.values, at)
  }
}

/**
 * `anyValue`: values that no label can have are accepted, as in a term that is merely preferred.
 * Source: pkg/apis/core/validation (ValidateNodeSelectorTerm), 1.36.
 */
export function validateNodeSelectorTerm(
  { matchExpressions, matchFields }: Infer<typeof nodeSelectorTermSchema>,
  { anyValue }: { readonly anyValue: boolean },
  issues: Issues,
): void {
  for (const [index, requirement] of matchExpressions.entries()) {
    const at = issues.of('matchExpressions', index)
    if (requirement.operator === 'Gt' || requirement.operator === 'Lt') {
      const detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
      if (requirement.values.length !== 1) at.of('values').required(detail)
    } else validateOperator(requirement, at)
    at.of('key').name(requirement.key, qualifiedName)
    if (!anyValue) validateValues(requirement.values, at)
  }
  for (const [index, requirement] of matchFields.entries()) {
    validateFieldRequirement(requirement, issues.of('matchFields', index))
  }
}

function validateFieldRequirement({ key, operator, values }: Requirement, issues: Issues): void {
  if (operator !== 'In' && operator !== 'NotIn') {
    issues.of('operator').invalid(operator, 'not a valid selector operator')
  } else if (values.length !== 1) {
    const detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
    issues.of('values').required(detail)
  }
  if (key !== 'metadata.name') issues.of('key').invalid(key, 'not a valid field selector key')
  else for (const [at, value] of values.entries()) issues.of('values', at).name(value, dnsSubdomain)
}

function validateOperator({ operator, values }: Requirement, issues: Issues): void {
  const at = issues.of('values')
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) {
      at.required("must be specified when `operator` is 'In' or 'NotIn'")
    }
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0) {
      at.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
    }
  } else issues.of('operator').invalid(operator, 'not a valid selector operator')
}

function validateValues(values: readonly string[], issues: Issues): void {
  for (const [index, value] of values.entries()) issues.of('values', index).name(value, labelValue)
}
