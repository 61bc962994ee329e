import { resourceListSchema } from '../schema/container-schema.ts'
import { tolerationSchema } from '../schema/scheduling-schema.ts'
import {
  defaulted,
  list,
  map,
  object,
  oneOf,
  optional,
  required,
  requiredOrZero,
  string,
} from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
import { dnsLabel } from '../validation/name-rules.ts'
import { validateOverhead } from '../validation/validate-resources.ts'
import { clusterMetaSchema } from './cluster-meta.ts'
import type { Json } from '../../base/json.ts'
import type { FieldPath } from '../schema/field-path.ts'
import { fillDefaults } from '../schema/fill-defaults.ts'
import type { Issues } from '../validation/issues.ts'
import { fieldOf } from '../validation/issues.ts'
import { validateTolerations } from '../validation/validate-scheduling.ts'
import { validateLabels } from '../validation/validate-selectors.ts'
import { objectKind } from './object-kind.ts'

const runtimeSchedulingSchema = object('Scheduling', {
  nodeSelector: defaulted(map(string), {}),
  tolerations: defaulted(list(tolerationSchema), []),
})

const runtimeClassSchema = object('RuntimeClass', {
  apiVersion: required(oneOf('node.k8s.io/v1')),
  kind: required(oneOf('RuntimeClass')),
  metadata: required(clusterMetaSchema),
  handler: requiredOrZero(string),
  overhead: optional(object('Overhead', { podFixed: defaulted(resourceListSchema, {}) })),
  scheduling: optional(runtimeSchedulingSchema, {
    kind: 'supported',
    note: 'pods that are written over the API get it; there is no scheduler that goes by it',
  }),
})

export type RuntimeClass = Infer<typeof runtimeClassSchema>

/** Source of the validation: ValidateRuntimeClass in pkg/apis/node/validation, 1.36. */
export const runtimeClassKind = objectKind({
  schema: runtimeClassSchema,
  resource: { plural: 'runtimeclasses', singular: 'runtimeclass', short: [] },
  scope: 'Cluster',
  isPerSource: false,
  isSecret: false,
  validate: ({ handler, overhead }, issues, manifest) => {
    if (handler === '') issues.required(['handler'])
    else issues.name(['handler'], handler, dnsLabel)
    validateOverhead(overhead?.podFixed, ['overhead'], issues, ['overhead', 'podFixed'])
    validateRuntimeScheduling(manifest['scheduling'], ['scheduling'], issues)
  },
})

/** Source: pkg/apis/node/validation (validateScheduling, validateTolerations), 1.36. */
function validateRuntimeScheduling(given: Json | undefined, path: FieldPath, issues: Issues): void {
  if (given === undefined) return
  const filled = { scheduling: fillDefaults(runtimeSchedulingSchema, given) }
  const scheduling = fieldOf(filled, 'scheduling', runtimeSchedulingSchema)
  if (scheduling === undefined) return
  validateLabels(scheduling.nodeSelector, [...path, 'nodeSelector'], issues)
  const { tolerations } = scheduling
  validateTolerations(tolerations, [...path, 'tolerations'], issues)
  const seen = new Set<string>()
  for (const [index, toleration] of tolerations.entries()) {
    const { key, operator, value, effect } = toleration
    const own = JSON.stringify([key, operator, value, effect])
    if (seen.has(own)) issues.duplicate([...path, 'tolerations', index], toleration)
    seen.add(own)
  }
}
