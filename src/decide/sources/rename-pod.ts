import { isJsonObject } from '../../base/json.ts'
import type { PodDocument, Problem } from '../../pod/objects/document.ts'
import { podNameTooLong } from '../../pod/validation/validate-pod.ts'
import { podKey } from '../../pod/values/ids.ts'

/** The pod under the name that the kubelet would give it: `<name>-<node>` (`podNameSuffix: node`). */
export function renamePod({ pod, manifest, place }: PodDocument, suffix: string): PodDocument {
  const name = `${pod.metadata.name}${suffix}`
  const metadata = isJsonObject(manifest['metadata']) ? manifest['metadata'] : {}
  return {
    pod: { ...pod, metadata: { ...pod.metadata, name } },
    manifest: { ...manifest, metadata: { ...metadata, name } },
    place,
  }
}

/** Why a pod can't have the name that it was given so. */
export function renamedPodProblem({ pod, place }: PodDocument, suffix: string): Problem | undefined {
  const refusal = podNameTooLong(pod.metadata)
  if (refusal === undefined) return undefined
  return {
    severity: 'error',
    place,
    field: 'metadata.name',
    reason: 'RefusedHere',
    message: `not supported: with the suffix ${JSON.stringify(suffix)} of podNameSuffix, ${refusal}`,
    object: podKey(pod.metadata),
  }
}
