import type { Stats } from 'node:fs'
import { lstat, stat } from 'node:fs/promises'
import { posix } from 'node:path'
import { errorCode } from '../base/errors.ts'
import { readMounts } from '../host/mounts.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { VolumeSpec } from '../pod/schema/volume-schema.ts'
import { VolumeError } from './files/volume-error.ts'

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
      'VOLUME_SETUP',
      `${what}, and container ${container} has a ${inImage} at ${path} in its image: a ${kind} can't be mounted over that`,
      undefined,
      'Mount it elsewhere, or let there be a file (a directory) on the host.',
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
  const found = await ifThere(stat(path))
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
    found = await ifThere(lstat(at))
    if (found === undefined || found.isSymbolicLink()) return undefined
  }
  return found && kindOf(found)
}

function kindOf(stats: Stats): Kind {
  return stats.isDirectory() ? 'directory' : 'file'
}

async function ifThere(looking: Promise<Stats>): Promise<Stats | undefined> {
  try {
    return await looking
  } catch (error) {
    const code = errorCode(error)
    // ESRCH: the container has ended.
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ESRCH') return undefined
    throw error
  }
}
