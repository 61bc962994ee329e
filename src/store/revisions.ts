import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  isAtomicFileTemp,
  readIfExists,
  removeFileDurably,
  tryRemove,
  unreadableSuffix,
  writeFileAtomic,
  writeInto,
} from '../base/atomic-file.ts'
import { errorCode, errorMessage } from '../base/errors.ts'
import { isJsonObject, jsonAt, listOrEmpty } from '../base/json.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { Migration } from '../base/state-file.ts'
import { mapBounded } from '../base/waits.ts'
import { hashContent, hashTemplate, isTemplateUnit } from '../decide/updates/unit-content.ts'
import type { UnitName } from '../decide/updates/unit-content.ts'
import { pruneRevisions } from '../decide/updates/unit-revisions.ts'
import type {
  ContainerEvidence,
  Revision,
  RevisionFailure,
  UnitRecord,
} from '../decide/updates/unit-revisions.ts'
import type { SourceDocument } from '../pod/objects/document.ts'
import { holdsSecrets } from '../pod/objects/local-object.ts'
import { parseSourceName } from '../pod/values/ids.ts'
import { documentToText, parseDocument } from './last-good.ts'
import { loadState, smallFile } from './state-report.ts'
import type { StateReport } from './state-report.ts'

/** What a revision consists of, as it was read from the disk. */
export interface KeptContent {
  readonly documents: readonly SourceDocument[]
  /** Secrets were left out when it was written. */
  readonly lacksSecrets: boolean
}

export type RevisionStore = ReturnType<typeof createRevisionStore>

const migrations: readonly Migration[] = []
const version = migrations.length + 1

/** How much the contents of a unit's revisions may take that it doesn't need. */
const maxBytes = 1024 * 1024

/** What the file of a unit holds. */
interface Kept {
  readonly record: UnitRecord
  /** By hash, as in the file. */
  readonly contents: Readonly<Record<string, Json>>
}

/**
 * The revisions of units on disk, so that one can be gone back to, and a failed one isn't tried again, across reboots: one
 * file of mode 0600 for each unit, in `directory`, which is made when it is first needed. Each write replaces the file of a
 * unit as a whole: its record and the contents of its revisions.
 * @param options.persistSecrets whether Secrets are kept too
 * @param options.most how many revisions of a unit are kept
 */
export function createRevisionStore(
  directory: string,
  options: { readonly persistSecrets: boolean; readonly most: number; readonly report: StateReport },
) {
  const { persistSecrets, most, report } = options
  const fileOf = (name: UnitName) => smallFile(join(directory, fileName(name)))
  const read = async (path: string): Promise<Kept | undefined> =>
    loadState({ ...smallFile(path), read: () => readIfExists(path) }, migrations, parseKept, report)
  return {
    /**
     * The records of all units. One that can't be read is put aside and reported: its unit has no revision then. Never
     * throws.
     */
    async load(): Promise<readonly UnitRecord[]> {
      const names = await readdir(directory).catch((error: unknown) => {
        if (errorCode(error) !== 'ENOENT') report({ path: directory, message: errorMessage(error) })
        return []
      })
      const found = await mapBounded(names, async (name) => {
        const path = join(directory, name)
        if (isAtomicFileTemp(name)) await tryRemove(path)
        if (name.startsWith('.') || name.endsWith(unreadableSuffix)) return undefined
        return await read(path).catch((error: unknown) => report({ path, message: errorMessage(error) }))
      })
      return found.flatMap((kept) => (kept === undefined ? [] : [kept.record]))
    },
    /**
     * The contents of revisions, by these hashes of theirs, in one read; without those that are not kept, or of which this podd
     * can't read all. Throws the system's error.
     */
    async contents(name: UnitName, hashes: readonly string[]): Promise<ReadonlyMap<string, KeptContent>> {
      const kept = await read(join(directory, fileName(name)))
      const found = new Map<string, KeptContent>()
      for (const hash of new Set(hashes)) {
        const content = kept?.contents[hash]
        if (!isJsonObject(content) || !Array.isArray(content['documents'])) continue
        const given: readonly Json[] = content['documents']
        const documents = given.flatMap((item) => parseDocument(item))
        if (documents.length === given.length)
          found.set(hash, { documents, lacksSecrets: content['lacksSecrets'] === true })
      }
      return found
    },
    /**
     * Replaces the record of a unit. Of contents that aren't given, those stay that it refers to. Gives the record as it was
     * kept: without revisions that there are too many of, or whose content is lost. Throws the system's error (ENOSPC,
     * EROFS, …); the previous file then stays.
     * @param given contents by hash
     */
    async save(
      record: UnitRecord,
      given: ReadonlyMap<string, readonly SourceDocument[]>,
    ): Promise<UnitRecord> {
      const file = fileOf(record)
      const before = (await read(file.path))?.contents ?? {}
      const texts = new Map<string, string>()
      for (const { hash } of record.revisions) {
        const documents = given.get(hash)
        const content = before[hash]
        if (documents !== undefined) texts.set(hash, contentToText(documents, persistSecrets))
        else if (content !== undefined) texts.set(hash, JSON.stringify(content))
      }
      const revisions = record.revisions.filter(({ hash }) => texts.has(hash))
      const hasBase = revisions.some(({ number }) => number === record.base)
      const kept = pruneRevisions(
        { ...record, revisions, base: hasBase ? record.base : undefined },
        { most, maxBytes, bytesOf: (hash) => texts.get(hash)?.length ?? 0 },
      )
      const hashes = new Set(kept.revisions.map(({ hash }) => hash))
      const contents = [...texts].flatMap(([hash, text]) =>
        hashes.has(hash) ? [`${JSON.stringify(hash)}:${text}`] : [],
      )
      const head = JSON.stringify({ version, ...kept, ...(isTemplateUnit(kept) && { byTemplate: true }) })
      const text = `${head.slice(0, -1)},"contents":{${contents.join(',')}}}\n`
      await writeInto(directory, 0o700, () => writeFileAtomic(file.path, text))
      return kept
    },
    /** The unit of this record was called otherwise: it has the contents that it had by that name. Throws the system's error. */
    async move(from: UnitName, record: UnitRecord): Promise<void> {
      const contents = (await read(join(directory, fileName(from))))?.contents ?? {}
      const text = `${JSON.stringify({ version, ...record, contents })}\n`
      await writeInto(directory, 0o700, () => writeFileAtomic(fileOf(record).path, text))
      await removeFileDurably(join(directory, fileName(from)))
    },
    /** Throws the system's error. */
    remove: (name: UnitName): Promise<void> => removeFileDurably(join(directory, fileName(name))),
  }
}

/** Paths may be longer than names of files. */
function fileName({ source, unit }: UnitName): string {
  return `${createHash('sha256').update(`${source}\n${unit}`).digest('hex').slice(0, 32)}.json`
}

function contentToText(documents: readonly SourceDocument[], persistSecrets: boolean): string {
  const kept = persistSecrets ? documents : documents.filter(({ manifest }) => !holdsSecrets(manifest))
  const lacks = kept.length < documents.length ? '"lacksSecrets":true,' : ''
  return `{${lacks}"documents":[${kept.map((document) => documentToText(document)).join(',')}]}`
}

function parseKept(content: JsonObject): Kept | undefined {
  const { source, unit, latest, offered, active, base, pin, goneAtMs, revisions, contents } = content
  const name = typeof source === 'string' ? parseSourceName(source) : undefined
  if (name === undefined || typeof unit !== 'string' || !Array.isArray(revisions)) return undefined
  if (!isJsonObject(contents)) return undefined
  if (typeof latest !== 'number' || typeof offered !== 'number' || typeof active !== 'number')
    return undefined
  const read = revisions.flatMap((revision) => parseRevision(revision) ?? [])
  const has = (number: number): boolean => read.some((revision) => revision.number === number)
  if (read.length !== revisions.length || !has(offered) || !has(active)) return undefined
  const kept = {
    record: {
      source: name,
      unit,
      revisions: read,
      latest,
      offered,
      active,
      base: typeof base === 'number' && has(base) ? base : undefined,
      pin: offered === active ? undefined : parsePin(pin),
      ...(typeof goneAtMs === 'number' && { goneAtMs }),
    },
    contents,
  }
  return isTemplateUnit(kept.record) && content['byTemplate'] !== true ? byTemplates(kept) : kept
}

/**
 * Podds before, and older ones that were gone back to, know the revisions of a workload by all that was written. Where they are
 * known by their templates already, each keeps the hash that it is recorded by, whatever podd understands of its template now.
 */
function byTemplates({ record, contents }: Kept): Kept {
  const hashOf = (hash: string): string => {
    const manifest = jsonAt(listOrEmpty(jsonAt(contents[hash], 'documents'))[0], 'manifest')
    return isJsonObject(manifest) ? hashContent([hashTemplate(manifest)]) : hash
  }
  const revisions = record.revisions.map((revision) => ({ ...revision, hash: hashOf(revision.hash) }))
  const found = record.revisions.flatMap(({ hash }) => {
    const content = contents[hash]
    return content === undefined ? [] : [[hashOf(hash), content] as const]
  })
  // Of equal templates the newest has the annotations of their history.
  return { record: { ...record, revisions }, contents: Object.fromEntries(found) }
}

/** A record in which two revisions differ for a reason that this podd doesn't know is one that somebody asked for. */
function parsePin(pin: Json | undefined): UnitRecord['pin'] {
  const { why, atMs } = isJsonObject(pin) ? pin : {}
  return {
    why: why === 'failed' || why === 'crashed' ? why : 'requested',
    atMs: typeof atMs === 'number' ? atMs : 0,
  }
}

const verdicts = ['progressing', 'healthy', 'failed', 'superseded'] as const

function parseRevision(value: Json): Revision | undefined {
  if (!isJsonObject(value)) return undefined
  const { number, hash, hashWithoutSecrets, written, signedBy, pods, atMs, sourceRevision, digest } = value
  const verdict = verdicts.find((each) => each === value['verdict'])
  if (typeof number !== 'number' || typeof hash !== 'string' || verdict === undefined) return undefined
  return {
    number,
    hash,
    pods: typeof pods === 'number' ? pods : 0,
    atMs: typeof atMs === 'number' ? atMs : 0,
    verdict,
    ...(typeof hashWithoutSecrets === 'string' && { hashWithoutSecrets }),
    ...(typeof written === 'string' && { written }),
    ...(Array.isArray(signedBy) && { signedBy: signedBy.filter((id) => typeof id === 'string') }),
    ...(typeof sourceRevision === 'string' && { sourceRevision }),
    ...(typeof digest === 'string' && { digest }),
    ...parseFailure(value['failure']),
    ...parseImages(value['images']),
  }
}

function parseImages(value: Json | undefined): Pick<Revision, 'images'> {
  if (!Array.isArray(value)) return {}
  const images = value.flatMap((each) => {
    const { pod, container, image, id } = isJsonObject(each) ? each : {}
    const isWhole = typeof pod === 'string' && typeof container === 'string'
    return isWhole && typeof image === 'string' && typeof id === 'string'
      ? [{ pod, container, image, id }]
      : []
  })
  return { images }
}

function parseFailure(value: Json | undefined): { readonly failure?: RevisionFailure } {
  if (!isJsonObject(value)) return {}
  const { reason, message, atMs, containers, isHeld, workloads } = value
  return {
    failure: {
      ...(isJsonObject(workloads) && {
        workloads: Object.fromEntries(
          Object.entries(workloads).filter(
            (entry): entry is [string, string] => typeof entry[1] === 'string',
          ),
        ),
      }),
      ...(isHeld === true && { isHeld }),
      reason: typeof reason === 'string' ? reason : 'Unknown',
      message: typeof message === 'string' ? message : '',
      atMs: typeof atMs === 'number' ? atMs : 0,
      containers: Array.isArray(containers) ? containers.flatMap((each) => parseEvidence(each)) : [],
    },
  }
}

function parseEvidence(value: Json): readonly ContainerEvidence[] {
  if (!isJsonObject(value)) return []
  const { pod, container, exitCode, reason, message, lines } = value
  if (typeof pod !== 'string' || typeof container !== 'string') return []
  return [
    {
      pod,
      container,
      ...(typeof exitCode === 'number' && { exitCode }),
      ...(typeof reason === 'string' && { reason }),
      ...(typeof message === 'string' && { message }),
      lines: Array.isArray(lines) ? lines.filter((line) => typeof line === 'string') : [],
    },
  ]
}
