import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { JsonObject } from '../base/json.ts'
import { isJsonObject } from '../base/json.ts'
import type { SourceDocument, SourceName } from '../pod/objects/document.ts'
import { isObjectKind, objectFromManifest } from '../pod/objects/local-object.ts'
import { podFromManifest } from '../pod/decode/pod-from-manifest.ts'
import { readIfExists, removeAtomicFileTemps, writeFileAtomic } from '../base/atomic-file.ts'

/** The last good copy of every source, on disk, so that pods outlive a source that turned bad, also over a reboot. */
export interface LastGoodStore {
  /**
   * What was saved of a source at this location (another location's copy doesn't count); undefined
   * where there is none, or none that can be read. Throws what the system throws, but for ENOENT.
   */
  load(source: SourceName, location: string): Promise<readonly SourceDocument[] | undefined>
  /** Throws what the system throws (ENOSPC, EROFS, …); the copy before then still stands. */
  save(source: SourceName, location: string, documents: readonly SourceDocument[]): Promise<void>
}

const version = 1

/**
 * One file of mode 0600 for each source, in `folder`, which is made when it is first needed.
 * @param options.persistSecrets whether Secrets are kept too (`true`); without, a boot with the source
 * away leaves the pods that need them waiting
 */
export function createLastGoodStore(
  folder: string,
  options: { readonly persistSecrets?: boolean } = {},
): LastGoodStore {
  const persistSecrets = options.persistSecrets ?? true
  return {
    async load(source, location) {
      const path = join(folder, `${source}.json`)
      await removeAtomicFileTemps(path)
      const text = await readIfExists(path)
      return text === undefined ? undefined : parseCopy(text, location)
    },
    async save(source, location, documents) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const kept = documents.filter(({ manifest }) => persistSecrets || manifest['kind'] !== 'Secret')
      const copy = {
        version,
        location,
        documents: kept.map(({ manifest, place }) => Object.assign({}, place, { manifest })),
      }
      await writeFileAtomic(join(folder, `${source}.json`), `${JSON.stringify(copy)}\n`, { mode: 0o600 })
    },
  }
}

function parseCopy(text: string, location: string): readonly SourceDocument[] | undefined {
  try {
    const copy: unknown = JSON.parse(text)
    if (!isJsonObject(copy) || copy['version'] !== version || copy['location'] !== location) return undefined
    const documents = copy['documents']
    return Array.isArray(documents) ? documents.flatMap((item) => parseDocument(item)) : undefined
  } catch {
    return undefined
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
    const { kind } = manifest
    return typeof kind === 'string' && isObjectKind(kind)
      ? [{ object: objectFromManifest(manifest), manifest, place }]
      : [{ pod: podFromManifest(manifest), manifest, place }]
  } catch {
    return []
  }
}
