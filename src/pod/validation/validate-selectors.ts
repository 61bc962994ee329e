import type { FieldPath } from '../schema/field-path.ts'
import type { labelSelectorSchema, nodeSelectorTermSchema } from '../schema/scheduling-schema.ts'
import type { Infer } from '../schema/types.ts'
import type { Issues } from './issues.ts'
import { dnsSubdomain, labelValue, qualifiedName } from './name-rules.ts'

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
