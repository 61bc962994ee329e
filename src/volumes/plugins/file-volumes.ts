import { chmod, lchown, mkdir } from 'node:fs/promises'
import type { VolumeSpec } from '../../pod/schema/volume-schema.ts'
import { MissingReference } from '../../translate/references.ts'
import type { VolumeFiles } from '../../translate/volume-files.ts'
import { hasVolumeFiles, writeVolumeFiles } from '../files/atomic-writer.ts'
import { ensureTmpfs } from './ensure-tmpfs.ts'
import { volumeDirectory } from '../pod-directory/pod-directory.ts'
import type { PrepareVolume, VolumeContext } from './volume-plugin.ts'

/** The storage of each kind's files. All but ConfigMaps may hold secrets. */
const kinds = {
  configMap: { directory: 'configmap', inMemory: false },
  secret: { directory: 'secret', inMemory: true },
  downwardAPI: { directory: 'downward-api', inMemory: true },
  projected: { directory: 'projected', inMemory: true },
} as const

/**
 * A directory of files that podd writes and keeps up to date: configMap, secret, downwardAPI, projected. Files of a
 * removed object stay, so that the pod's containers can restart (`pkg/volume/{configmap,secret,downwardapi,projected}`,
 * 1.36).
 */
export const prepareFiles: PrepareVolume = async (volume, context) => {
  const kind = kindOf(volume)
  if (kind === undefined) return undefined
  const { rootDir, uid, fsGroup, nowMs } = context
  const directory = volumeDirectory(rootDir, uid, kind.directory, volume.name)
  const files = await filesOf(volume, context, directory)
  if (files !== undefined) {
    await mkdir(directory, { recursive: true, mode: 0o750 })
    if (kind.inMemory) await ensureTmpfs(directory, context.memoryBytes)
    if (fsGroup !== undefined) await lchown(directory, 0, fsGroup.gid)
    // Like the kubelet's emptyDir of that medium.
    const mode = kind.inMemory ? 0o1777 : 0o777
    await chmod(directory, fsGroup === undefined ? mode : mode | 0o2000)
    await writeVolumeFiles(directory, files, { group: fsGroup?.gid, nowMs })
  }
  return { hostPath: directory, selinuxRelabel: true, files: true }
}

function kindOf(volume: VolumeSpec): (typeof kinds)[keyof typeof kinds] | undefined {
  if (volume.configMap !== undefined) return kinds.configMap
  if (volume.secret !== undefined) return kinds.secret
  if (volume.downwardAPI !== undefined) return kinds.downwardAPI
  return volume.projected === undefined ? undefined : kinds.projected
}

/** Undefined: the existing files stay. */
async function filesOf(
  volume: VolumeSpec,
  context: VolumeContext,
  directory: string,
): Promise<VolumeFiles | undefined> {
  try {
    return context.files(volume)
  } catch (error) {
    if (error instanceof MissingReference && (await hasVolumeFiles(directory))) return undefined
    throw error
  }
}
