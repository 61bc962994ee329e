import { basename, dirname, join } from 'node:path'
import type { SourceName } from '../../pod/objects/document.ts'
import {
  configNames,
  kindOfSource,
  parseSourceName,
  policySettings,
  sourceWords,
} from '../../pod/values/source-name.ts'
import { readIfExists, removeFileDurably, writeFileAtomic } from '../../base/atomic-file.ts'
import { VolumeError } from '../files/volume-error.ts'
import type { ClaimAccess } from './volume-plugin.ts'

/** Beside a claim's directory: the name of the source whose data it holds. No claim's name begins with a dot. */
const prefix = '.source-'

function ownerFile(directory: string): string {
  return join(dirname(directory), `${prefix}${basename(directory)}`)
}

/**
 * Records the claim's source as the owner of what is in its directory, where it has none: of a new one, and of one that
 * podd has no record of.
 * @throws VolumeError where it belongs to a source whose data the claim may not stand for
 */
export async function takeClaimData(
  { directory, isNew }: { readonly directory: string; readonly isNew: boolean },
  { source, readsDataOf }: ClaimAccess,
): Promise<void> {
  const owner = isNew ? undefined : await readClaimOwner(directory)
  if (owner === undefined) return await writeFileAtomic(ownerFile(directory), `${source}\n`)
  if (owner === source || readsDataOf.includes(kindOfSource(owner))) return undefined
  throw new VolumeError(
    'VOLUME_SETUP',
    `persistentvolumeclaim "${basename(directory)}" of ${sourceWords(source)} would hold data of ${sourceWords(owner)}, which it may read only where ${policySettings(source)}.readsObjectsOf in podd's configuration has "${configNames[kindOfSource(owner)]}"`,
    undefined,
    'Give the claim another name, purge the data, or allow it in the configuration.',
  )
}

/** Of data that is purged. */
export async function forgetClaimOwner(directory: string): Promise<void> {
  await removeFileDurably(ownerFile(directory))
}

/**
 * The source that owns the data in a claim's directory; undefined where podd has no record of it. One that a disk has
 * lost the end of may name another source, and counts as none.
 */
export async function readClaimOwner(directory: string): Promise<SourceName | undefined> {
  const text = await readIfExists(ownerFile(directory))
  return text?.endsWith('\n') === true ? parseSourceName(text.slice(0, -1)) : undefined
}
