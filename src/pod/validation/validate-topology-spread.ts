import type { FieldPath } from '../schema/field-path.ts'
import type { topologySpreadConstraintSchema } from '../schema/scheduling-schema.ts'
import type { Infer } from '../schema/types.ts'
import type { Issues } from './issues.ts'
import { qualifiedName } from './name-rules.ts'
import { validateLabelSelector } from './validate-selectors.ts'

type Constraint = Infer<typeof topologySpreadConstraintSchema>

const actions = ['DoNotSchedule', 'ScheduleAnyway']
const policies = ['Honor', 'Ignore']

/** Source: pkg/apis/core/validation (validateTopologySpreadConstraints), 1.36. */
export function validateTopologySpread(
  constraints: readonly Constraint[],
  path: FieldPath,
  issues: Issues,
): void {
  for (const [index, constraint] of constraints.entries()) {
    const at = [...path, index]
    validateConstraint(constraint, at, issues)
    const { topologyKey, whenUnsatisfiable } = constraint
    const isRepeated = constraints
      .slice(index + 1)
      .some((other) => other.topologyKey === topologyKey && other.whenUnsatisfiable === whenUnsatisfiable)
    if (isRepeated) {
      issues.duplicate([...at, '{topologyKey, whenUnsatisfiable}'], `{${topologyKey}, ${whenUnsatisfiable}}`)
    }
  }
}

function validateConstraint(constraint: Constraint, path: FieldPath, issues: Issues): void {
  const { maxSkew, topologyKey, whenUnsatisfiable, minDomains, labelSelector } = constraint
  if (maxSkew <= 0) issues.invalid([...path, 'maxSkew'], maxSkew, 'must be greater than zero')
  if (topologyKey === '') issues.required([...path, 'topologyKey'], 'can not be empty')
  if (!actions.includes(whenUnsatisfiable)) {
    issues.unsupported([...path, 'whenUnsatisfiable'], whenUnsatisfiable, actions)
  }
  if (minDomains !== undefined) {
    const at = [...path, 'minDomains']
    if (minDomains <= 0) issues.invalid(at, minDomains, 'must be greater than zero')
    if (whenUnsatisfiable !== 'DoNotSchedule') {
      const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`
      issues.invalid(at, minDomains, detail)
    }
  }
  for (const field of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
    const policy = constraint[field]
    if (policy !== undefined && !policies.includes(policy)) {
      issues.unsupported([...path, field], policy, policies)
    }
  }
  const keysPath = [...path, 'matchLabelKeys']
  if (constraint.matchLabelKeys.length > 0 && labelSelector === undefined) {
    issues.forbidden(keysPath, 'must not be specified when labelSelector is not set')
  } else {
    for (const [index, key] of constraint.matchLabelKeys.entries()) {
      issues.name([...keysPath, index], key, qualifiedName)
    }
  }
  validateLabelSelector(labelSelector, [...path, 'labelSelector'], issues)
}
