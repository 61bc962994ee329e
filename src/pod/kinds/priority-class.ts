import {
  bool,
  defaulted,
  int32,
  object,
  oneOf,
  oneOfOrNone,
  required,
  requiredOrZero,
  string,
} from '../schema/types.ts'
import { clusterMetaSchema } from './cluster-meta.ts'
import { objectKind } from './object-kind.ts'

const priorityClassSchema = object('PriorityClass', {
  apiVersion: required(oneOf('scheduling.k8s.io/v1')),
  kind: required(oneOf('PriorityClass')),
  metadata: required(clusterMetaSchema),
  value: requiredOrZero(int32),
  globalDefault: defaulted(bool, false),
  description: defaulted(string, ''),
  preemptionPolicy: defaulted(oneOfOrNone('PreemptLowerPriority', 'Never'), 'PreemptLowerPriority', {
    kind: 'supported',
    note: 'its pods may name no other one; it has no effect, for no pod makes room for another',
  }),
})

/** User-defined classes stop here; above are the system's. */
const highestUserPriority = 1_000_000_000

/** Source of the validation: ValidatePriorityClass in pkg/apis/scheduling/validation, 1.36. */
export const priorityClassKind = objectKind({
  schema: priorityClassSchema,
  resource: { plural: 'priorityclasses', singular: 'priorityclass', short: ['pc'] },
  scope: 'Cluster',
  isPerSource: false,
  isSecret: false,
  validate: ({ metadata, value }, issues) => {
    if (metadata.name.startsWith('system-')) {
      issues.forbidden(
        ['metadata', 'name'],
        "priority class names with 'system-' prefix are reserved for system use only. " +
          `error: ${metadata.name} is not a known system priority class`,
      )
    }
    if (value > highestUserPriority) {
      issues.forbidden(
        ['value'],
        `maximum allowed value of a user defined priority is ${highestUserPriority}`,
      )
    }
  },
})
