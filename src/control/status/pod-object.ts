import type { PodObject } from '../../api/objects.ts'
import { formatTime } from '../../base/clock.ts'
import { isJsonObject } from '../../base/json.ts'
import { goesAwayAfter } from '../../decide/plan/pod-ending.ts'
import { podGeneration } from '../../decide/status/pod-generation.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { PodStatus } from '../../pod/state/status.ts'

/** A pod as the API shows it: the manifest's spec as written with what its classes added, podd's metadata, the derived status. */
export function toPodObject(
  pod: Pod,
  record: PodRecord,
  { status, nodeName }: { readonly status: PodStatus; readonly nodeName: string },
): PodObject {
  const { metadata } = pod
  const spec = record.manifest['spec']
  const { ending } = record
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: metadata.name,
      namespace: metadata.namespace,
      uid: record.uid,
      generation: podGeneration(record),
      creationTimestamp: formatTime(record.acceptedAtMs),
      // One that is ended to stay, as failed, isn't being deleted.
      ...(ending === undefined || !goesAwayAfter(ending)
        ? {}
        : {
            deletionTimestamp: formatTime(ending.requestedAtMs + ending.graceSeconds * 1000),
            deletionGracePeriodSeconds: Math.round(ending.graceSeconds),
          }),
      ...(Object.keys(metadata.labels).length === 0 ? {} : { labels: metadata.labels }),
      annotations: {
        ...metadata.annotations,
        'podd.dev/source': record.source,
        'podd.dev/path': record.path,
      },
    },
    spec: {
      ...(isJsonObject(spec) ? spec : {}),
      ...(pod.spec.overhead === undefined ? {} : { overhead: pod.spec.overhead }),
      ...(pod.spec.priority === undefined ? {} : { priority: pod.spec.priority }),
      nodeName,
    },
    status,
  }
}
