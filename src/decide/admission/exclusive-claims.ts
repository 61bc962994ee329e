import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import type { Admission, Neighbour } from './admit-pod.ts'

type Blocked = Extract<Admission, { readonly kind: 'blocked' }>

/**
 * Why a pod has to wait for another one that uses the same claim, whose access mode is ReadWriteOncePod; undefined
 * where it doesn't. A pod that replaces one of the same name does not wait for it here: it starts when that one has
 * ended (`pkg/scheduler/framework/plugins/volumerestrictions` and `pkg/kubelet/volumemanager/cache`, AddPodToVolume,
 * 1.36).
 * @param isExclusive whether the claim of that name, in the pod's namespace, is for one pod alone
 */
export function exclusiveClaimProblem(
  pod: { readonly metadata: { readonly name: string; readonly namespace: string }; readonly spec: PodSpec },
  neighbours: Iterable<Neighbour>,
  isExclusive: (name: string) => boolean,
): Blocked | undefined {
  const { name: ownName, namespace } = pod.metadata
  const claims = claimsOf(pod.spec).filter((name) => isExclusive(name))
  for (const { key, pod: other } of claims.length === 0 ? [] : neighbours) {
    if (other.metadata.namespace !== namespace || other.metadata.name === ownName) continue
    const shared = claimsOf(other.spec).find((name) => claims.includes(name))
    if (shared === undefined) continue
    const message = `persistentvolumeclaim "${shared}" uses the ReadWriteOncePod access mode and is already in use by pod ${key}`
    const volume = pod.spec.volumes.findIndex(
      ({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName === shared,
    )
    const at = ['spec', 'volumes', volume, 'persistentVolumeClaim', 'claimName']
    return { kind: 'blocked', reason: 'Blocked', message, at }
  }
  return undefined
}

/** Names of the claims that a pod uses. */
export function claimsOf({ volumes }: PodSpec): readonly string[] {
  return volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? [])
}
