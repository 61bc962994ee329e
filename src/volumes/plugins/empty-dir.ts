import { chmod, mkdir } from 'node:fs/promises'
import { quantityValue } from '../../pod/values/quantity.ts'
import { ensureTmpfs } from './ensure-tmpfs.ts'
import { applyFsGroup } from '../files/fs-group.ts'
import { volumeDirectory } from '../pod-directory/pod-directory.ts'
import { forgetReady, onceForPod } from '../pod-directory/ready-mark.ts'
import { VolumeError } from '../files/volume-error.ts'
import type { PrepareVolume } from './volume-plugin.ts'

/**
 * An empty directory that lives as long as the pod, writable for all; on a tmpfs with medium Memory, no larger than its
 * limit and the pod's memory (`pkg/volume/emptydir/empty_dir.go`, 1.36). A limit on disk is enforced by checking usage
 * (disk-usage.ts).
 */
export const prepareEmptyDir: PrepareVolume = async (volume, context) => {
  if (volume.emptyDir === undefined) return undefined
  const { medium, sizeLimit } = volume.emptyDir
  if (medium !== '' && medium !== 'Memory') {
    throw new VolumeError('VOLUME_SETUP', `emptyDir medium ${JSON.stringify(medium)} is not supported`)
  }
  const { rootDir, uid, memoryBytes, fsGroup } = context
  const directory = volumeDirectory(rootDir, uid, 'empty-dir', volume.name)
  await mkdir(directory, { recursive: true, mode: 0o750 })
  if (medium === 'Memory') {
    const limitBytes = sizeLimit === undefined ? 0 : quantityValue(sizeLimit)
    const sizeBytes = limitBytes > 0 ? Math.min(limitBytes, memoryBytes) : memoryBytes
    // The mark survives a reboot, unlike its tmpfs.
    await ensureTmpfs(directory, sizeBytes, () => forgetReady(context, volume.name))
  }
  await onceForPod(context, volume.name, async () => {
    // Independent of the umask. A tmpfs has the mode that the kernel gives one: /tmp's.
    await chmod(directory, medium === 'Memory' ? 0o1777 : 0o777)
    if (fsGroup === undefined) return
    const refusal = await applyFsGroup(directory, { ...fsGroup, changePolicy: 'Always' })
    if (refusal !== undefined) context.warn(volume.name, refusal)
  })
  return { hostPath: directory, selinuxRelabel: true }
}
