import { mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorCode, errorMessage } from '../base/errors.ts'
import type { NestedMount } from '../translate/volumes/mounts.ts'
import { VolumeError } from './files/volume-error.ts'

/**
 * Creates a mount point in a directory of podd's files: the runtime can't, as containers get such a directory read-only
 * (`pkg/volume/util/nested_volumes.go` MakeNestedMountpoints, 1.36, which knows directories only).
 * @throws VolumeError VOLUME_SETUP
 */
export async function makeNestedMountPoint({ directory, path, source }: NestedMount): Promise<void> {
  const target = join(directory, path)
  try {
    if (source === undefined || (await stat(source)).isDirectory()) {
      await mkdir(target, { recursive: true, mode: 0o755 })
      return
    }
    await mkdir(dirname(target), { recursive: true, mode: 0o755 })
    await writeFile(target, '', { flag: 'wx', mode: 0o644 })
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return
    throw new VolumeError(
      'VOLUME_SETUP',
      `nothing can be mounted at ${path} of a volume: ${errorMessage(error)}`,
      error,
    )
  }
}
