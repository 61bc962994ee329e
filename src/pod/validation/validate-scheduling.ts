import type { JsonObject } from '../../base/json.ts'
import { fieldOf } from '../schema/issues.ts'
import type { FieldPath, Issues } from '../schema/issues.ts'
import {
  affinitySchema,
  tolerationSchema,
  topologySpreadConstraintSchema,
} from '../schema/scheduling-schema.ts'
import type { podAffinitySchema, podAffinityTermSchema } from '../schema/scheduling-schema.ts'
import { fillDefaults, list, map, object, optional, string } from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
import { dnsLabel, dnsSubdomain, labelValue, qualifiedName } from './name-rules.ts'
import { validateLabels, validateLabelSelector, validateNodeSelectorTerm } from './validate-metadata.ts'

/** The fields of a pod's spec that have no effect here, as validation looks at them. */
const schedulingSchema = object('PodSpec', {
  nodeSelector: optional(map(string)),
  serviceAccountName: optional(string),
  serviceAccount: optional(string),
  nodeName: optional(string),
  affinity: optional(affinitySchema),
  tolerations: optional(list(tolerationSchema)),
  preemptionPolicy: optional(string),
  topologySpreadConstraints: optional(list(topologySpreadConstraintSchema)),
  securityContext: optional(object('PodSecurityContext', { seLinuxChangePolicy: optional(string) })),
})

/** `spec` with its fields of no effect, their types checked. Source: pkg/apis/core/validation (ValidatePodSpec), 1.36. */
export function validateScheduling(spec: JsonObject, path: FieldPath, issues: Issues): void {
  const fields = fieldOf({ spec: fillDefaults(schedulingSchema, spec) }, 'spec', schedulingSchema)
  if (fields === undefined) return
  validateLabels(fields.nodeSelector ?? {}, [...path, 'nodeSelector'], issues)
  const account = fields.serviceAccountName || fields.serviceAccount || ''
  if (account !== '') issues.name([...path, 'serviceAccountName'], account, dnsSubdomain)
  if ((fields.nodeName ?? '') !== '') issues.name([...path, 'nodeName'], fields.nodeName ?? '', dnsSubdomain)
  if (fields.affinity !== undefined) validateAffinity(fields.affinity, [...path, 'affinity'], issues)
  validateTolerations(fields.tolerations ?? [], [...path, 'tolerations'], issues)
  validateTopologySpread(
    fields.topologySpreadConstraints ?? [],
    [...path, 'topologySpreadConstraints'],
    issues,
  )
  if (fields.securityContext?.seLinuxChangePolicy === 'MountOption') {
    issues.unsupported([...path, 'securityContext', 'seLinuxChangePolicy'], 'MountOption', ['Recursive'])
  }
  const { preemptionPolicy } = fields
  if (preemptionPolicy !== undefined && !preemptionPolicies.includes(preemptionPolicy)) {
    issues.unsupported([...path, 'preemptionPolicy'], preemptionPolicy, preemptionPolicies)
  }
}

const preemptionPolicies = ['Never', 'PreemptLowerPriority']

function validateAffinity(
  { nodeAffinity, podAffinity, podAntiAffinity }: Infer<typeof affinitySchema>,
  path: FieldPath,
  issues: Issues,
): void {
  const terms = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  const required = [...path, 'nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution']
  const termsPath = [...required, 'nodeSelectorTerms']
  if (terms?.length === 0) issues.required(termsPath, 'must have at least one node selector term')
  for (const [index, term] of (terms ?? []).entries()) {
    validateNodeSelectorTerm(term, { anyValue: false }, [...termsPath, index], issues)
  }
  const preferred = [...path, 'nodeAffinity', 'preferredDuringSchedulingIgnoredDuringExecution']
  const wishes = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  for (const [index, { weight, preference }] of wishes.entries()) {
    const at = [...preferred, index]
    validateWeight(weight, at, issues)
    validateNodeSelectorTerm(preference, { anyValue: true }, [...at, 'preference'], issues)
  }
  for (const [name, affinity] of Object.entries({ podAffinity, podAntiAffinity })) {
    if (affinity !== undefined) validatePodAffinity(affinity, [...path, name], issues)
  }
}

function validatePodAffinity(
  affinity: Infer<typeof podAffinitySchema>,
  path: FieldPath,
  issues: Issues,
): void {
  for (const [index, term] of affinity.requiredDuringSchedulingIgnoredDuringExecution.entries()) {
    const at = [...path, 'requiredDuringSchedulingIgnoredDuringExecution', index]
    validatePodAffinityTerm(term, at, issues)
  }
  const wishes = affinity.preferredDuringSchedulingIgnoredDuringExecution
  for (const [index, { weight, podAffinityTerm }] of wishes.entries()) {
    const at = [...path, 'preferredDuringSchedulingIgnoredDuringExecution', index]
    validateWeight(weight, at, issues)
    validatePodAffinityTerm(podAffinityTerm, [...at, 'podAffinityTerm'], issues)
  }
}

/** Source: pkg/apis/core/validation (validatePodAffinityTerm), 1.36. */
function validatePodAffinityTerm(
  term: Infer<typeof podAffinityTermSchema>,
  path: FieldPath,
  issues: Issues,
): void {
  validateLabelSelector(term.labelSelector, [...path, 'labelSelector'], issues)
  validateLabelSelector(term.namespaceSelector, [...path, 'namespaceSelector'], issues)
  for (const [index, name] of term.namespaces.entries()) {
    issues.name([...path, 'namespace'], name, dnsLabel, [...path, 'namespaces', index])
  }
  for (const field of ['matchLabelKeys', 'mismatchLabelKeys'] as const) {
    const at = [...path, field]
    if (term[field].length > 0 && term.labelSelector === undefined) {
      issues.forbidden(at, 'must not be specified when labelSelector is not set')
    } else for (const [index, key] of term[field].entries()) issues.name([...at, index], key, qualifiedName)
  }
  for (const [index, key] of term.matchLabelKeys.entries()) {
    if (!term.mismatchLabelKeys.includes(key)) continue
    const detail = 'exists in both matchLabelKeys and mismatchLabelKeys'
    issues.invalid([...path, 'matchLabelKeys', index], key, detail)
  }
  if (term.topologyKey === '') issues.required([...path, 'topologyKey'], 'can not be empty')
  issues.name([...path, 'topologyKey'], term.topologyKey, qualifiedName)
}

function validateWeight(weight: number, path: FieldPath, issues: Issues): void {
  if (weight <= 0 || weight > 100) issues.invalid([...path, 'weight'], weight, 'must be in the range 1-100')
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

/** Source: pkg/apis/core/validation (ValidateTolerations), 1.36. */
export function validateTolerations(
  tolerations: readonly Infer<typeof tolerationSchema>[],
  path: FieldPath,
  issues: Issues,
): void {
  for (const [index, { key, operator, value, effect, tolerationSeconds }] of tolerations.entries()) {
    const at = [...path, index]
    if (key !== '') issues.name([...at, 'key'], key, qualifiedName)
    else if (operator !== 'Exists') {
      const detail =
        'operator must be Exists when `key` is empty, which means "match all values and all keys"'
      issues.invalid([...at, 'operator'], operator, detail)
    }
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
      issues.invalid([...at, 'effect'], effect, detail)
    }
    validateTolerationValue(operator, value, at, issues)
    if (effect !== '' && !effects.includes(effect)) issues.unsupported([...at, 'effect'], effect, effects)
  }
}

function validateTolerationValue(operator: string, value: string, path: FieldPath, issues: Issues): void {
  const at = [...path, 'operator']
  if (operator === 'Exists') {
    if (value !== '') issues.invalid(at, value, "value must be empty when `operator` is 'Exists'")
  } else if (operator === '' || operator === 'Equal') {
    const complaints = labelValue(value)
    if (complaints.length > 0) issues.invalid(at, value, complaints.join(';'))
  } else if (operator === 'Lt' || operator === 'Gt') {
    issues.unsupported(at, operator, ['Equal', 'Exists', 'Lt', 'Gt'])
  } else issues.unsupported(at, operator, ['Equal', 'Exists'])
}

type Constraint = Infer<typeof topologySpreadConstraintSchema>

const actions = ['DoNotSchedule', 'ScheduleAnyway']
const policies = ['Honor', 'Ignore']

/** Source: pkg/apis/core/validation (validateTopologySpreadConstraints), 1.36. */
function validateTopologySpread(constraints: readonly Constraint[], path: FieldPath, issues: Issues): void {
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
