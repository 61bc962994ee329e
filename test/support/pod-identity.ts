import type { PodObject } from '../../src/api/resource.ts'

/** What must not change when podd alone was restarted. */
export function podIdentity(pod: PodObject): object {
  const { metadata, status } = pod
  return {
    uid: metadata.uid,
    created: metadata.creationTimestamp,
    startTime: status.startTime,
    podIP: status.podIP,
    phase: status.phase,
    conditions: status.conditions.map(({ type, status: value, lastTransitionTime }) => [
      type,
      value,
      lastTransitionTime,
    ]),
    containers: [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].map(
      ({ name, containerID, restartCount, started, ready, lastState }) => ({
        name,
        containerID,
        restartCount,
        started,
        ready,
        lastState,
      }),
    ),
  }
}
