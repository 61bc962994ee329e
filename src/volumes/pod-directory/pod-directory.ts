import { readdir } from 'node:fs/promises'
import { errorCode } from '../../base/errors.ts'
import type { PodUid } from '../../pod/values/ids.ts'

/*
 * Where a pod's files lie below podd's root directory, laid out as the kubelet's
 * (`pkg/kubelet/kubelet_getters.go`, 1.36).
 */

/** `<root>/pods/<uid>`: removed with the pod. */
export function podDirectory(rootDir: string, uid: PodUid): string {
  return `${rootDir}/pods/${uid}`
}

/** `<root>/pods/<uid>/volumes/kubernetes.io~<kind>/<name>` */
export function volumeDirectory(
  rootDir: string,
  uid: PodUid,
  kind: 'empty-dir' | 'configmap' | 'secret' | 'downward-api' | 'projected',
  name: string,
): string {
  return `${podDirectory(rootDir, uid)}/volumes/kubernetes.io~${kind}/${name}`
}

/** The hosts file that the pod's containers share. */
export function etcHostsPath(rootDir: string, uid: PodUid): string {
  return `${podDirectory(rootDir, uid)}/etc-hosts`
}

/** The file of one container's termination message. */
export function terminationLogPath(
  rootDir: string,
  uid: PodUid,
  container: string,
  restartCount: number,
): string {
  return `${podDirectory(rootDir, uid)}/containers/${container}/${restartCount}`
}

/** The UIDs with a pod directory, including those of pods that no longer exist. */
export async function listPodDirectories(rootDir: string): Promise<readonly PodUid[]> {
  try {
    const entries = await readdir(`${rootDir}/pods`, { withFileTypes: true })
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}
