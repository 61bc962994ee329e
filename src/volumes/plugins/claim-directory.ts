import { lstat, readdir, realpath, rename } from 'node:fs/promises'
import { removeTree } from '../../base/atomic-file.ts'
import { errorCode } from '../../base/errors.ts'
import { newUuid } from '../../base/random.ts'
import { mountsBelow, readMounts } from '../../host/mounts.ts'
import type { SourceName } from '../../pod/objects/document.ts'
import type { ObjectKey } from '../../pod/objects/local-object.ts'
import { objectKey } from '../../pod/objects/local-object.ts'
import { forgetClaimOwner, readClaimOwner } from './claim-owner.ts'
import { VolumeError } from '../files/volume-error.ts'

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
    throw new VolumeError(
      'VOLUME_TEARDOWN',
      `${directory} is a symbolic link, and podd doesn't know whose data it leads to`,
      undefined,
      'Remove the link, and what it leads to, by hand.',
    )
  }
  const [mounted] = mountsBelow(await realpath(directory), readMounts())
  if (mounted !== undefined) {
    throw new VolumeError(
      'VOLUME_TEARDOWN',
      `something is mounted at ${mounted}`,
      undefined,
      'Unmount it first: what is mounted there is not deleted.',
    )
  }
  const doomed = `${rootDir}/claims/${namespace}/${purgedPrefix}${newUuid()}`
  await rename(directory, doomed)
  await forgetClaimOwner(directory)
  await removeTree(doomed)
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
  try {
    const entries = await readdir(path, { withFileTypes: true })
    const directories = entries.filter((entry) => entry.isDirectory() && isMeant(entry.name))
    return directories.map(({ name }) => name).sort()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    throw error
  }
}
