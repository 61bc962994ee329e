import type { FileHandle } from 'node:fs/promises'
import { mkdir, stat, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from '../base/errors.ts'
import { bindMount, isMounted, unmount } from '../host/mounts.ts'
import type { PodUid } from '../pod/values/ids.ts'
import { makeInside, openInside } from './files/open-inside.ts'
import { podDirectory } from './pod-directory/pod-directory.ts'

/** One of a container's mounts that shows a part of a volume. */
export interface SubPathMount {
  readonly rootDir: string
  readonly uid: PodUid
  readonly container: string
  readonly volume: string
  /** Of the mount in the container's list. */
  readonly index: number
  readonly volumePath: string
  /** Inside the volume; expanded already. */
  readonly subPath: string
}

/**
 * Binds what lies at a path inside a volume to a place of the pod's, and gives that place: a container that
 * may write to the volume can swap the path for a link meanwhile, and still gets what was found inside.
 * A directory is made where nothing is. One that is bound already stays, unless the path shows something else
 * now (`pkg/volume/util/subpath/subpath_linux.go`, 1.36).
 * @throws VolumeError where the path leads out of the volume
 */
export async function bindSubPath(mount: SubPathMount): Promise<string> {
  const { rootDir, uid, container, volume, index } = mount
  const target = `${podDirectory(rootDir, uid)}/volume-subpaths/${volume}/${container}/${index}`
  const source = await openOrMake(mount)
  try {
    await bind(source, target)
    return target
  } finally {
    await source.close()
  }
}

async function openOrMake({ volumePath, subPath }: SubPathMount): Promise<FileHandle> {
  try {
    return await openInside(volumePath, subPath)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    const { mode } = await stat(volumePath)
    // With its set-id and sticky bits, as the kubelet makes it: what is made inside comes to belong to its group.
    return makeInside(volumePath, subPath, mode & 0o7777)
  }
}

async function bind(source: FileHandle, target: string): Promise<void> {
  const wanted = await source.stat()
  if (await isMounted(target)) {
    const shown = await stat(target)
    if (shown.dev === wanted.dev && shown.ino === wanted.ino) return
    await unmount(target)
  }
  await mkdir(dirname(target), { recursive: true, mode: 0o750 })
  if (wanted.isDirectory()) await mkdir(target, { recursive: true, mode: 0o750 })
  else await writeFile(target, '', { flag: 'a', mode: 0o640 })
  // The mounting program reaches the very thing that is open here, whatever lies at its path by now.
  await bindMount(`/proc/${process.pid}/fd/${source.fd}`, target)
}
