import { resourceListSchema } from '../schema/container-schema.ts'
import { any, defaulted, ignored, object, oneOf, optional, required, string } from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
import { dnsLabel } from '../validation/name-rules.ts'
import { validateOverhead } from '../validation/validate-resources.ts'
import { clusterMetaSchema, noScheduler } from './cluster-meta.ts'
import { objectKind } from './object-kind.ts'

const runtimeClassSchema = object('RuntimeClass', {
  apiVersion: required(oneOf('node.k8s.io/v1')),
  kind: required(oneOf('RuntimeClass')),
  metadata: required(clusterMetaSchema),
  handler: required(string),
  overhead: optional(object('Overhead', { podFixed: defaulted(resourceListSchema, {}) })),
  scheduling: ignored(any, noScheduler),
})

export type RuntimeClass = Infer<typeof runtimeClassSchema>

/** Source of the validation: ValidateRuntimeClass in pkg/apis/node/validation, 1.36. */
export const runtimeClassKind = objectKind({
  schema: runtimeClassSchema,
  resource: { plural: 'runtimeclasses', singular: 'runtimeclass', short: [] },
  scope: 'Cluster',
  isPerSource: false,
  isSecret: false,
  validate: ({ handler, overhead }, issues) => {
    issues.name(['handler'], handler, dnsLabel)
    validateOverhead(overhead?.podFixed, ['overhead', 'podFixed'], issues)
  },
})
