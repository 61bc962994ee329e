import { mapBounded } from '../../base/waits.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { observePods } from '../../translate/observe.ts'
import type { RuntimeStatuses } from './runtime-statuses.ts'

export interface ListCalls {
  listPodSandbox(request: cri.ListPodSandboxRequestInput): Promise<cri.ListPodSandboxResponse>
  listContainers(request: cri.ListContainersRequestInput): Promise<cri.ListContainersResponse>
}

/** What the runtime lists, of one pod or of all. */
export interface Listing {
  readonly sandboxes: readonly cri.PodSandbox[]
  readonly containers: readonly cri.Container[]
}

export async function listRuntime(
  calls: ListCalls,
  labelSelector: Readonly<Record<string, string>>,
): Promise<Listing> {
  const filter = Object.keys(labelSelector).length === 0 ? {} : { filter: { labelSelector } }
  const [sandboxes, containers] = await Promise.all([
    calls.listPodSandbox(filter),
    calls.listContainers(filter),
  ])
  return { sandboxes: sandboxes.items, containers: containers.containers }
}

/**
 * Reads the statuses of what is listed.
 * @param onError of a status that can't be read: throws, or leaves that sandbox or container out
 */
export async function observeListing(
  { sandboxes, containers }: Listing,
  statuses: RuntimeStatuses,
  onError: (id: string, error: unknown) => undefined,
): Promise<ReadonlyMap<PodUid, ObservedPod>> {
  const orLeftOut = <Status>(id: string, status: Promise<Status>): Promise<Status | undefined> =>
    status.catch((error: unknown) => onError(id, error))
  const [sandboxStatuses, containerStatuses] = await Promise.all([
    mapBounded(sandboxes, (item) => orLeftOut(item.id, statuses.ofSandbox(item))),
    mapBounded(containers, (item) => orLeftOut(item.id, statuses.ofContainer(item))),
  ])
  // Without a status it was removed since the list: its exit is unknown.
  const heldSandboxes = sandboxes.flatMap((sandbox, index) => {
    const status = sandboxStatuses[index]
    return status === undefined ? [] : [{ listed: { ...sandbox, state: status.state }, status }]
  })
  const heldContainers = containers.flatMap((container, index) => {
    const status = containerStatuses[index]
    return status === undefined ? [] : [{ listed: { ...container, state: status.state }, status }]
  })
  return observePods({
    sandboxes: heldSandboxes.map(({ listed }) => listed),
    containers: heldContainers.map(({ listed }) => listed),
    sandboxStatuses: new Map(heldSandboxes.map(({ status }) => [status.id, status])),
    containerStatuses: new Map(heldContainers.map(({ status }) => [status.id, status])),
    isProvisional: (status) => statuses.isProvisional(status),
  })
}

/** Observations of a pod with equal fingerprints lead a worker to the same actions. */
export function fingerprint(pod: ObservedPod | undefined): string {
  if (pod === undefined) return ''
  const sandboxes = pod.sandboxes.map((sandbox) => `${sandbox.id}:${sandbox.ready}`)
  const containers = pod.containers.map((container) => `${container.id}:${container.state}`)
  return [...sandboxes, ...containers].join(' ')
}
