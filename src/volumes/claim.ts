import { chmod, mkdir, stat } from 'node:fs/promises'
import { errorCode } from '../base/errors.ts'
import { claimFolder } from './claim-folder.ts'
import { applyFsGroup } from './fs-group.ts'
import { isReady, onceForPod } from './ready-mark.ts'
import { VolumeError } from './volume-error.ts'
import type { PrepareVolume } from './volume-plugin.ts'

/**
 * The directory of a PersistentVolumeClaim: made when the first pod needs it, given to the pod's group,
 * and never removed with a pod.
 */
export const prepareClaim: PrepareVolume = async (volume, context) => {
  const source = volume.persistentVolumeClaim
  if (source === undefined) return undefined
  const { rootDir, namespace, fsGroup } = context
  const folder = claimFolder(rootDir, namespace, source.claimName)
  if (!context.hasClaim(source.claimName) && !(await isReady(context, volume.name))) {
    throw new VolumeError(
      'VOLUME_SETUP',
      `persistentvolumeclaim "${source.claimName}" not found`,
      undefined,
      'Add its document to a source; the pod starts by itself then.',
    )
  }
  await makeClaimFolder(folder)
  await onceForPod(context, volume.name, async () => {
    if (fsGroup === undefined || source.readOnly) return
    const refusal = await applyFsGroup(folder, fsGroup)
    if (refusal !== undefined) context.warn(volume.name, refusal)
  })
  return { hostPath: folder, selinuxRelabel: true, readOnly: source.readOnly }
}

/** For anybody to write to, as an emptyDir is; those above it are root's. */
async function makeClaimFolder(folder: string): Promise<void> {
  try {
    await stat(folder)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await chmod(folder, 0o777)
  }
}
