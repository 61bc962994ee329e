import type { Stats } from 'node:fs'
import { chmod, lstat, mkdir, rmdir, stat, unlink, writeFile } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { errorCode, errorMessage, ifThere } from '../base/errors.ts'
import { cleanPath } from '../base/text.ts'
import { bindMount, isMounted, readMounts, unmount } from '../host/mounts.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { VolumeSpec } from '../pod/schema/volume-schema.ts'
import type { PodUid } from '../pod/values/ids.ts'
import type { MissingSubPath, NestedMount } from '../translate/mounts.ts'
import { dataLink } from './atomic-writer.ts'
import { findKernelTree, makeInside, openInside, VolumeError } from './open-inside.ts'
import { podDirectory } from './pod-directory.ts'

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
  await using source = await openOrMake(mount)
  await bind(source, target)
  return target
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
    throw new VolumeError(whenMissing.message, { cause: error })
  }
}

/** Throws VolumeError where nothing may be made: see findKernelTree. */
async function requireMayBeMade(volumePath: string, subPath: string): Promise<void> {
  const path = join(volumePath, subPath)
  const tree = await findKernelTree(path)
  if (tree === undefined) return
  const message = `${path} does not exist, and nothing is made below ${tree}: waiting for it`
  throw new VolumeError(message, { awaitedPath: path })
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

async function kindAt(path: string): Promise<Kind | undefined> {
  const found = await ifThere(lstat(path))
  return found && kindOf(found)
}

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
    const message = `nothing can be mounted at ${path} of a volume: ${errorMessage(error)}`
    throw new VolumeError(message, { cause: error })
  }
}

/** Links lead to the volume's files, and stay; so does all that isn't empty. */
async function removeOtherKind(target: string, isDirectory: boolean, isInUse: boolean): Promise<void> {
  const found = await ifThere(lstat(target), nothingThere)
  if (found === undefined || found.isSymbolicLink() || found.isDirectory() === isDirectory) return
  if (!found.isDirectory() && found.size > 0) return
  if (isInUse) {
    const [there, wanted] = isDirectory ? ['file', 'directory'] : ['directory', 'file']
    const message = `a ${there} is there, which can become a ${wanted} once no other container that has the volume runs`
    throw new VolumeError(message)
  }
  await (found.isDirectory() ? rmdir(target) : unlink(target))
}

/** A way that leads through a file fails where the mount point is made. */
const nothingThere = ['ENOENT', 'ENOTDIR']

type Kind = 'directory' | 'file'

/**
 * Checks that what a container mounts fits what its image has there: no directory can be mounted over a file, nor a file
 * over a directory. A hostPath that is missing becomes a directory, too.
 *
 * Of the image is known what a container shows that runs of it. Where that mounts something there itself, or a link leads
 * elsewhere, nothing is known, and nothing is refused.
 * @param pid of that container
 * @param procDirectory for tests
 * @throws VolumeError VOLUME_SETUP
 */
export async function checkMountKinds(
  { name: container, volumeMounts }: ContainerSpec,
  volumes: readonly VolumeSpec[],
  pid: number,
  procDirectory = '/proc',
): Promise<void> {
  const mounted = readMounts(`${procDirectory}/${pid}/mountinfo`).map(({ mountPoint }) => mountPoint)
  for (const { name, mountPath, subPath = '', subPathExpr = '' } of volumeMounts) {
    const volume = volumes.find((candidate) => candidate.name === name)
    if (volume === undefined || subPath !== '' || subPathExpr !== '') continue
    const path = posix.resolve('/', mountPath)
    if (mounted.some((point) => point !== '/' && (path === point || path.startsWith(`${point}/`)))) continue
    const inImage = await kindInside(`${procDirectory}/${pid}/root`, path)
    const { kind, what } = await kindOfVolume(volume)
    if (inImage === undefined || inImage === kind) continue
    throw new VolumeError(
      `${what}, and container ${container} has a ${inImage} at ${path} in its image: a ${kind} can't be mounted over that`,
      { hint: 'Mount it elsewhere, or let there be a file (a directory) on the host.' },
    )
  }
}

/** What the volume will be when it is prepared. */
async function kindOfVolume({
  name,
  hostPath,
}: VolumeSpec): Promise<{ readonly kind: Kind; readonly what: string }> {
  if (hostPath === undefined) return { kind: 'directory', what: `volume ${name} is a directory` }
  const { path, type } = hostPath
  const found = await ifThere(stat(path), [...nothingThere, 'ESRCH'])
  if (found !== undefined) return { kind: kindOf(found), what: `hostPath ${path} is a ${kindOf(found)}` }
  const kind = type === 'FileOrCreate' ? 'file' : 'directory'
  return { kind, what: `hostPath ${path} does not exist, and a ${kind} would be made there` }
}

/** No link on the way is followed: it would lead out of the container. */
async function kindInside(root: string, path: string): Promise<Kind | undefined> {
  let at = root
  let found: Stats | undefined
  for (const step of path.split('/').filter((part) => part !== '')) {
    at = `${at}/${step}`
    // ESRCH: the container has ended.
    found = await ifThere(lstat(at), [...nothingThere, 'ESRCH'])
    if (found === undefined || found.isSymbolicLink()) return undefined
  }
  return found && kindOf(found)
}

function kindOf(stats: Stats): Kind {
  return stats.isDirectory() ? 'directory' : 'file'
}
