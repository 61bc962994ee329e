import type { Stats } from 'node:fs'
import { stat, writeFile } from 'node:fs/promises'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { makeDirectory } from '../../base/atomic-file.ts'
import type { VolumeSpec } from '../../pod/schema/volume-schema.ts'
import { findKernelTree } from '../files/kernel-trees.ts'
import { VolumeError } from '../files/volume-error.ts'
import type { PrepareVolume } from './volume-plugin.ts'

type HostPathType = NonNullable<VolumeSpec['hostPath']>['type']

interface TypeCheck {
  readonly accepts: (stats: Stats) => boolean
  /** In Kubernetes' words. */
  readonly name: string
  /** Creates it where nothing exists. */
  readonly create?: (path: string) => Promise<void>
}

const directory: TypeCheck = { accepts: (stats) => stats.isDirectory(), name: 'a directory' }
const file: TypeCheck = { accepts: (stats) => stats.isFile(), name: 'a file' }

const checks: Readonly<Record<Exclude<HostPathType, ''>, TypeCheck>> = {
  Directory: directory,
  DirectoryOrCreate: {
    ...directory,
    create: (path) => makeDirectory(path, 0o755),
  },
  File: file,
  // Its directory must exist: only the file itself is created.
  FileOrCreate: { ...file, create: (path) => writeFile(path, '', { flag: 'a', mode: 0o644 }) },
  Socket: { accepts: (stats) => stats.isSocket(), name: 'a socket file' },
  CharDevice: { accepts: (stats) => stats.isCharacterDevice(), name: 'a character device' },
  BlockDevice: { accepts: (stats) => stats.isBlockDevice(), name: 'a block device' },
}

/**
 * A path of the host, checked to be of the manifest's type; symbolic links are followed
 * (`pkg/volume/hostpath/host_path.go`, 1.36). Without a type nothing is checked, and the runtime creates a directory
 * where nothing exists; but below /dev, /sys and /proc nothing is ever created: the pod waits for it.
 */
export const prepareHostPath: PrepareVolume = async (volume) => {
  if (volume.hostPath === undefined) return undefined
  const { path, type } = volume.hostPath
  if (type !== '') await checkType(path, checks[type])
  else if ((await statOf(path)) === undefined) await requireMayBeMade(path)
  return { hostPath: path, selinuxRelabel: false }
}

/** Checks that it exists or can be created, without creating it. Throws VolumeError. */
export async function checkHostPath({ hostPath }: VolumeSpec): Promise<void> {
  if (hostPath === undefined) return
  const { path, type } = hostPath
  const found = await statOf(path)
  const check = type === '' ? undefined : checks[type]
  if (found === undefined && (check === undefined || check.create !== undefined))
    return requireMayBeMade(path)
  if (check !== undefined) requireType(path, check, found)
}

/** Throws VolumeError for a path where nothing is, and nothing may be made. */
async function requireMayBeMade(path: string): Promise<void> {
  const tree = await findKernelTree(path)
  if (tree === undefined) return
  throw new VolumeError(
    'VOLUME_SETUP',
    `hostPath ${path} does not exist, and nothing is made below ${tree}: waiting for it`,
    undefined,
    'Is the device plugged in, and its driver loaded?',
    path,
  )
}

async function checkType(path: string, check: TypeCheck): Promise<void> {
  let found = await statOf(path)
  if (found === undefined && check.create !== undefined) {
    await requireMayBeMade(path)
    await create(path, check.create)
    found = await statOf(path)
  }
  requireType(path, check, found)
}

function requireType(path: string, check: TypeCheck, found: Stats | undefined): void {
  if (found !== undefined && check.accepts(found)) return
  throw new VolumeError(
    'VOLUME_SETUP',
    `hostPath type check failed: ${path} is not ${check.name}`,
    undefined,
    found === undefined
      ? `Nothing is at ${path} on this host: make it, or let it be made by a type …OrCreate.`
      : undefined,
    found === undefined ? path : undefined,
  )
}

async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path)
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new VolumeError('VOLUME_SETUP', `hostPath type check failed: ${errorMessage(error)}`, error)
  }
}

async function create(path: string, make: (path: string) => Promise<void>): Promise<void> {
  try {
    await make(path)
  } catch (error) {
    throw new VolumeError('VOLUME_SETUP', `hostPath ${path} could not be made: ${errorMessage(error)}`, error)
  }
}
