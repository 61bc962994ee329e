import type { JsonObject } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'
import { ApiError } from '../requests/api-error.ts'
import type { WrittenKind } from './written-kind.ts'

/**
 * A pod with the overhead of its RuntimeClass; anything else as it is. Throws ApiError Forbidden for a class that isn't
 * there, and for another overhead than its own (`plugin/pkg/admission/runtimeclass`, 1.36).
 */
export function withClassOverhead({ kind, runtimeClasses }: WrittenKind, manifest: JsonObject): JsonObject {
  const { spec, metadata } = manifest
  if (kind.kind !== 'Pod' || !isJsonObject(spec)) return manifest
  const { runtimeClassName = '', overhead = {} } = spec
  if (runtimeClassName === '') return manifest
  const name = isJsonObject(metadata) ? metadata['name'] : undefined
  const refuse = (why: string): ApiError =>
    new ApiError(403, `pods ${JSON.stringify(name)} is forbidden: pod rejected: ${why}`, undefined, {
      name: typeof name === 'string' ? name : '',
      kind: 'pods',
    })
  const found = runtimeClasses.list().find((shown) => shown.metadata.name === runtimeClassName)
  if (found === undefined) throw refuse(`RuntimeClass ${JSON.stringify(runtimeClassName)} not found`)
  const podFixed = found.overhead?.podFixed ?? {}
  if (!sameData(overhead, {}) && !sameData(overhead, podFixed))
    throw refuse("Pod's Overhead doesn't match RuntimeClass's defined Overhead")
  return sameData(podFixed, {}) ? manifest : { ...manifest, spec: { ...spec, overhead: { ...podFixed } } }
}
