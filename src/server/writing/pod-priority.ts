import type { PriorityClassObject } from '../../api/cluster-objects.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { refusePreemption } from '../../decide/admission/resolve-classes.ts'
import { metadataOf } from '../../decide/writing/prepare-object.ts'
import { ApiError } from '../requests/api-error.ts'
import type { WrittenKind } from './written-kind.ts'

/** The fields of a PriorityClass that a pod takes. */
export interface PodPriority {
  readonly priority: number
  readonly preemptionPolicy: PriorityClassObject['preemptionPolicy']
}

/**
 * The priority of a pod by its class, or by the default one. Throws ApiError Forbidden for an unknown class, and for
 * another preemption policy than the class's (`plugin/pkg/admission/priority`, 1.36).
 */
export function podPriority({ priorityClasses }: WrittenKind, manifest: JsonObject): PodPriority {
  const {
    priorityClassName = '',
    priority,
    preemptionPolicy,
  } = isJsonObject(manifest['spec']) ? manifest['spec'] : {}
  const classes = priorityClasses.list()
  const isNamed = typeof priorityClassName === 'string' && priorityClassName !== ''
  const found = isNamed
    ? classes.find(({ metadata }) => metadata.name === priorityClassName)
    : classes.find(({ globalDefault }) => globalDefault === true)
  if (isNamed && found === undefined)
    throw forbidden(manifest, `no PriorityClass with name ${priorityClassName} was found`)
  const policy = typeof preemptionPolicy === 'string' ? preemptionPolicy : undefined
  const refusal = refusePreemption(policy, found?.preemptionPolicy)
  if (refusal !== undefined) throw forbidden(manifest, refusal)
  const given = !isNamed && typeof priority === 'number' ? priority : undefined
  return {
    priority: given ?? found?.value ?? 0,
    preemptionPolicy: found?.preemptionPolicy ?? 'PreemptLowerPriority',
  }
}

function forbidden(manifest: JsonObject, why: string): ApiError {
  const { name: given } = metadataOf(manifest)
  const name = typeof given === 'string' ? given : ''
  const message = `pods ${JSON.stringify(name)} is forbidden: ${why}`
  return new ApiError(403, message, undefined, { name, kind: 'pods' })
}
