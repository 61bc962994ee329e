import type { Stats } from 'node:fs'
import { lstat, mkdir, rmdir, stat, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorCode, errorMessage } from '../base/errors.ts'
import type { NestedMount } from '../translate/mounts.ts'
import { VolumeError } from './files/volume-error.ts'

/**
 * Creates a mount point in a directory of podd's files: the runtime can't, as containers get such a directory read-only
 * (`pkg/volume/util/nested_volumes.go` MakeNestedMountpoints, 1.36, which knows directories only). One of the other kind
 * is replaced, unless the directory is in use: removing a mount point ends what is mounted there in any container.
 * @throws VolumeError VOLUME_SETUP
 */
export async function makeNestedMountPoint(
  { directory, path, source }: NestedMount,
  isInUse: boolean,
): Promise<void> {
  const target = join(directory, path)
  try {
    const isDirectory = source === undefined || (await stat(source)).isDirectory()
    await removeOtherKind(target, isDirectory, isInUse)
    if (isDirectory) {
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

/** Links lead to the volume's files, and stay; so does all that isn't empty. */
async function removeOtherKind(target: string, isDirectory: boolean, isInUse: boolean): Promise<void> {
  const found = await statIfThere(target)
  if (found === undefined || found.isSymbolicLink() || found.isDirectory() === isDirectory) return
  if (!found.isDirectory() && found.size > 0) return
  if (isInUse) {
    const [there, wanted] = isDirectory ? ['file', 'directory'] : ['directory', 'file']
    const message = `a ${there} is there, which can become a ${wanted} once no other container that has the volume runs`
    throw new VolumeError('VOLUME_SETUP', message)
  }
  await (found.isDirectory() ? rmdir(target) : unlink(target))
}

async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    // A way that leads through a file fails where the mount point is made.
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return undefined
    throw error
  }
}
