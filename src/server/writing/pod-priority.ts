import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { metadataOf } from '../../decide/writing/prepare-object.ts'
import { ApiError } from '../requests/api-error.ts'
import type { WrittenKind } from './written-kind.ts'

/**
 * The priority of a pod by its class, or by the default one. Throws ApiError Forbidden for a class that isn't there
 * (`plugin/pkg/admission/priority`, 1.36).
 */
export function podPriority({ priorityClasses }: WrittenKind, manifest: JsonObject): number {
  const { priorityClassName = '', priority } = isJsonObject(manifest['spec']) ? manifest['spec'] : {}
  const classes = priorityClasses.list()
  if (typeof priorityClassName === 'string' && priorityClassName !== '') {
    const found = classes.find(({ metadata }) => metadata.name === priorityClassName)
    if (found !== undefined) return found.value
    const { name = '' } = metadataOf(manifest)
    const why = `no PriorityClass with name ${priorityClassName} was found`
    throw new ApiError(403, `pods ${JSON.stringify(name)} is forbidden: ${why}`, undefined, {
      name: typeof name === 'string' ? name : '',
      kind: 'pods',
    })
  }
  if (typeof priority === 'number') return priority
  return classes.find(({ globalDefault }) => globalDefault === true)?.value ?? 0
}
