import { chmod, mkdir } from 'node:fs/promises'
import { quantityValue } from '../pod/quantity.ts'
import { ensureTmpfs } from './ensure-tmpfs.ts'
import { applyFsGroup } from './fs-group.ts'
import { volumeFolder } from './pod-folder.ts'
import { onceForPod } from './ready-mark.ts'
import { VolumeError } from './volume-error.ts'
import type { PrepareVolume } from './volume-plugin.ts'

/**
 * An empty folder that lives as long as the pod, for anybody to write to; on a tmpfs with medium Memory, no
 * larger than its limit and the pod's memory (`pkg/volume/emptydir/empty_dir.go`, 1.36). A limit on disk is
 * held by checking what is used (disk-usage.ts).
 */
export const prepareEmptyDir: PrepareVolume = async (volume, context) => {
  if (volume.emptyDir === undefined) return undefined
  const { medium, sizeLimit } = volume.emptyDir
  if (medium !== '' && medium !== 'Memory') {
    throw new VolumeError('VOLUME_SETUP', `emptyDir medium ${JSON.stringify(medium)} is not supported`)
  }
  const { rootDir, uid, memoryBytes, fsGroup } = context
  const folder = volumeFolder(rootDir, uid, 'empty-dir', volume.name)
  await mkdir(folder, { recursive: true, mode: 0o750 })
  if (medium === 'Memory') {
    const limitBytes = sizeLimit === undefined ? 0 : quantityValue(sizeLimit)
    await ensureTmpfs(folder, limitBytes > 0 ? Math.min(limitBytes, memoryBytes) : memoryBytes)
  }
  await onceForPod(context, volume.name, async () => {
    // Whatever the umask says.
    await chmod(folder, 0o777)
    if (fsGroup !== undefined) await applyFsGroup(folder, { ...fsGroup, changePolicy: 'Always' })
  })
  return { hostPath: folder, selinuxRelabel: true }
}
