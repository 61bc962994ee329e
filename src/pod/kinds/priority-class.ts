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
import { systemPriorities } from '../spec/priority.ts'
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
  validate: ({ metadata, value, globalDefault }, issues) => {
    const { name } = metadata
    if (name.startsWith('system-')) {
      // Dumps of a cluster have its own ones; here they are known without a document.
      const problem = systemClassProblem(name, value, globalDefault)
      if (problem === undefined) return
      const detail = "priority class names with 'system-' prefix are reserved for system use only. error: "
      issues.forbidden(['metadata', 'name'], `${detail}${problem}`)
    } else if (value > highestUserPriority) {
      issues.forbidden(
        ['value'],
        `maximum allowed value of a user defined priority is ${highestUserPriority}`,
      )
    }
  },
})

/** Source: IsKnownSystemPriorityClass in pkg/apis/scheduling/v1, 1.36. */
function systemClassProblem(name: string, value: number, globalDefault: boolean): string | undefined {
  const known = systemPriorities.get(name)
  if (known === undefined) return `${name} is not a known system priority class`
  if (known.value !== value) return `value of ${name} PriorityClass must be ${known.value}`
  return globalDefault ? `globalDefault of ${name} PriorityClass must be false` : undefined
}
