import type { JsonObject } from '../base/json.ts'
import type { ObservedPod } from '../pod/state/observed.ts'
import { readContainerFacts } from './identity/labels.ts'

/** The kubelet's default grace period (`minimumGracePeriodInSeconds`). */
const leastGraceSeconds = 2

/**
 * A minimal manifest for a pod whose record and manifest are lost: enough to terminate it. Grace, preStop and ports
 * come from its containers' annotations.
 */
export function orphanManifest(observed: ObservedPod): JsonObject {
  const graces = observed.containers.map(({ annotations }) => {
    const facts = readContainerFacts(annotations)
    return facts.deletionGraceSeconds ?? facts.terminationGraceSeconds ?? leastGraceSeconds
  })
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: observed.name, namespace: observed.namespace },
    spec: {
      terminationGracePeriodSeconds: Math.max(leastGraceSeconds, ...graces),
      hostNetwork: observed.sandboxes[0]?.hostNetwork ?? false,
      containers: [],
    },
  }
}
