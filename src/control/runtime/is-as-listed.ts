import type * as cri from '../../cri-types/cri-v1.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { containerStates } from '../../translate/observe.ts'

/** The known state of the runtime. */
export interface KnownPods {
  readonly pods: ReadonlyMap<PodUid, ObservedPod>
  /** By container and sandbox. */
  readonly owners: ReadonlyMap<string, PodUid>
}

/**
 * Whether a list of the runtime equals the known state. Allocates nothing: on an idle host nothing else happens with a
 * list of many pods.
 */
export function isAsListed(
  { pods, owners }: KnownPods,
  sandboxes: readonly cri.PodSandbox[],
  containers: readonly cri.Container[],
): boolean {
  for (const { id, state } of sandboxes) {
    const isReady = state === 'SANDBOX_READY'
    if (findReady(pods.get(owners.get(id) ?? ''), id) !== isReady) return false
  }
  for (const { id, state } of containers)
    if (findState(pods.get(owners.get(id) ?? ''), id) !== containerStates[state]) return false
  let sandboxCount = 0
  let containerCount = 0
  for (const pod of pods.values()) {
    sandboxCount += pod.sandboxes.length
    containerCount += pod.containers.length
  }
  return sandboxCount === sandboxes.length && containerCount === containers.length
}

function findReady(pod: ObservedPod | undefined, id: string): boolean | undefined {
  if (pod !== undefined) for (const sandbox of pod.sandboxes) if (sandbox.id === id) return sandbox.ready
  return undefined
}

/** Undefined also where the runtime itself did not report the state. */
function findState(
  pod: ObservedPod | undefined,
  id: string,
): ObservedPod['containers'][number]['state'] | undefined {
  if (pod === undefined) return undefined
  for (const container of pod.containers)
    if (container.id === id) return container.provisional === true ? undefined : container.state
  return undefined
}
