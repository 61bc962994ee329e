import { PoddError, errorMessage } from '../base/errors.ts'
import { settleAll } from '../base/waits.ts'
import type { VolumeSpec } from '../pod/schema/volume-schema.ts'
import type { HostVolume } from '../translate/mounts.ts'
import { prepareClaim } from './plugins/claim.ts'
import { prepareEmptyDir } from './plugins/empty-dir.ts'
import { prepareFiles } from './plugins/file-volumes.ts'
import { prepareHostPath } from './plugins/host-path.ts'
import { prepareImageVolume } from './plugins/image-volume.ts'
import { VolumeError } from './files/volume-error.ts'
import type { PrepareVolume, VolumeContext } from './plugins/volume-plugin.ts'

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
    throw new VolumeError('VOLUME_SETUP', 'its kind is not supported')
  } catch (error) {
    throw new VolumeError(
      'VOLUME_SETUP',
      `MountVolume.SetUp failed for volume "${volume.name}" : ${errorMessage(error)}`,
      error,
      error instanceof PoddError ? error.hint : undefined,
    )
  }
}
