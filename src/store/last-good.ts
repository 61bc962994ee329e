import { join } from 'node:path'
import { putAside, readIfExists, removeAtomicFileTemps, writeFileAtomic } from '../base/atomic-file.ts'
import type { JsonObject } from '../base/json.ts'
import { isJsonObject } from '../base/json.ts'
import { makeDirectory } from '../base/make-directory.ts'
import { readState } from '../base/state-file.ts'
import type { Migration } from '../base/state-file.ts'
import type { SourceDocument, SourceName } from '../pod/objects/document.ts'
import { isObjectKind } from '../pod/kinds/object-kinds.ts'
import { holdsSecrets, objectFromManifest } from '../pod/objects/local-object.ts'
import type { StateReport } from './state-report.ts'
import { podFromManifest } from '../pod/decode/pod-from-manifest.ts'

/** What was saved of a source. */
export interface LastGoodCopy {
  readonly documents: readonly SourceDocument[]
  /** Whether this podd can read all that was saved. Documents that it can't read may still be wanted. */
  readonly isComplete: boolean
  /** Where the file system of its location was mounted; undefined for the root and where it isn't known. */
  readonly mountPoint?: string | undefined
}

/** The last good copy of every source, on disk, so that pods outlive a source that turned bad, also over a reboot. */
export interface LastGoodStore {
  /**
   * What was saved of a source at this location (another location's copy doesn't count); undefined
   * where there is none, or none that can be read (it is put aside then). Throws what the system throws, but for ENOENT.
   */
  load(source: SourceName, location: string): Promise<LastGoodCopy | undefined>
  /** Throws what the system throws (ENOSPC, EROFS, …); the copy before then still stands. */
  save(
    source: SourceName,
    location: string,
    documents: readonly SourceDocument[],
    mountPoint?: string,
  ): Promise<void>
}

const migrations: readonly Migration[] = []
const version = migrations.length + 1

/**
 * One file of mode 0600 for each source, in `directory`, which is made when it is first needed.
 * @param options.persistSecrets whether Secrets are kept too (`true`); without, a boot with the source
 * away leaves the pods that need them waiting
 * @param options.report called for a copy that can't be read
 */
export function createLastGoodStore(
  directory: string,
  options: { readonly persistSecrets?: boolean; readonly report?: StateReport } = {},
): LastGoodStore {
  const { persistSecrets = true, report } = options
  // Of many documents few change at a time.
  const known = new WeakMap<SourceDocument, string>()
  const textOf = (document: SourceDocument): string => {
    const text = known.get(document) ?? JSON.stringify({ ...document.place, manifest: document.manifest })
    known.set(document, text)
    return text
  }
  return {
    async load(source, location) {
      const path = join(directory, `${source}.json`)
      await removeAtomicFileTemps(path)
      const text = await readIfExists(path)
      if (text === undefined) return undefined
      const reading = readState(text, migrations)
      const documents = reading.kind === 'current' ? reading.content['documents'] : undefined
      if (reading.kind !== 'current' || !Array.isArray(documents)) {
        const message = reading.kind === 'current' ? 'it has no documents' : reading.message
        const aside = await putAside(path)
        report?.({ path: aside, message })
        return undefined
      }
      if (reading.content['location'] !== location) return undefined
      const parsed = documents.flatMap((item) => parseDocument(item))
      const { mountPoint } = reading.content
      return {
        documents: parsed,
        isComplete: parsed.length === documents.length,
        ...(typeof mountPoint === 'string' && { mountPoint }),
      }
    },
    async save(source, location, documents, mountPoint) {
      await makeDirectory(directory, 0o700)
      const kept = documents.filter(({ manifest }) => persistSecrets || !holdsSecrets(manifest))
      const head = JSON.stringify({ version, location, ...(mountPoint !== undefined && { mountPoint }) })
      const texts = kept.map((document) => textOf(document))
      const copy = `${head.slice(0, -1)},"documents":[${texts.join(',')}]}\n`
      await writeFileAtomic(join(directory, `${source}.json`), copy, { mode: 0o600 })
    },
  }
}

/** None where this version can't read it: then the source itself has to be read. */
function parseDocument(item: unknown): readonly SourceDocument[] {
  if (!isJsonObject(item) || !isJsonObject(item['manifest']) || typeof item['path'] !== 'string') return []
  const manifest: JsonObject = item['manifest']
  const { path, line, column } = item
  try {
    const place = {
      path,
      ...(typeof line === 'number' && { line }),
      ...(typeof column === 'number' && { column }),
    }
    return isObjectKind(manifest['kind'])
      ? [{ object: objectFromManifest(manifest), manifest, place }]
      : [{ pod: podFromManifest(manifest), manifest, place }]
  } catch {
    // Validation may be stricter than that of the podd that wrote it.
    return []
  }
}
