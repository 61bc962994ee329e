import { putAside } from '../../base/atomic-file.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Json } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { readState } from '../../base/state-file.ts'
import type { Migration } from '../../base/state-file.ts'
import type { ImportedArchive } from '../../decide/node/plan-image-archives.ts'
import type { SmallFile, StateReport } from '../../store/state-report.ts'

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
      const text = await this.#file.read()
      if (text === undefined) return
      const reading = readState(text, migrations)
      if (reading.kind !== 'current') {
        this.#report({ path: await putAside(path), message: reading.message })
        return
      }
      const { archives, device } = reading.content
      if (typeof device === 'string') this.#device = device
      for (const [name, value] of Object.entries(isJsonObject(archives) ? archives : {})) {
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
