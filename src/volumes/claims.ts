import { createHash } from 'node:crypto'
import { chmod, lstat, mkdir, readdir, realpath, rename, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { readIfExists, removeFileDurably, removeTree, writeFileAtomic } from '../base/atomic-file.ts'
import { errorMessage, ifThere } from '../base/errors.ts'
import { newUuid } from '../base/random.ts'
import { mountsBelow, readMounts } from '../host/mounts.ts'
import { objectKey } from '../pod/objects/local-object.ts'
import type { ObjectKey } from '../pod/objects/local-object.ts'
import { configNames, kindOfSource, parseSourceName, policySettings, sourceWords } from '../pod/values/ids.ts'
import type { SourceName } from '../pod/values/ids.ts'
import { applyFsGroup, VolumeError } from './open-inside.ts'
import { isReady, onceForPod } from './pod-directory.ts'
import type { ClaimAccess, PrepareVolume, VolumeContext } from './volume-plugins.ts'

/**
 * The directory of a PersistentVolumeClaim: created for the first pod that needs it, given to the pod's group, and
 * never removed with a pod.
 */
export const prepareClaim: PrepareVolume = async (volume, context) => {
  const source = volume.persistentVolumeClaim
  if (source === undefined) return undefined
  const { rootDir, namespace, fsGroup } = context
  const directory = claimDirectory(rootDir, namespace, source.claimName)
  const access = await findClaim(volume.name, source.claimName, context)
  const isNew = await makeClaimDirectory(directory)
  if (access !== undefined) await takeClaimData({ directory, isNew }, access)
  await onceForPod(context, volume.name, async () => {
    if (fsGroup === undefined || source.readOnly) return
    const refusal = await applyFsGroup(directory, fsGroup)
    if (refusal !== undefined) context.warn(volume.name, refusal)
  })
  return { hostPath: directory, selinuxRelabel: true, readOnly: source.readOnly }
}

/** Undefined for a pod that already has its volume and whose claim is gone: it keeps the volume. */
async function findClaim(
  volume: string,
  claim: string,
  context: VolumeContext,
): Promise<ClaimAccess | undefined> {
  try {
    return context.findClaim(claim)
  } catch (error) {
    if (await isReady(context, volume)) return undefined
    const hint = 'Add its document to a source; the pod starts by itself then.'
    throw new VolumeError(errorMessage(error), { cause: error, hint })
  }
}

/** Creates the directory, writable for all, like an emptyDir; its parents are root's. Returns whether it is new. */
async function makeClaimDirectory(directory: string): Promise<boolean> {
  if ((await ifThere(stat(directory))) !== undefined) return false
  await mkdir(directory, { recursive: true, mode: 0o700 })
  await chmod(directory, 0o777)
  return true
}

/** `<root>/claims/<namespace>/<name>`: survives pods, podd's upgrades and its removal. */
export function claimDirectory(rootDir: string, namespace: string, name: string): string {
  return `${rootDir}/claims/${namespace}/${name}`
}

export interface ClaimName {
  readonly namespace: string
  readonly name: string
}

/** The claims that have a directory. */
export async function listClaimDirectories(rootDir: string): Promise<readonly ClaimName[]> {
  const claims: ClaimName[] = []
  for (const namespace of await directoriesIn(`${rootDir}/claims`)) {
    for (const name of await directoriesIn(`${rootDir}/claims/${namespace}`)) claims.push({ namespace, name })
  }
  return claims
}

/** The sources that own claims' data, by claim key, as far as recorded. */
export async function listClaimOwners(rootDir: string): Promise<ReadonlyMap<ObjectKey, SourceName>> {
  const owners = new Map<ObjectKey, SourceName>()
  for (const { namespace, name } of await listClaimDirectories(rootDir)) {
    const owner = await readClaimOwner(claimDirectory(rootDir, namespace, name))
    if (owner !== undefined) owners.set(objectKey('PersistentVolumeClaim', namespace, name), owner)
  }
  return owners
}

/**
 * Deletes a claim's data permanently. The data is moved away from its name first; if podd is killed on the way,
 * `finishPurges` completes it.
 * @throws VolumeError where something is mounted into it, or it is a link; what the file system throws (ENOENT: no such
 * data)
 */
export async function purgeClaimDirectory(rootDir: string, { namespace, name }: ClaimName): Promise<void> {
  const directory = claimDirectory(rootDir, namespace, name)
  if ((await lstat(directory)).isSymbolicLink()) {
    const message = `${directory} is a symbolic link, and podd doesn't know whose data it leads to`
    const hint = 'Remove the link, and what it leads to, by hand.'
    throw new VolumeError(message, { code: 'VOLUME_TEARDOWN', hint })
  }
  const [mounted] = mountsBelow(await realpath(directory), readMounts())
  if (mounted !== undefined) {
    const hint = 'Unmount it first: what is mounted there is not deleted.'
    throw new VolumeError(`something is mounted at ${mounted}`, { code: 'VOLUME_TEARDOWN', hint })
  }
  const purged = `${rootDir}/claims/${namespace}/${purgedPrefix}${newUuid()}`
  await rename(directory, purged)
  await removeFileDurably(ownerFile(directory))
  await removeTree(purged)
}

/** Completes interrupted purges, except where something is mounted inside. Throws what the file system throws. */
export async function finishPurges(rootDir: string): Promise<void> {
  for (const namespace of await directoriesIn(`${rootDir}/claims`)) {
    const parent = `${rootDir}/claims/${namespace}`
    for (const name of await directoriesIn(parent, (each) => each.startsWith(purgedPrefix))) {
      // Another purge may be working on it.
      const directory = await realpath(`${parent}/${name}`).catch(() => undefined)
      if (directory === undefined || mountsBelow(directory, readMounts()).length > 0) continue
      await removeTree(directory)
    }
  }
}

const purgedPrefix = '.purged-'

const isVisible = (name: string): boolean => !name.startsWith('.')

async function directoriesIn(path: string, isMeant = isVisible): Promise<readonly string[]> {
  const entries = (await ifThere(readdir(path, { withFileTypes: true }))) ?? []
  const directories = entries.filter((entry) => entry.isDirectory() && isMeant(entry.name))
  return directories.map(({ name }) => name).sort()
}

/** A file's name may have so many bytes. */
const longestName = 255

/**
 * The file beside a claim's directory with the name of the source whose data it holds. No claim's name begins with a
 * dot. A claim whose name leaves no room for more has its file under the name's hash.
 */
function ownerFile(directory: string): string {
  const claim = basename(directory)
  const name = `.source-${claim}`
  const isShort = Buffer.byteLength(name) <= longestName
  return join(
    dirname(directory),
    isShort ? name : `.source_${createHash('sha256').update(claim).digest('hex')}`,
  )
}

/**
 * Records the claim's source as the owner of its directory where none is recorded.
 * @throws VolumeError where the data belongs to a source that the claim may not use
 */
export async function takeClaimData(
  { directory, isNew }: { readonly directory: string; readonly isNew: boolean },
  { source, readsDataOf }: ClaimAccess,
): Promise<void> {
  const owner = isNew ? undefined : await readClaimOwner(directory)
  if (owner === undefined) return await writeFileAtomic(ownerFile(directory), `${source}\n`)
  if (owner === source || readsDataOf.includes(kindOfSource(owner))) return undefined
  throw new VolumeError(
    `persistentvolumeclaim "${basename(directory)}" of ${sourceWords(source)} would hold data of ${sourceWords(owner)}, which it may read only where ${policySettings(source)}.readsObjectsOf in podd's configuration has "${configNames[kindOfSource(owner)]}"`,
    { hint: 'Give the claim another name, purge the data, or allow it in the configuration.' },
  )
}

/**
 * The source that owns the data in a claim's directory; undefined where podd has no record of it. A truncated record
 * may name another source, and counts as none.
 */
export async function readClaimOwner(directory: string): Promise<SourceName | undefined> {
  const text = await readIfExists(ownerFile(directory))
  return text?.endsWith('\n') === true ? parseSourceName(text.slice(0, -1)) : undefined
}
