import type { FileHandle } from 'node:fs/promises'
import { lstat, mkdir, rmdir, stat, unlink, writeFile } from 'node:fs/promises'
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
  /** The index of the mount in the container's list. */
  readonly index: number
  readonly volumePath: string
  /** The path inside the volume, already expanded. */
  readonly subPath: string
}

/**
 * Bind-mounts a path inside a volume to a place in the pod's directory, and returns that place. A container that may
 * write to the volume can replace the path by a link meanwhile, and still gets the file found inside. Creates a
 * directory where nothing exists. An existing mount stays, unless the path refers to another file now
 * (`pkg/volume/util/subpath/subpath_linux.go`, 1.36).
 * @throws VolumeError where the path leaves the volume
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
    // With its set-id and sticky bits, as in the kubelet: new files inside inherit its group.
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
  await makeMountPoint(target, wanted.isDirectory() ? 'directory' : 'file')
  // The mounting program gets exactly the open file, whatever is at its path by now.
  await bindMount(`/proc/${process.pid}/fd/${source.fd}`, target)
}

/** Nothing is mounted there. An empty mount point of the other kind, which an earlier mount left, is replaced. */
async function makeMountPoint(target: string, kind: 'directory' | 'file'): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o750 })
  const found = await kindAt(target)
  if (found === kind) return
  if (found === 'directory') await rmdir(target)
  if (found === 'file') await unlink(target)
  if (kind === 'directory') await mkdir(target, { mode: 0o750 })
  else await writeFile(target, '', { flag: 'wx', mode: 0o640 })
}

async function kindAt(path: string): Promise<'directory' | 'file' | undefined> {
  try {
    return (await lstat(path)).isDirectory() ? 'directory' : 'file'
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}
