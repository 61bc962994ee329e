import { readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  isAtomicFileTemp,
  putAside,
  readIfExists,
  removeFileDurably,
  unreadableSuffix,
  writeFileAtomic,
  tryRemove,
  isThere,
  makeDirectory,
  writeInto,
} from '../base/atomic-file.ts'
import { errorMessage, isSystemError } from '../base/errors.ts'
import { isJsonObject } from '../base/json.ts'
import type { JsonObject } from '../base/json.ts'
import { readState } from '../base/state-file.ts'
import type { Migration } from '../base/state-file.ts'
import { trace } from '../base/trace.ts'
import { Semaphore } from '../base/waits.ts'
import type { PodUid } from '../pod/values/ids.ts'
import { podRecordVersion } from '../pod/state/pod-record.ts'
import type { EndedContainer, PodRecord } from '../pod/state/pod-record.ts'
import { kindOfSource, parseSourceName } from '../pod/values/ids.ts'
import { loadState, smallFile } from './state-report.ts'
import type { SmallFile, StateReport } from './state-report.ts'

/** A record that this podd can't read: corrupt, or of a newer podd's version. It is kept, under `path`. */
export interface UnreadableRecord {
  readonly uid: PodUid
  readonly path: string
  /** Why, after the path. */
  readonly message: string
}

/** What says of a pod that it ran when `podd down` ended it, as its record is gone then. */
export type EndedByDown = Pick<PodRecord, 'namespace' | 'name' | 'source' | 'path' | 'manifest'>

/** One step for each version of the list of those before the current one, oldest first. */
const endedMigrations: readonly Migration[] = []

/** One step for each version of the record before the current one (`podRecordVersion`), oldest first. */
export const podRecordMigrations: readonly Migration[] = []

/** The room for a record, and for the runtime's records of a sandbox and a few containers. */
const roomBytes = 256 * 1024

/** How many records are written at a time: what the disk has done for thousands at once would hold the event loop. */
const writesAtOnce = 32

/**
 * The pods' records: one file each under `<root-dir>/records`, named after the UID. The pod's worker
 * is the only writer of its file.
 */
export class PodRecordStore {
  readonly #directory: string
  /** Those that ran when `podd down` ended them; see EndedByDown. */
  readonly #ended: SmallFile
  readonly #report: StateReport | undefined
  readonly #writes = new Semaphore(writesAtOnce)

  /** @param report called for each record that can't be read */
  constructor(rootDir: string, report?: StateReport) {
    this.#directory = join(rootDir, 'records')
    this.#ended = smallFile(join(rootDir, 'ended-by-down.json'))
    this.#report = report
  }

  /**
   * Reads all records, of older versions too. One that can't be read, or that a newer podd wrote in a version that this
   * one doesn't know, is put aside as `<uid>.json.unreadable` and reported, now and at each later load, until a
   * podd that can read it takes it back, or the pod has another record.
   */
  async load(): Promise<{
    readonly records: readonly PodRecord[]
    readonly unreadable: readonly UnreadableRecord[]
  }> {
    await makeDirectory(this.#directory, 0o700)
    const found = new Set(await readdir(this.#directory))
    // A podd that was killed during a write left them; on a disk that can't be written they stay.
    for (const name of found) if (isAtomicFileTemp(name)) await tryRemove(join(this.#directory, name))
    const uids = [...found].flatMap((name) => recordName.exec(name)?.[1] ?? [])
    const records: PodRecord[] = []
    const unreadable: UnreadableRecord[] = []
    for (const uid of [...new Set(uids)].sort()) {
      const read = found.has(`${uid}.json`) ? await this.#load(uid) : await this.#loadAside(uid)
      if ('record' in read) records.push(read.record)
      else {
        unreadable.push(read)
        this.#report?.(read)
      }
    }
    return { records, unreadable }
  }

  /** The record of one pod, where it can be read. Changes nothing. */
  async find(uid: PodUid): Promise<PodRecord | undefined> {
    const read = await readRecord(uid, this.#path(uid))
    return 'record' in read ? read.record : undefined
  }

  async #load(uid: PodUid): Promise<RecordReading> {
    const { systemFailed, ...read } = await readRecord(uid, this.#path(uid))
    // A record that the system failed to read may be good; the next podd may be able to read it.
    return 'record' in read || systemFailed === true
      ? read
      : { ...read, path: await putAside(this.#path(uid)) }
  }

  /** One that an earlier podd put aside. This one may be able to read it: an upgrade after a rollback. */
  async #loadAside(uid: PodUid): Promise<RecordReading> {
    const aside = `${this.#path(uid)}${unreadableSuffix}`
    const read = await readRecord(uid, aside)
    // Where the disk can't be written it is read from there the next time too.
    if ('record' in read) await rename(aside, this.#path(uid)).catch(() => undefined)
    return read
  }

  /**
   * Saves a record durably: it survives a power cut once the promise resolves. Throws the system's error (ENOSPC,
   * EROFS, …).
   */
  async save(record: PodRecord): Promise<void> {
    trace?.('writing record', record.uid)
    await this.#writes.run(() =>
      writeInto(this.#directory, 0o700, () => writeFileAtomic(this.#path(record.uid), formatRecord(record))),
    )
    trace?.('wrote record', record.uid)
  }

  /** Whether the pod's file is there, as far as can be known. */
  isThere(uid: PodUid): Promise<boolean> {
    return isThere(this.#path(uid))
  }

  /**
   * The pods that ran when `podd down` ended them, and that haven't started since. Never throws: a list that can't be read is
   * put aside and reported, and the order of the manifests decides, as for new pods.
   */
  async loadEndedByDown(): Promise<readonly EndedByDown[]> {
    try {
      return (await loadState(this.#ended, endedMigrations, readEnded, this.#report)) ?? []
    } catch (error) {
      this.#report?.({ path: this.#ended.path, message: errorMessage(error) })
      return []
    }
  }

  /** Throws the system's error (ENOSPC, EROFS, …). */
  async saveEndedByDown(pods: readonly EndedByDown[]): Promise<void> {
    if (pods.length === 0) return removeFileDurably(this.#ended.path)
    const content = { version: endedMigrations.length + 1, pods }
    await this.#ended.write(`${JSON.stringify(content)}\n`)
  }

  /** Whether there is room for another pod's record and its like. Throws the system's error (ENOSPC, EROFS, …) where there isn't. */
  async checkRoom(): Promise<void> {
    const path = join(this.#directory, '.room.tmp')
    try {
      await writeInto(this.#directory, 0o700, () => writeFile(path, Buffer.alloc(roomBytes), { mode: 0o600 }))
    } finally {
      await rm(path, { force: true })
    }
  }

  /** Also removes a record of the pod that was put aside. Throws the system's error. */
  async remove(uid: PodUid): Promise<void> {
    await removeFileDurably(this.#path(uid))
    await removeFileDurably(`${this.#path(uid)}${unreadableSuffix}`)
  }

  #path(uid: PodUid): string {
    return join(this.#directory, `${uid}.json`)
  }
}

type RecordReading = ({ readonly record: PodRecord } | UnreadableRecord) & { readonly systemFailed?: boolean }

const recordName = /^([^.].*)\.json(?:\.unreadable)?$/u

async function readRecord(uid: PodUid, path: string): Promise<RecordReading> {
  try {
    const reading = readState((await readIfExists(path)) ?? '', podRecordMigrations)
    if (reading.kind !== 'current') return { uid, path, message: reading.message }
    const { content } = reading
    return isPodRecord(content)
      ? { record: withSource(content) }
      : { uid, path, message: 'it lacks what a pod record must have' }
  } catch (error) {
    return { uid, path, message: errorMessage(error), systemFailed: isSystemError(error) }
  }
}

/**
 * A podd without named sources reads the kind of a pod's source, on which its policies depend; it keeps the field that
 * it doesn't know.
 */
function formatRecord(record: PodRecord): string {
  const source = kindOfSource(record.source)
  const containers = renameInEnds(record.containers, 'provisional', 'foretold')
  const named = containers === record.containers ? record : { ...record, containers }
  return JSON.stringify(source === record.source ? named : { ...named, source, sourceName: record.source })
}

/** Files have `foretold`, as the field was called first, for what is provisional about the end of a container. */
function renameInEnds(
  containers: PodRecord['containers'],
  from: 'foretold' | 'provisional',
  to: 'foretold' | 'provisional',
): PodRecord['containers'] {
  const renamed = Object.entries(containers).flatMap(([name, history]) => {
    const { [from]: value, ...ended }: NamedEnd = history.ended ?? {}
    return value === true ? [[name, { ...history, ended: { ...ended, [to]: true } }] as const] : []
  })
  return renamed.length === 0 ? containers : Object.assign({}, containers, Object.fromEntries(renamed))
}

type NamedEnd = Partial<EndedContainer> & { readonly foretold?: boolean | undefined }

function withSource(content: PodRecord & { readonly sourceName?: unknown }): PodRecord {
  const { sourceName, ...kept } = content
  const record = { ...kept, containers: renameInEnds(kept.containers, 'foretold', 'provisional') }
  const source = typeof sourceName === 'string' ? parseSourceName(sourceName) : undefined
  // Another podd version may have moved the pod to a source of another kind meanwhile.
  return source === undefined || kindOfSource(source) !== record.source ? record : { ...record, source }
}

function readEnded({ pods }: JsonObject): readonly EndedByDown[] | undefined {
  const list: unknown = pods
  return Array.isArray(list) && list.every((pod) => isEndedByDown(pod)) ? list : undefined
}

function isEndedByDown(value: unknown): value is EndedByDown {
  if (!isJsonObject(value) || !isJsonObject(value['manifest'])) return false
  const { source } = value
  return (
    ['namespace', 'name', 'path'].every((key) => typeof value[key] === 'string') &&
    typeof source === 'string' &&
    parseSourceName(source) !== undefined
  )
}

/** Checks the form as far as needed: podd is the only writer of these files. */
function isPodRecord(value: unknown): value is PodRecord {
  if (!isJsonObject(value)) return false
  const strings = ['uid', 'namespace', 'name', 'source', 'path'].every(
    (key) => typeof value[key] === 'string',
  )
  const objects = ['manifest', 'conditions', 'containers'].every((key) => isJsonObject(value[key]))
  return (
    value['version'] === podRecordVersion && strings && objects && typeof value['acceptedAtMs'] === 'number'
  )
}
