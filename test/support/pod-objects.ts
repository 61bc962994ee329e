import type { EventObject, PodObject } from '../../src/api/resource.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { ContainerState, ContainerStatus, PodStatus } from '../../src/pod/state/status.ts'

/** A container's status that a test changes where it cares. */
export function containerStatus(name: string, changes: Partial<ContainerStatus> = {}): ContainerStatus {
  return {
    name,
    state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
    lastState: {},
    ready: true,
    restartCount: 0,
    image: 'busybox:1',
    imageID: 'sha256:0123',
    ...changes,
  }
}

export function terminated(
  exitCode: number,
  reason = exitCode === 0 ? 'Completed' : 'Error',
): ContainerState {
  return { terminated: { exitCode, reason, finishedAt: '2026-01-01T00:00:00Z' } }
}

export interface PodObjectChanges {
  readonly name?: string
  readonly namespace?: string
  readonly uid?: string
  readonly metadata?: Partial<PodObject['metadata']>
  readonly spec?: JsonObject
  readonly status?: Partial<PodStatus>
}

/** A running pod with one container `main`. */
export function podObject(changes: PodObjectChanges = {}): PodObject {
  const name = changes.name ?? 'web'
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: changes.namespace ?? 'default',
      uid: changes.uid ?? `uid-${name}`,
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...changes.metadata,
    },
    spec: { containers: [{ name: 'main', image: 'busybox:1' }], ...changes.spec },
    status: {
      phase: 'Running',
      conditions: [
        { type: 'Initialized', status: 'True' },
        { type: 'Ready', status: 'True' },
      ],
      qosClass: 'BestEffort',
      containerStatuses: [containerStatus('main')],
      ...changes.status,
    },
  }
}

export function eventObject(name: string, changes: Partial<EventObject> = {}): EventObject {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${name}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
    involvedObject: { kind: 'Pod', namespace: 'default', name: 'web', uid: 'uid-web' },
    type: 'Normal',
    reason: 'Started',
    message: 'Container started',
    source: { component: 'kubelet', host: 'box' },
    reportingComponent: 'kubelet',
    reportingInstance: 'box',
    firstTimestamp: '2026-01-01T00:00:00Z',
    lastTimestamp: '2026-01-01T00:00:00Z',
    count: 1,
    ...changes,
  }
}

/** A pod without its `resourceVersion`, which rises even where another podd shows the pod as it was. */
export function withoutRevision({ metadata, ...pod }: PodObject): PodObject {
  const { resourceVersion: _, ...rest } = metadata
  return { ...pod, metadata: rest }
}
