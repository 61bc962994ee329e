import { defaulted, int32, int64, list, map, object, optional, requiredOrZero, string } from './types.ts'

/**
 * Fields that only a scheduler reads: without effect here, and checked as in the API server. An absent required field
 * is read as Go's zero value, which validation reports in the API server's words.
 */
const labelSelectorRequirementSchema = object('LabelSelectorRequirement', {
  key: requiredOrZero(string),
  operator: requiredOrZero(string),
  values: defaulted(list(string), []),
})

export const labelSelectorSchema = object('LabelSelector', {
  matchLabels: defaulted(map(string), {}),
  matchExpressions: defaulted(list(labelSelectorRequirementSchema), []),
})

const nodeSelectorRequirementSchema = object('NodeSelectorRequirement', {
  key: requiredOrZero(string),
  operator: requiredOrZero(string),
  values: defaulted(list(string), []),
})

export const nodeSelectorTermSchema = object('NodeSelectorTerm', {
  matchExpressions: defaulted(list(nodeSelectorRequirementSchema), []),
  matchFields: defaulted(list(nodeSelectorRequirementSchema), []),
})

const nodeAffinitySchema = object('NodeAffinity', {
  requiredDuringSchedulingIgnoredDuringExecution: optional(
    object('NodeSelector', { nodeSelectorTerms: requiredOrZero(list(nodeSelectorTermSchema)) }),
  ),
  preferredDuringSchedulingIgnoredDuringExecution: defaulted(
    list(
      object('PreferredSchedulingTerm', {
        weight: requiredOrZero(int32),
        preference: requiredOrZero(nodeSelectorTermSchema),
      }),
    ),
    [],
  ),
})

export const podAffinityTermSchema = object('PodAffinityTerm', {
  labelSelector: optional(labelSelectorSchema),
  namespaces: defaulted(list(string), []),
  topologyKey: requiredOrZero(string),
  namespaceSelector: optional(labelSelectorSchema),
  matchLabelKeys: defaulted(list(string), []),
  mismatchLabelKeys: defaulted(list(string), []),
})

const podAffinityFields = {
  requiredDuringSchedulingIgnoredDuringExecution: defaulted(list(podAffinityTermSchema), []),
  preferredDuringSchedulingIgnoredDuringExecution: defaulted(
    list(
      object('WeightedPodAffinityTerm', {
        weight: requiredOrZero(int32),
        podAffinityTerm: requiredOrZero(podAffinityTermSchema),
      }),
    ),
    [],
  ),
} as const

export const podAffinitySchema = object('PodAffinity', podAffinityFields)

export const affinitySchema = object('Affinity', {
  nodeAffinity: optional(nodeAffinitySchema),
  podAffinity: optional(podAffinitySchema),
  podAntiAffinity: optional(object('PodAntiAffinity', podAffinityFields)),
})

export const tolerationSchema = object('Toleration', {
  key: defaulted(string, ''),
  operator: defaulted(string, ''),
  value: defaulted(string, ''),
  effect: defaulted(string, ''),
  tolerationSeconds: optional(int64),
})

export const topologySpreadConstraintSchema = object('TopologySpreadConstraint', {
  maxSkew: requiredOrZero(int32),
  topologyKey: requiredOrZero(string),
  whenUnsatisfiable: requiredOrZero(string),
  labelSelector: optional(labelSelectorSchema),
  minDomains: optional(int32),
  nodeAffinityPolicy: optional(string),
  nodeTaintsPolicy: optional(string),
  matchLabelKeys: defaulted(list(string), []),
})

export const schedulingGroupSchema = object('PodSchedulingGroup', { podGroupName: optional(string) })
