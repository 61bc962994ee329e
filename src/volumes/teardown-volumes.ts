import { realpathSync } from 'node:fs'
import { removeTree } from '../base/atomic-file.ts'

import { errorCode, errorMessage } from '../base/errors.ts'
import { readMountsBelow, unmount } from '../host/mounts.ts'
import type { PodUid } from '../pod/values/ids.ts'
import { podDirectory } from './pod-directory/pod-directory.ts'
import { VolumeError } from './files/volume-error.ts'

/**
 * Removes a pod's directory with all that podd made for it. Mounts below it are read from the kernel's mount table and
 * unmounted first: the removal never enters a filesystem that is mounted there. No container of the pod may exist. Does
 * nothing where the directory is gone.
 * @throws VolumeError VOLUME_TEARDOWN
 */
export async function teardownVolumes(rootDir: string, uid: PodUid): Promise<void> {
  if (!/^[\w-]+$/.test(uid)) {
    throw new VolumeError('VOLUME_TEARDOWN', `not a pod's UID: ${JSON.stringify(uid)}`)
  }
  try {
    const directory = realpathSync(podDirectory(rootDir, uid))
    const mounted = readMountsBelow(directory)
    for (const mountPoint of mounted) await unmount(mountPoint)
    const [left] = mounted.length === 0 ? [] : readMountsBelow(directory)
    if (left !== undefined) throw new Error(`${left} is still mounted`)
    await removeTree(directory)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return
    throw new VolumeError(
      'VOLUME_TEARDOWN',
      `cannot remove the directory of pod ${uid}: ${errorMessage(error)}`,
      error,
    )
  }
}
