import { realpath, rm } from 'node:fs/promises'
import { errorCode, errorMessage } from '../base/errors.ts'
import { mountsBelow, readMounts, unmount } from '../host/mounts.ts'
import type { PodUid } from '../pod/values/ids.ts'
import { podDirectory } from './pod-directory/pod-directory.ts'
import { VolumeError } from './files/volume-error.ts'

/**
 * Removes a pod's directory with all that podd made for it. What is mounted there is found in the kernel's
 * mount table, so that nothing has to be remembered, and unmounted first: the removal never reaches into a
 * filesystem that is mounted into the directory. No container of the pod may be left. A directory that is gone
 * already is fine.
 * @throws VolumeError VOLUME_TEARDOWN
 */
export async function teardownVolumes(rootDir: string, uid: PodUid): Promise<void> {
  if (!/^[\w-]+$/.test(uid)) {
    throw new VolumeError('VOLUME_TEARDOWN', `not a pod's UID: ${JSON.stringify(uid)}`)
  }
  try {
    const directory = await realpath(podDirectory(rootDir, uid))
    for (const mountPoint of mountsBelow(directory, readMounts())) await unmount(mountPoint)
    const [left] = mountsBelow(directory, readMounts())
    if (left !== undefined) throw new Error(`${left} is still mounted`)
    await rm(directory, { recursive: true, force: true })
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return
    throw new VolumeError(
      'VOLUME_TEARDOWN',
      `cannot remove the directory of pod ${uid}: ${errorMessage(error)}`,
      error,
    )
  }
}
