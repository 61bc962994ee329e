import type { FileHandle } from 'node:fs/promises'
import { chmod, lstat, mkdir, rmdir, stat, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { errorCode } from '../base/errors.ts'
import { bindMount, isMounted, unmount } from '../host/mounts.ts'
import type { PodUid } from '../pod/values/ids.ts'
import { cleanPath } from '../base/text.ts'
import type { MissingSubPath } from '../translate/mounts.ts'
import { findKernelTree } from './files/kernel-trees.ts'
import { makeInside, openInside } from './files/open-inside.ts'
import { dataLink } from './files/atomic-writer.ts'
import { VolumeError } from './files/volume-error.ts'
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
  readonly whenMissing: MissingSubPath
}

/**
 * Bind-mounts a path inside a volume to a place in the pod's directory, and returns that place. A container that may
 * write to the volume can replace the path by a link meanwhile, and still gets the file found inside. An existing mount
 * stays, unless the path refers to another file now (`pkg/volume/util/subpath/subpath_linux.go`, 1.36).
 * @throws VolumeError where the path leaves the volume, or nothing is there and nothing may stand for it
 */
export async function bindSubPath(mount: SubPathMount): Promise<string> {
  const { rootDir, uid, container, volume, index } = mount
  const target = `${podDirectory(rootDir, uid)}/volume-subpaths/${volume}/${container}/${index}`
  const source = await openOrMake(mount)
  try {
    await bind(source, target)
    return target
  } finally {
    await source?.close()
  }
}

/** Undefined where an empty directory stands for it. */
async function openOrMake(mount: SubPathMount): Promise<FileHandle | undefined> {
  const { volumePath, subPath, whenMissing } = mount
  try {
    return await openInside(searchedDirectory(mount), subPath)
  } catch (error) {
    const code = errorCode(error)
    if (whenMissing.kind === 'make' && code === 'ENOENT') {
      await requireMayBeMade(volumePath, subPath)
      const { mode } = await stat(volumePath)
      // With its set-id and sticky bits, as in the kubelet: new files inside inherit its group.
      return makeInside(volumePath, subPath, mode & 0o7777)
    }
    // A path below a file is missing too.
    if (whenMissing.kind === 'make' || (code !== 'ENOENT' && code !== 'ENOTDIR')) throw error
    if (whenMissing.kind === 'empty') return undefined
    throw new VolumeError('VOLUME_SETUP', whenMissing.message, error)
  }
}

/** Throws VolumeError where nothing may be made: see findKernelTree. */
async function requireMayBeMade(volumePath: string, subPath: string): Promise<void> {
  const path = join(volumePath, subPath)
  const tree = await findKernelTree(path)
  if (tree === undefined) return
  const message = `${path} does not exist, and nothing is made below ${tree}: waiting for it`
  throw new VolumeError('VOLUME_SETUP', message, undefined, undefined, path)
}

/**
 * The files that podd writes are behind a link. Directories beside it are mount points, or were made by an earlier podd
 * for a missing key.
 */
function searchedDirectory({ volumePath, subPath, whenMissing }: SubPathMount): string {
  const path = cleanPath(subPath)
  return whenMissing.kind === 'make' || path === '.' || path.startsWith('..')
    ? volumePath
    : `${volumePath}/${dataLink}`
}

async function bind(source: FileHandle | undefined, target: string): Promise<void> {
  const wanted = await source?.stat()
  if (await isMounted(target)) {
    const shown = await stat(target)
    if (shown.dev === wanted?.dev && shown.ino === wanted.ino) return
    await unmount(target)
  }
  await makeMountPoint(target, wanted === undefined || wanted.isDirectory() ? 'directory' : 'file')
  // The mounting program gets exactly the open file, whatever is at its path by now.
  if (source !== undefined) await bindMount(`/proc/${process.pid}/fd/${source.fd}`, target)
  // It is shown itself, to any user.
  else await chmod(target, 0o755)
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
