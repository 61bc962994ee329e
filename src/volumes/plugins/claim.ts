import { chmod, mkdir, stat } from 'node:fs/promises'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { claimDirectory } from './claim-directory.ts'
import { takeClaimData } from './claim-owner.ts'
import { applyFsGroup } from '../files/fs-group.ts'
import { isReady, onceForPod } from '../pod-directory/ready-mark.ts'
import { VolumeError } from '../files/volume-error.ts'
import type { ClaimAccess, PrepareVolume, VolumeContext } from './volume-plugin.ts'

/**
 * The directory of a PersistentVolumeClaim: created for the first pod that needs it, given to the pod's group, and
 * never removed with a pod.
 */
export const prepareClaim: PrepareVolume = async (volume, context) => {
  const source = volume.persistentVolumeClaim
  if (source === undefined) return undefined
  const { rootDir, namespace, fsGroup } = context
  const directory = claimDirectory(rootDir, namespace, source.claimName)
  const access = await findClaim(volume.name, source.claimName, context)
  const isNew = await makeClaimDirectory(directory)
  if (access !== undefined) await takeClaimData({ directory, isNew }, access)
  await onceForPod(context, volume.name, async () => {
    if (fsGroup === undefined || source.readOnly) return
    const refusal = await applyFsGroup(directory, fsGroup)
    if (refusal !== undefined) context.warn(volume.name, refusal)
  })
  return { hostPath: directory, selinuxRelabel: true, readOnly: source.readOnly }
}

/** Undefined for a pod that already has its volume and whose claim is gone: it keeps the volume. */
async function findClaim(
  volume: string,
  claim: string,
  context: VolumeContext,
): Promise<ClaimAccess | undefined> {
  try {
    return context.findClaim(claim)
  } catch (error) {
    if (await isReady(context, volume)) return undefined
    throw new VolumeError(
      'VOLUME_SETUP',
      errorMessage(error),
      error,
      'Add its document to a source; the pod starts by itself then.',
    )
  }
}

/** Creates the directory, writable for all, like an emptyDir; its parents are root's. Returns whether it is new. */
async function makeClaimDirectory(directory: string): Promise<boolean> {
  try {
    await stat(directory)
    return false
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await chmod(directory, 0o777)
    return true
  }
}
