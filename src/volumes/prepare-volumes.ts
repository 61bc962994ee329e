import { realpathSync } from 'node:fs'
import { removeTree } from '../base/atomic-file.ts'
import { errorCode, errorMessage, PoddError } from '../base/errors.ts'
import { settleAll } from '../base/waits.ts'
import { mountsBelow, readMounts, unmount } from '../host/mounts.ts'
import type { VolumeSpec } from '../pod/schema/volume-schema.ts'
import type { PodUid } from '../pod/values/ids.ts'
import type { HostVolume } from '../translate/mounts.ts'
import { prepareClaim } from './claims.ts'
import { VolumeError } from './open-inside.ts'
import { podDirectory } from './pod-directory.ts'
import { prepareEmptyDir, prepareFiles, prepareHostPath, prepareImageVolume } from './volume-plugins.ts'
import type { PrepareVolume, VolumeContext } from './volume-plugins.ts'

const kinds: readonly PrepareVolume[] = [
  prepareEmptyDir,
  prepareHostPath,
  prepareFiles,
  prepareClaim,
  prepareImageVolume,
]

/**
 * Prepares all volumes of a pod and returns their places, by name. May be repeated at any time: prepared volumes stay
 * as they are, with their content.
 * @throws VolumeError VOLUME_SETUP for the first that fails, in the kubelet's words, when all have settled
 */
export async function prepareVolumes(
  volumes: readonly VolumeSpec[],
  context: VolumeContext,
): Promise<ReadonlyMap<string, HostVolume>> {
  const ready = await settleAll(
    volumes.map(async (volume) => [volume.name, await prepareVolume(volume, context)] as const),
  )
  return new Map(ready)
}

async function prepareVolume(volume: VolumeSpec, context: VolumeContext): Promise<HostVolume> {
  try {
    for (const prepare of kinds) {
      const ready = await prepare(volume, context)
      if (ready !== undefined) return ready
    }
    throw new VolumeError('its kind is not supported')
  } catch (error) {
    const message = `MountVolume.SetUp failed for volume "${volume.name}" : ${errorMessage(error)}`
    const hint = error instanceof PoddError ? error.hint : undefined
    throw new VolumeError(message, { cause: error, hint })
  }
}

/**
 * Removes a pod's directory with all that podd made for it. Mounts below it are read from the kernel's mount table and
 * unmounted first: the removal never enters a filesystem that is mounted there. No container of the pod may exist. Does
 * nothing where the directory is gone.
 * @throws VolumeError VOLUME_TEARDOWN
 */
export async function teardownVolumes(rootDir: string, uid: PodUid): Promise<void> {
  if (!/^[\w-]+$/.test(uid)) {
    throw new VolumeError(`not a pod's UID: ${JSON.stringify(uid)}`, { code: 'VOLUME_TEARDOWN' })
  }
  try {
    const directory = realpathSync(podDirectory(rootDir, uid))
    const mounted = mountsBelow(directory, readMounts())
    for (const mountPoint of mounted) await unmount(mountPoint)
    const [left] = mounted.length === 0 ? [] : mountsBelow(directory, readMounts())
    if (left !== undefined) throw new Error(`${left} is still mounted`)
    await removeTree(directory)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return
    const message = `cannot remove the directory of pod ${uid}: ${errorMessage(error)}`
    throw new VolumeError(message, { code: 'VOLUME_TEARDOWN', cause: error })
  }
}
