import { createHash } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import type { SourceName } from '../../pod/objects/document.ts'
import {
  configNames,
  kindOfSource,
  parseSourceName,
  policySettings,
  sourceWords,
} from '../../pod/values/ids.ts'
import { readIfExists, removeFileDurably, writeFileAtomic } from '../../base/atomic-file.ts'
import { VolumeError } from '../files/volume-error.ts'
import type { ClaimAccess } from './volume-plugin.ts'

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
    'VOLUME_SETUP',
    `persistentvolumeclaim "${basename(directory)}" of ${sourceWords(source)} would hold data of ${sourceWords(owner)}, which it may read only where ${policySettings(source)}.readsObjectsOf in podd's configuration has "${configNames[kindOfSource(owner)]}"`,
    undefined,
    'Give the claim another name, purge the data, or allow it in the configuration.',
  )
}

/** Removes the record of purged data. */
export async function forgetClaimOwner(directory: string): Promise<void> {
  await removeFileDurably(ownerFile(directory))
}

/**
 * The source that owns the data in a claim's directory; undefined where podd has no record of it. A truncated record
 * may name another source, and counts as none.
 */
export async function readClaimOwner(directory: string): Promise<SourceName | undefined> {
  const text = await readIfExists(ownerFile(directory))
  return text?.endsWith('\n') === true ? parseSourceName(text.slice(0, -1)) : undefined
}
