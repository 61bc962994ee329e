import type { JsonObject } from '../../base/json.ts'
import type { Issues } from '../schema/issues.ts'
import {
  affinitySchema,
  tolerationSchema,
  topologySpreadConstraintSchema,
} from '../schema/scheduling-schema.ts'
import type { podAffinitySchema, podAffinityTermSchema } from '../schema/scheduling-schema.ts'
import { list, map, object, optional, readAs, string } from '../schema/types.ts'
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
export function validateScheduling(spec: JsonObject, issues: Issues): void {
  const fields = readAs(schedulingSchema, spec)
  if (fields === undefined) return
  validateLabels(fields.nodeSelector ?? {}, issues.of('nodeSelector'))
  const account = fields.serviceAccountName || fields.serviceAccount || ''
  issues.of('serviceAccountName').optionalName(account, dnsSubdomain)
  issues.of('nodeName').optionalName(fields.nodeName, dnsSubdomain)
  if (fields.affinity !== undefined) validateAffinity(fields.affinity, issues.of('affinity'))
  validateTolerations(fields.tolerations ?? [], issues.of('tolerations'))
  validateTopologySpread(fields.topologySpreadConstraints ?? [], issues.of('topologySpreadConstraints'))
  if (fields.securityContext?.seLinuxChangePolicy === 'MountOption') {
    issues.of('securityContext', 'seLinuxChangePolicy').unsupported('MountOption', ['Recursive'])
  }
  const { preemptionPolicy } = fields
  if (preemptionPolicy !== undefined && !preemptionPolicies.includes(preemptionPolicy)) {
    issues.of('preemptionPolicy').unsupported(preemptionPolicy, preemptionPolicies)
  }
}

const preemptionPolicies = ['Never', 'PreemptLowerPriority']

function validateAffinity(
  { nodeAffinity, podAffinity, podAntiAffinity }: Infer<typeof affinitySchema>,
  issues: Issues,
): void {
  const terms = nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  const required = issues.of('nodeAffinity', 'requiredDuringSchedulingIgnoredDuringExecution')
  const termsPath = required.of('nodeSelectorTerms')
  if (terms?.length === 0) termsPath.required('must have at least one node selector term')
  for (const [index, term] of (terms ?? []).entries()) {
    validateNodeSelectorTerm(term, { anyValue: false }, termsPath.of(index))
  }
  const preferred = issues.of('nodeAffinity', 'preferredDuringSchedulingIgnoredDuringExecution')
  const wishes = nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  for (const [index, { weight, preference }] of wishes.entries()) {
    const at = preferred.of(index)
    validateWeight(weight, at)
    validateNodeSelectorTerm(preference, { anyValue: true }, at.of('preference'))
  }
  for (const [name, affinity] of Object.entries({ podAffinity, podAntiAffinity })) {
    if (affinity !== undefined) validatePodAffinity(affinity, issues.of(name))
  }
}

function validatePodAffinity(affinity: Infer<typeof podAffinitySchema>, issues: Issues): void {
  for (const [index, term] of affinity.requiredDuringSchedulingIgnoredDuringExecution.entries()) {
    const at = issues.of('requiredDuringSchedulingIgnoredDuringExecution', index)
    validatePodAffinityTerm(term, at)
  }
  const wishes = affinity.preferredDuringSchedulingIgnoredDuringExecution
  for (const [index, { weight, podAffinityTerm }] of wishes.entries()) {
    const at = issues.of('preferredDuringSchedulingIgnoredDuringExecution', index)
    validateWeight(weight, at)
    validatePodAffinityTerm(podAffinityTerm, at.of('podAffinityTerm'))
  }
}

/** Source: pkg/apis/core/validation (validatePodAffinityTerm), 1.36. */
function validatePodAffinityTerm(term: Infer<typeof podAffinityTermSchema>, issues: Issues): void {
  validateLabelSelector(term.labelSelector, issues.of('labelSelector'))
  validateLabelSelector(term.namespaceSelector, issues.of('namespaceSelector'))
  for (const [index, name] of term.namespaces.entries()) {
    issues.of('namespace').name(name, dnsLabel, issues.of('namespaces', index))
  }
  for (const field of ['matchLabelKeys', 'mismatchLabelKeys'] as const) {
    const at = issues.of(field)
    if (term[field].length > 0 && term.labelSelector === undefined) {
      at.forbidden('must not be specified when labelSelector is not set')
    } else for (const [index, key] of term[field].entries()) at.of(index).name(key, qualifiedName)
  }
  for (const [index, key] of term.matchLabelKeys.entries()) {
    if (!term.mismatchLabelKeys.includes(key)) continue
    const detail = 'exists in both matchLabelKeys and mismatchLabelKeys'
    issues.of('matchLabelKeys', index).invalid(key, detail)
  }
  if (term.topologyKey === '') issues.of('topologyKey').required('can not be empty')
  issues.of('topologyKey').name(term.topologyKey, qualifiedName)
}

function validateWeight(weight: number, issues: Issues): void {
  if (weight <= 0 || weight > 100) issues.of('weight').invalid(weight, 'must be in the range 1-100')
}

const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']

/** Source: pkg/apis/core/validation (ValidateTolerations), 1.36. */
export function validateTolerations(
  tolerations: readonly Infer<typeof tolerationSchema>[],
  issues: Issues,
): void {
  for (const [index, { key, operator, value, effect, tolerationSeconds }] of tolerations.entries()) {
    const at = issues.of(index)
    if (key !== '') at.of('key').name(key, qualifiedName)
    else if (operator !== 'Exists') {
      const detail =
        'operator must be Exists when `key` is empty, which means "match all values and all keys"'
      at.of('operator').invalid(operator, detail)
    }
    if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
      const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
      at.of('effect').invalid(effect, detail)
    }
    validateTolerationValue(operator, value, at)
    if (effect !== '' && !effects.includes(effect)) at.of('effect').unsupported(effect, effects)
  }
}

function validateTolerationValue(operator: string, value: string, issues: Issues): void {
  const at = issues.of('operator')
  if (operator === 'Exists') {
    if (value !== '') at.invalid(value, "value must be empty when `operator` is 'Exists'")
  } else if (operator === '' || operator === 'Equal') {
    const complaints = labelValue(value)
    if (complaints.length > 0) at.invalid(value, complaints.join(';'))
  } else if (operator === 'Lt' || operator === 'Gt') {
    at.unsupported(operator, ['Equal', 'Exists', 'Lt', 'Gt'])
  } else at.unsupported(operator, ['Equal', 'Exists'])
}

type Constraint = Infer<typeof topologySpreadConstraintSchema>

const actions = ['DoNotSchedule', 'ScheduleAnyway']
const policies = ['Honor', 'Ignore']

/** Source: pkg/apis/core/validation (validateTopologySpreadConstraints), 1.36. */
function validateTopologySpread(constraints: readonly Constraint[], issues: Issues): void {
  for (const [index, constraint] of constraints.entries()) {
    const at = issues.of(index)
    validateConstraint(constraint, at)
    const { topologyKey, whenUnsatisfiable } = constraint
    const isRepeated = constraints
      .slice(index + 1)
      .some((other) => other.topologyKey === topologyKey && other.whenUnsatisfiable === whenUnsatisfiable)
    if (isRepeated) {
      at.of('{topologyKey, whenUnsatisfiable}').duplicate(`{${topologyKey}, ${whenUnsatisfiable}}`)
    }
  }
}

function validateConstraint(constraint: Constraint, issues: Issues): void {
  const { maxSkew, topologyKey, whenUnsatisfiable, minDomains, labelSelector } = constraint
  if (maxSkew <= 0) issues.of('maxSkew').invalid(maxSkew, 'must be greater than zero')
  if (topologyKey === '') issues.of('topologyKey').required('can not be empty')
  if (!actions.includes(whenUnsatisfiable)) {
    issues.of('whenUnsatisfiable').unsupported(whenUnsatisfiable, actions)
  }
  if (minDomains !== undefined) {
    const at = issues.of('minDomains')
    if (minDomains <= 0) at.invalid(minDomains, 'must be greater than zero')
    if (whenUnsatisfiable !== 'DoNotSchedule') {
      const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`
      at.invalid(minDomains, detail)
    }
  }
  for (const field of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
    const policy = constraint[field]
    if (policy !== undefined && !policies.includes(policy)) {
      issues.of(field).unsupported(policy, policies)
    }
  }
  const keysPath = issues.of('matchLabelKeys')
  if (constraint.matchLabelKeys.length > 0 && labelSelector === undefined) {
    keysPath.forbidden('must not be specified when labelSelector is not set')
  } else {
    for (const [index, key] of constraint.matchLabelKeys.entries()) {
      keysPath.of(index).name(key, qualifiedName)
    }
  }
  validateLabelSelector(labelSelector, issues.of('labelSelector'))
}
