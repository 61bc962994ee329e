import type { RuntimeClassObject } from '../../api/cluster-objects.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { isJsonObject, sameData } from '../../base/json.ts'
import { mergeTolerations } from '../../decide/writing/prepare-object.ts'
import { ApiError } from '../requests/api-error.ts'
import type { WrittenKind } from './written-kind.ts'

type Refuse = (why: string) => ApiError

/**
 * A pod with what its RuntimeClass adds: overhead, node selector and tolerations; anything else as it is. Throws
 * ApiError Forbidden for an unknown class, for another overhead than the class's, and for another value of a label in
 * its node selector (`plugin/pkg/admission/runtimeclass`, 1.36).
 */
export function withRuntimeClass({ kind, runtimeClasses }: WrittenKind, manifest: JsonObject): JsonObject {
  const { spec, metadata } = manifest
  if (kind.kind !== 'Pod' || !isJsonObject(spec)) return manifest
  const { runtimeClassName = '', overhead = {} } = spec
  if (runtimeClassName === '') return manifest
  const name = isJsonObject(metadata) ? metadata['name'] : undefined
  const refuse: Refuse = (why) =>
    new ApiError(403, `pods ${JSON.stringify(name)} is forbidden: ${why}`, undefined, {
      name: typeof name === 'string' ? name : '',
      kind: 'pods',
    })
  const found = runtimeClasses.list().find((shown) => shown.metadata.name === runtimeClassName)
  if (found === undefined)
    throw refuse(`pod rejected: RuntimeClass ${JSON.stringify(runtimeClassName)} not found`)
  const podFixed = found.overhead?.podFixed ?? {}
  if (!sameData(overhead, {}) && !sameData(overhead, podFixed))
    throw refuse("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
  const scheduled = withScheduling(spec, found, refuse)
  return {
    ...manifest,
    spec: sameData(podFixed, {}) ? scheduled : { ...scheduled, overhead: { ...podFixed } },
  }
}

/** No scheduler uses them; clients read them in the pod. */
function withScheduling(spec: JsonObject, { scheduling }: RuntimeClassObject, refuse: Refuse): JsonObject {
  if (scheduling === undefined) return spec
  const { nodeSelector = {}, tolerations = [] } = scheduling
  const own = isJsonObject(spec['nodeSelector']) ? spec['nodeSelector'] : {}
  for (const [key, value] of Object.entries(isJsonObject(nodeSelector) ? nodeSelector : {})) {
    if (own[key] === undefined || own[key] === value) continue
    throw refuse(
      `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${textOf(value)}; pod.spec.nodeSelector[${key}] = ${textOf(own[key])}`,
    )
  }
  const selected = { ...own, ...(isJsonObject(nodeSelector) && nodeSelector) }
  const tolerated = mergeTolerations(spec['tolerations'], tolerations)
  return {
    ...spec,
    ...(Object.keys(selected).length > 0 && { nodeSelector: selected }),
    ...(tolerated.length > 0 && { tolerations: tolerated }),
  }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null)
}
