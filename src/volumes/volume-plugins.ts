import type { Stats } from 'node:fs'
import { chmod, lchown, mkdir, stat, writeFile } from 'node:fs/promises'
import { makeDirectory } from '../base/atomic-file.ts'
import { errorMessage, ifThere } from '../base/errors.ts'
import { isMounted, mountTmpfs } from '../host/mounts.ts'
import type { VolumeSpec } from '../pod/schema/volume-schema.ts'
import type { PodUid, SourceKind, SourceName } from '../pod/values/ids.ts'
import { quantityValue } from '../pod/values/quantity.ts'
import type { HostVolume } from '../translate/mounts.ts'
import { MissingReference } from '../translate/references.ts'
import type { VolumeFiles } from '../translate/volume-files.ts'
import { hasVolumeFiles, writeVolumeFiles } from './atomic-writer.ts'
import { applyFsGroup, findKernelTree, VolumeError } from './open-inside.ts'
import type { FsGroup } from './open-inside.ts'
import { forgetReady, onceForPod, volumeDirectory } from './pod-directory.ts'

/** The source of a claim, and whose data it may use. */
export interface ClaimAccess {
  readonly source: SourceName
  /** The other sources whose data it may take over. */
  readonly readsDataOf: readonly SourceKind[]
}

/** What a volume plugin gets of the pod and the host. */
export interface VolumeContext {
  readonly uid: PodUid
  readonly namespace: string
  readonly rootDir: string
  /** The most memory that the pod may use: its memory limit, or else the host's memory. */
  readonly memoryBytes: number
  readonly fsGroup: FsGroup | undefined
  /** The current files of such a volume; undefined for volumes of other kinds. Throws MissingReference. */
  readonly files: (volume: VolumeSpec) => VolumeFiles | undefined
  /** The claim of that name in the pod's namespace, as its source sees it. Throws MissingReference. */
  readonly findClaim: (name: string) => ClaimAccess
  /** Called with what a volume has to do without. */
  readonly warn: (volume: string, message: string) => void
  /** The wall clock. */
  readonly nowMs: number
}

/**
 * Prepares one volume, unless it is prepared already; undefined where the volume is of another kind. Its files are in
 * the pod's directory and are removed with it (prepare-volumes.ts). Throws VolumeError.
 */
export type PrepareVolume = (volume: VolumeSpec, context: VolumeContext) => Promise<HostVolume | undefined>

/**
 * An empty directory that lives as long as the pod, writable for all; on a tmpfs with medium Memory, no larger than its
 * limit and the pod's memory (`pkg/volume/emptydir/empty_dir.go`, 1.36). A limit on disk is enforced by checking usage
 * (open-inside.ts).
 */
export const prepareEmptyDir: PrepareVolume = async (volume, context) => {
  if (volume.emptyDir === undefined) return undefined
  const { medium, sizeLimit } = volume.emptyDir
  if (medium !== '' && medium !== 'Memory') {
    throw new VolumeError(`emptyDir medium ${JSON.stringify(medium)} is not supported`)
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

/**
 * Mounts a tmpfs of this size on a directory, unless one is mounted there. `onMissing` is called before a new one is
 * mounted: the first one, or one after a reboot.
 */
async function ensureTmpfs(
  directory: string,
  sizeBytes: number,
  onMissing?: () => Promise<void>,
): Promise<void> {
  if (await isMounted(directory)) return
  await onMissing?.()
  await mountTmpfs(directory, sizeBytes)
}

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
    `hostPath ${path} does not exist, and nothing is made below ${tree}: waiting for it`,
    { hint: 'Is the device plugged in, and its driver loaded?', awaitedPath: path },
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
  const message = `hostPath type check failed: ${path} is not ${check.name}`
  if (found !== undefined) throw new VolumeError(`${message}: something else is there`)
  const hint = `Nothing is at ${path} on this host: make it, or let it be made by a type …OrCreate.`
  throw new VolumeError(`${message}: nothing is there`, { hint, awaitedPath: path })
}

async function statOf(path: string): Promise<Stats | undefined> {
  try {
    return await ifThere(stat(path), ['ENOENT', 'ENOTDIR'])
  } catch (error) {
    throw new VolumeError(`hostPath type check failed: ${errorMessage(error)}`, { cause: error })
  }
}

async function create(path: string, make: (path: string) => Promise<void>): Promise<void> {
  try {
    await make(path)
  } catch (error) {
    throw new VolumeError(`hostPath ${path} could not be made: ${errorMessage(error)}`, { cause: error })
  }
}

/** The runtime mounts an image's files itself, read-only; there is nothing on the host to prepare. */
export const prepareImageVolume: PrepareVolume = async ({ image }) =>
  image?.reference === undefined ? undefined : { hostPath: '', selinuxRelabel: false, image: image.reference }
