import { join } from 'node:path'
import {
  appendFileDurably,
  isThere,
  putAside,
  readIfExists,
  removeAtomicFileTemps,
  writeFileAtomic,
  writeInto,
} from '../base/atomic-file.ts'
import { mapInTurns, systemClock } from '../base/clock.ts'
import { isJsonObject } from '../base/json.ts'
import type { Json, JsonObject } from '../base/json.ts'
import { readState } from '../base/state-file.ts'
import type { Migration, StateReading } from '../base/state-file.ts'
import { isPodDocument } from '../pod/objects/document.ts'
import type { PodDocument, SourceDocument } from '../pod/objects/document.ts'
import { holdsSecrets, objectFromManifest } from '../pod/objects/local-object.ts'
import { isObjectKind } from '../pod/objects/object-kinds.ts'
import { podFromManifest } from '../pod/schema/default-pod.ts'
import type { SourceName } from '../pod/values/ids.ts'
import type { StateReport } from './state-report.ts'

/** The saved copy of a source. */
export interface LastGoodCopy {
  readonly documents: readonly SourceDocument[]
  /** Whether this podd can read all of it. Documents that it can't read may still be desired. */
  readonly isComplete: boolean
  /** It was kept without Secrets. */
  readonly lacksSecrets?: boolean
  /** The mount point of its location's file system; undefined for the root and where unknown. */
  readonly mountPoint?: string | undefined
}

export type LastGoodStore = ReturnType<typeof createLastGoodStore>

const migrations: readonly Migration[] = []
const version = migrations.length + 1

/** From this size on a copy isn't written again for each change. */
const largeBytes = 64 * 1024

/** What the file of a source holds, as this podd wrote it. */
interface Written {
  readonly location: string
  readonly mountPoint: string | undefined
  readonly documents: readonly SourceDocument[]
  /** Of its first line, and of the changes behind that. */
  readonly sizeBytes: number
  readonly changedBytes: number
}

/**
 * The last good copy of every source, on disk, so that pods survive a source that became unreadable, also across a reboot.
 * One file of mode 0600 for each source, in `directory`, which is made when it is first needed. A large one gets its changes
 * as lines behind the first, each synced, until they are as long as that; an older podd takes such a file for none that it
 * can read. Of a line that a power cut ended in the middle nothing counts.
 * @param options.persistSecrets whether Secrets are kept too (`true`); without, pods that need them wait after a boot
 * while the source is unavailable
 * @param options.report called for a copy that can't be read
 */
export function createLastGoodStore(
  directory: string,
  options: { readonly persistSecrets?: boolean; readonly report?: StateReport } = {},
) {
  const { persistSecrets = true, report } = options
  const written = new Map<SourceName, Written>()
  const pathOf = (source: SourceName): string => join(directory, `${source}.json`)
  return {
    /**
     * The copy of a source at this location (another location's doesn't count); undefined where there is none, or none
     * that can be read (it is put aside then). Throws the system's errors except ENOENT.
     */
    async load(source: SourceName, location: string): Promise<LastGoodCopy | undefined> {
      const path = pathOf(source)
      written.delete(source)
      await removeAtomicFileTemps(path)
      const text = await readIfExists(path)
      if (text === undefined) return undefined
      const reading = readCopy(text)
      if (reading.kind === 'unreadable') {
        const aside = await putAside(path)
        report?.({ path: aside, message: reading.message })
        return undefined
      }
      const { content, documents } = reading
      if (content['location'] !== location) return undefined
      const parsed = (await mapInTurns(systemClock, documents, (item) => parseDocument(item))).flat()
      const { mountPoint } = content
      return {
        documents: parsed,
        isComplete: parsed.length === documents.length,
        ...(!persistSecrets && { lacksSecrets: true }),
        ...(typeof mountPoint === 'string' && { mountPoint }),
      }
    },
    /** Whether the source has a file, as far as can be known. */
    isThere: (source: SourceName): Promise<boolean> => isThere(pathOf(source)),
    /** Throws what the system throws (ENOSPC, EROFS, …); the previous copy then stays. */
    async save(
      source: SourceName,
      location: string,
      documents: readonly SourceDocument[],
      mountPoint?: string,
    ): Promise<void> {
      const kept = persistSecrets ? documents : documents.filter(({ manifest }) => !holdsSecrets(manifest))
      const before = written.get(source)
      // Whatever fails from here on, what the file holds is not known.
      written.delete(source)
      if (before?.location === location && before.mountPoint === mountPoint) {
        const { at, remove, documents: changed } = selectChange(before.documents, kept)
        const line = Buffer.from(await toLine(JSON.stringify({ at, remove }), changed))
        const changedBytes = before.changedBytes + line.byteLength
        const isShort = before.sizeBytes >= largeBytes && changedBytes <= before.sizeBytes
        const sizeBytes = before.sizeBytes + before.changedBytes
        // Somebody may have removed or replaced the file.
        if (isShort && (await appendFileDurably(pathOf(source), line, { sizeBytes }))) {
          written.set(source, { ...before, documents: kept, changedBytes })
          return
        }
      }
      const head = JSON.stringify({ version, location, ...(mountPoint !== undefined && { mountPoint }) })
      const text = await toLine(head, kept)
      const copy = Buffer.from(text)
      await writeInto(directory, 0o700, () => writeFileAtomic(pathOf(source), copy))
      written.set(source, {
        location,
        mountPoint,
        documents: kept,
        sizeBytes: copy.byteLength,
        changedBytes: 0,
      })
    },
  }
}

/** A document as it stands in a file of podd's; `parseDocument` reads it. */
export function documentToText(document: SourceDocument): string {
  const { place, written, signedBy, manifest } = document
  const owner = isPodDocument(document) ? document.owner : undefined
  return JSON.stringify({ ...place, ...(owner !== undefined && { owner }), written, signedBy, manifest })
}

/** @param head a JSON object with the other fields */
async function toLine(head: string, documents: readonly SourceDocument[]): Promise<string> {
  const texts = await mapInTurns(systemClock, documents, (each) => documentToText(each))
  return `${head.slice(0, -1)},"documents":[${texts.join(',')}]}\n`
}

type CopyReading =
  | { readonly kind: 'read'; readonly content: JsonObject; readonly documents: readonly Json[] }
  | { readonly kind: 'unreadable'; readonly message: string }

function readCopy(text: string): CopyReading {
  const whole = readState(text, migrations)
  const { reading, changes } =
    whole.kind === 'unreadable' ? readLines(text, whole) : { reading: whole, changes: [] }
  if (reading.kind !== 'current') return { kind: 'unreadable', message: reading.message }
  const { documents } = reading.content
  if (!Array.isArray(documents)) return { kind: 'unreadable', message: 'it has no documents' }
  const changed = changes.reduce<readonly Json[]>((list, change) => applyChange(list, change), documents)
  return { kind: 'read', content: reading.content, documents: changed }
}

/** @param whole what the text is where it has no changes */
function readLines(
  text: string,
  whole: StateReading,
): { readonly reading: StateReading; readonly changes: readonly DocumentChange<Json>[] } {
  const [first = '', ...rest] = text.split('\n')
  const changes = parseChanges(rest)
  return changes === undefined
    ? { reading: whole, changes: [] }
    : { reading: readState(first, migrations), changes }
}

/** None where this version can't read it: then the source itself has to be read. */
export function parseDocument(item: unknown): readonly SourceDocument[] {
  if (!isJsonObject(item) || !isJsonObject(item['manifest']) || typeof item['path'] !== 'string') return []
  const manifest: JsonObject = item['manifest']
  const { path, line, column, owner, written, signedBy } = item
  const origin = {
    ...(typeof written === 'string' && { written }),
    ...(typeof signedBy === 'string' && { signedBy }),
  }
  try {
    const place = {
      path,
      ...(typeof line === 'number' && { line }),
      ...(typeof column === 'number' && { column }),
    }
    return isObjectKind(manifest['kind'])
      ? [{ object: objectFromManifest(manifest), manifest, place, ...origin }]
      : [{ pod: podFromManifest(manifest), manifest, place, ...origin, ...ownerOf(owner) }]
  } catch {
    // Validation may be stricter than that of the podd that wrote it.
    return []
  }
}

function ownerOf(owner: Json | undefined): Pick<PodDocument, 'owner'> {
  if (!isJsonObject(owner)) return {}
  const { kind, name } = owner
  return typeof kind === 'string' && typeof name === 'string' ? { owner: { kind, name } } : {}
}

/** From one list of documents to the next: from `at` on, `remove` of them go and `documents` come. */
interface DocumentChange<Document> {
  readonly at: number
  readonly remove: number
  readonly documents: readonly Document[]
}

/** What changed between two lists, from the first document that differs to the last one. Compares by identity. */
export function selectChange<Document>(
  before: readonly Document[],
  after: readonly Document[],
): DocumentChange<Document> {
  let at = 0
  const shorter = Math.min(before.length, after.length)
  while (at < shorter && before[at] === after[at]) at += 1
  let same = 0
  while (same < shorter - at && before[before.length - 1 - same] === after[after.length - 1 - same]) same += 1
  return { at, remove: before.length - at - same, documents: after.slice(at, after.length - same) }
}

export function applyChange<Document>(
  list: readonly Document[],
  { at, remove, documents }: DocumentChange<Document>,
): readonly Document[] {
  return [...list.slice(0, at), ...documents, ...list.slice(at + remove)]
}

/**
 * The changes in lines of a text. The last line is what stands behind the last line break: it was cut off while it was
 * written, and doesn't count. Undefined where another one is no change.
 */
export function parseChanges(lines: readonly string[]): readonly DocumentChange<Json>[] | undefined {
  const changes = lines.slice(0, -1).map((line) => parseChange(line))
  const good = changes.filter((change) => change !== undefined)
  return good.length === changes.length ? good : undefined
}

function parseChange(line: string): DocumentChange<Json> | undefined {
  try {
    const value: Json = JSON.parse(line)
    if (!isJsonObject(value)) return undefined
    const { at, remove, documents } = value
    return typeof at === 'number' && typeof remove === 'number' && Array.isArray(documents)
      ? { at, remove, documents }
      : undefined
  } catch {
    // No JSON: that is what is asked.
    return undefined
  }
}
