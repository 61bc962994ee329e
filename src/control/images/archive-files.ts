import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { isJsonObject, objectOrEmpty } from '../../base/json.ts'
import type { Json } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { Migration } from '../../base/state-file.ts'
import { archiveRetryMs, selectKept } from '../../decide/node/plan-image-archives.ts'
import type { ArchiveContent, ArchiveFile, ImportedArchive } from '../../decide/node/plan-image-archives.ts'
import { isImageList } from '../../images/archive-directory.ts'
import type { ArchiveDirectory, ArchiveLook } from '../../images/archive-directory.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import { loadState } from '../../store/state-report.ts'
import type { SmallFile, StateReport } from '../../store/state-report.ts'

export type ArchiveHint =
  | { readonly kind: 'written' | 'renamed'; readonly name: string }
  | { readonly kind: 'directory' }

export interface SeenFile {
  readonly look: ArchiveLook
  /** Monotonic. */
  readonly changedAtMs: number
  readonly isRenamed: boolean
  readonly content?: ArchiveContent
  readonly failure?: { readonly message: string; readonly count: number; readonly retryAtMs: number }
}

/** The files in the directory of image archives: their metadata, and the results of reading and importing them. */
export class ArchiveFiles {
  readonly #clock: Clock
  readonly #list: () => Promise<ArchiveDirectory>
  readonly #files = new Map<string, SeenFile>()
  readonly #hints = new Map<string, 'written' | 'renamed'>()
  #isFirstLook = true
  #device: string | undefined
  #unreadable: string | undefined

  constructor(clock: Clock, list: () => Promise<ArchiveDirectory>) {
    this.#clock = clock
    this.#list = list
  }

  /** Why the directory could not be read. */
  get unreadable(): string | undefined {
    return this.#unreadable
  }

  /** The file system of the directory when it was last read; undefined where there was none. */
  get device(): string | undefined {
    return this.#device
  }

  get isEmpty(): boolean {
    return this.#files.size === 0
  }

  get(name: string): SeenFile | undefined {
    return this.#files.get(name)
  }

  note(hint: ArchiveHint): void {
    if (hint.kind === 'directory') return
    const before = this.#hints.get(hint.name)
    this.#hints.set(hint.name, before === 'written' ? before : hint.kind)
  }

  /**
   * Reads the directory. Never throws: see `unreadable`.
   * @param device the file system from which files were imported: where that is gone, and nothing is in its place, the
   *   directory counts as unreadable and not as empty
   */
  async look(device: string | undefined): Promise<void> {
    const hints = new Map(this.#hints)
    this.#hints.clear()
    try {
      const { device: found, looks } = await this.#list()
      if (looks.length === 0 && device !== undefined && found !== device) {
        this.#unreadable =
          found === undefined
            ? 'it is not there, and image archives were imported from it'
            : 'it is empty, and not on the file system from which image archives were imported: is that mounted?'
        return
      }
      this.#device = found
      this.#unreadable = undefined
      const names = new Set(looks.map(({ name }) => name))
      for (const name of this.#files.keys()) if (!names.has(name)) this.#files.delete(name)
      for (const look of looks) this.#take(look, hints.get(look.name))
      this.#isFirstLook = false
    } catch (error) {
      this.#unreadable = `cannot be read: ${errorMessage(error)}`
    }
  }

  #take(look: ArchiveLook, hint: 'written' | 'renamed' | undefined): void {
    const seen = this.#files.get(look.name)
    if (seen?.look.fingerprint === look.fingerprint && hint !== 'written') return
    // An existing file has been quiet since its modification time.
    const isOld = seen === undefined && hint === undefined
    const ageMs = isOld ? Math.max(0, this.#clock.wallMs() - look.modifiedAtMs) : 0
    const isWritten = hint === 'written' || look.sizeBytes === 0 || (seen !== undefined && hint === undefined)
    // Pods wait for files that existed at the start: they are read at once, which shows whether they are complete.
    const isRenamed = !isWritten && (hint === 'renamed' || this.#isFirstLook)
    this.#files.set(look.name, { look, changedAtMs: this.#clock.monotonicMs() - ageMs, isRenamed })
  }

  /** In the order of their names. @param unsupported why archives, unlike lists, are refused */
  all(unsupported: string | undefined): readonly ArchiveFile[] {
    const nowMs = this.#clock.monotonicMs()
    return [...this.#files.values()]
      .toSorted((one, other) => (one.look.name < other.look.name ? -1 : 1))
      .map(({ look, changedAtMs, isRenamed, content, failure }) => {
        const isList = isImageList(look.name)
        const retry =
          failure === undefined ? undefined : { message: failure.message, retryMs: failure.retryAtMs - nowMs }
        return {
          name: look.name,
          sizeBytes: look.sizeBytes,
          modifiedAtMs: look.modifiedAtMs,
          fingerprint: look.fingerprint,
          refusal: look.refusal ?? (isList ? undefined : unsupported),
          isList,
          isRenamed,
          quietMs: nowMs - changedAtMs,
          content,
          failure: retry,
        }
      })
  }

  setContent(seen: SeenFile, content: ArchiveContent): void {
    this.#update(seen, (now) => ({ ...now, content }))
  }

  /** Records that reading or importing a file failed; it is retried later. */
  fail(seen: SeenFile, message: string): void {
    const count = (seen.failure?.count ?? 0) + 1
    const retryAtMs = this.#clock.monotonicMs() + archiveRetryMs(count)
    this.#update(seen, (now) => ({ ...now, failure: { message, count, retryAtMs } }))
  }

  succeed(seen: SeenFile): void {
    this.#update(seen, ({ look, changedAtMs, isRenamed, content }) => ({
      look,
      changedAtMs,
      isRenamed,
      ...(content !== undefined && { content }),
    }))
  }

  /** Results for a file that has changed meanwhile are dropped. */
  #update(seen: SeenFile, change: (now: SeenFile) => SeenFile): void {
    const now = this.#files.get(seen.look.name)
    if (now?.look.fingerprint === seen.look.fingerprint) this.#files.set(seen.look.name, change(now))
  }
}

/** One step for each version before the current one, oldest first. */
const migrations: readonly Migration[] = []

/**
 * Which files of the directory were imported (`<root-dir>/image-archives.json`). Where the record is lost or unreadable
 * each file is imported again, which changes nothing where its images are present.
 */
export class ArchiveRecords {
  readonly #file: SmallFile
  readonly #report: StateReport
  readonly #logger: Logger
  readonly #records = new Map<string, ImportedArchive>()
  #device: string | undefined
  /** The last write failed. */
  #isBehind = false

  constructor(file: SmallFile, report: StateReport, logger: Logger) {
    this.#file = file
    this.#report = report
    this.#logger = logger
  }

  get all(): ReadonlyMap<string, ImportedArchive> {
    return this.#records
  }

  /** The file system of the directory from which files were imported; undefined where none were, or it is not known. */
  get device(): string | undefined {
    return this.#records.size === 0 ? undefined : this.#device
  }

  /** Never throws. */
  async load(): Promise<void> {
    const { path } = this.#file
    try {
      const content = await loadState(this.#file, migrations, (found) => found, this.#report)
      const { archives, device } = content ?? {}
      if (typeof device === 'string') this.#device = device
      for (const [name, value] of Object.entries(objectOrEmpty(archives))) {
        const record = toRecord(value)
        if (record !== undefined) this.#records.set(name, record)
      }
    } catch (error) {
      this.#logger.warn({ err: error, path }, 'cannot read which image archives were imported')
    }
  }

  /** Never throws: what is not on record is imported again. */
  async set(name: string, record: ImportedArchive): Promise<void> {
    this.#records.set(name, record)
    await this.#write()
  }

  /** Whether these images stay pinned when their files are gone. Never throws. */
  async setKept(images: readonly string[], isKept: boolean): Promise<void> {
    let isChanged = false
    for (const [name, record] of this.#records) {
      const kept = record.images.filter((image) =>
        images.includes(image) ? isKept : record.kept?.includes(image) === true,
      )
      if (kept.length === (record.kept?.length ?? 0)) continue
      this.#records.set(name, { ...record, kept })
      isChanged = true
    }
    if (isChanged) await this.#write()
  }

  /** Call it with each look: retries a failed write. Never throws. */
  async setDevice(device: string | undefined): Promise<void> {
    const isOther = device !== undefined && device !== this.#device
    if (isOther) this.#device = device
    if (this.#isBehind || (isOther && this.#records.size > 0)) await this.#write()
  }

  /** Never throws. */
  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) this.#records.delete(name)
    await this.#write()
  }

  async #write(): Promise<void> {
    const archives = Object.fromEntries(this.#records)
    try {
      await this.#file.write(
        JSON.stringify({ version: migrations.length + 1, device: this.device, archives }),
      )
      this.#isBehind = false
    } catch (error) {
      if (!this.#isBehind)
        this.#logger.warn(
          { err: error, path: this.#file.path },
          'cannot record which image archives were imported',
        )
      this.#isBehind = true
    }
  }
}

function toRecord(value: Json): ImportedArchive | undefined {
  if (!isJsonObject(value)) return undefined
  const { sizeBytes, modifiedAtMs, digest, images, kept } = value
  if (typeof sizeBytes !== 'number' || typeof modifiedAtMs !== 'number' || typeof digest !== 'string')
    return undefined
  if (!Array.isArray(images)) return undefined
  const names = strings(images)
  const record = { sizeBytes, modifiedAtMs, digest, images: names }
  return Array.isArray(kept) ? { ...record, kept: strings(kept) } : record
}

function strings(values: readonly Json[]): readonly string[] {
  return values.flatMap((value) => (typeof value === 'string' ? [value] : []))
}

export interface ArchivePinsHost {
  /** Why the runtime pins nothing; undefined where it does. */
  readonly unsupported: string | undefined
  readonly pin: (image: string, pinned: boolean) => Promise<void>
  /** Complete names. */
  readonly pinnedImages: () => Promise<ReadonlySet<string>>
}

/** The pins of images that archives and lists hold, apart from those that users have set. */
export class ArchivePins {
  readonly #host: ArchivePinsHost
  readonly #records: ArchiveRecords
  readonly #logger: Logger
  /** Pinned for a file, which may not be on record yet. */
  readonly #own = new Set<string>()
  readonly #users = new Set<string>()

  constructor(host: ArchivePinsHost, records: ArchiveRecords, logger: Logger) {
    this.#host = host
    this.#records = records
    this.#logger = logger
  }

  /**
   * The pinned names; read them before an import, which removes the pins of images that it replaces. Throws the host's
   * errors.
   */
  async list(): Promise<ReadonlySet<string>> {
    return this.#host.unsupported === undefined ? this.#host.pinnedImages() : new Set()
  }

  /** Throws the host's errors. @param before what was pinned before the import */
  async pin(image: string, before: ReadonlySet<string>): Promise<void> {
    if (this.#host.unsupported !== undefined) return
    await this.#host.pin(image, true)
    const name = normalizeImageName(image)
    if (!before.has(name)) this.#own.add(name)
  }

  /** The images of a file that stay pinned when it is gone. */
  kept(images: readonly string[], before: ReadonlySet<string>): readonly string[] {
    const pinned = new Set([...before].filter((image) => !this.#own.has(image)))
    const kept = new Set(selectKept(images, pinned, this.#records.all))
    return images.filter((image) => kept.has(image) || this.#users.has(image))
  }

  /** A user has pinned or unpinned these images. Never throws. */
  async noteUser(images: readonly string[], pinned: boolean): Promise<void> {
    for (const image of images) {
      this.#own.delete(image)
      if (pinned) this.#users.add(image)
      else this.#users.delete(image)
    }
    await this.#records.setKept(images, pinned)
  }

  /** Unpins images; one that is gone or can't be unpinned is skipped. Never throws. */
  async unpin(images: readonly string[], present: ReadonlySet<string> | undefined): Promise<void> {
    if (this.#host.unsupported !== undefined) return
    for (const image of images) {
      this.#own.delete(image)
      if (present?.has(image) === false) continue
      await this.#host
        .pin(image, false)
        .then(() => this.#logger.info({ image }, 'unpinned an image whose archive is gone'))
        .catch((error: unknown) => this.#logger.warn({ image, err: error }, 'cannot unpin an image'))
    }
  }
}
