import { isJsonObject } from '../../base/json.ts'
import type { PodDocument, SourceSnapshot } from '../../pod/objects/document.ts'

/** The pods of a snapshot under the names that the kubelet would give them: `<name>-<node>` (`podNameSuffix: node`). */
export function renamePods(snapshot: SourceSnapshot, suffix: string): SourceSnapshot {
  return suffix === '' ? snapshot : { ...snapshot, pods: snapshot.pods.map((pod) => renamePod(pod, suffix)) }
}

function renamePod({ pod, manifest, place }: PodDocument, suffix: string): PodDocument {
  const name = `${pod.metadata.name}${suffix}`
  const metadata = isJsonObject(manifest['metadata']) ? manifest['metadata'] : {}
  return {
    pod: { ...pod, metadata: { ...pod.metadata, name } },
    manifest: { ...manifest, metadata: { ...metadata, name } },
    place,
  }
}
