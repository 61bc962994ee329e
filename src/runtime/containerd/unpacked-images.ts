import { removeFileDurably } from '../../base/atomic-file.ts'
import type { Json } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { Migration } from '../../base/state-file.ts'
import { Semaphore } from '../../base/waits.ts'
import { loadState } from '../../store/state-report.ts'
import type { SmallFile } from '../../store/state-report.ts'

/** An image as CRI lists it. */
export interface HeldImage {
  readonly id: string
  readonly names: readonly string[]
}

export interface HeldImages {
  list(): Promise<readonly HeldImage[]>
  /** Removes all its names. */
  remove(id: string): Promise<void>
}

/** What containerd does about images that a power cut may have damaged. */
export interface UnpackTools {
  /** Writes all that was unpacked so far to the disk. */
  writeOut(): Promise<void>
  /** Cleans up after pulls and imports that were in flight, and deletes the layers of no image. */
  dropUnfinished(): Promise<void>
}

/** The part of it that a pull uses. */
export interface ImageUnpacking extends Pick<UnpackedImages, 'begin' | 'end' | 'isUnwritten'> {
  /** Writes all that was unpacked so far to the disk. Throws HostCommandError. */
  writeOut(): Promise<void>
}

export interface UnpackedImagesOptions {
  readonly file: SmallFile
  readonly bootId: string
  readonly images: HeldImages
  /** Called for an image that is removed because a power cut may have damaged its layers. */
  readonly onDiscarded: (image: HeldImage) => void
  readonly logger: Logger
}

/**
 * Which images of a containerd without `sync_fs` (1.x) are on the disk. It records at once that a layer is unpacked, and
 * leaves its files to the page cache: after a power cut they may be empty, and a new pull of the image would take them
 * as they are. So a record is on the disk from before a pull or an import until its layers are, with the images that
 * were whole before it; after a power cut in between, `recover` removes all others.
 */
export class UnpackedImages {
  readonly #options: UnpackedImagesOptions
  /** Pulls and imports in flight whose layers may not be on the disk. */
  #open = 0
  readonly #written = new Set<string>()
  /** Of reads and writes of the record. */
  readonly #turns = new Semaphore(1)

  constructor(options: UnpackedImagesOptions) {
    this.#options = options
  }

  /** Call before a pull or an import. Never throws: a disk that can't be written takes no layers either. */
  async begin(): Promise<void> {
    await this.#inTurn(async () => {
      this.#open += 1
      if (this.#open > 1) return
      this.#written.clear()
      for (const { id } of await this.#options.images.list()) this.#written.add(id)
      await this.#write()
    })
  }

  /** Call after it, once its images (by id) are on the disk. Never throws. */
  async end(ids: readonly string[]): Promise<void> {
    await this.#inTurn(async () => {
      this.#open -= 1
      for (const id of ids) this.#written.add(id)
      if (this.#open > 0) await this.#write()
      else await removeFileDurably(this.#options.file.path)
    })
  }

  /** As `end`, by names. */
  async endNamed(names: readonly string[]): Promise<void> {
    // Images that aren't recorded as written are pulled again after a power cut, which is safe.
    const found = await this.#options.images.list().catch(() => [])
    const isOne = (name: string): boolean => names.includes(name)
    await this.end(found.filter((image) => image.names.some(isOne)).map(({ id }) => id))
  }

  /** Whether a container of this image would run on layers that a power cut may damage. */
  isUnwritten(id: string): boolean {
    return this.#open > 0 && !this.#written.has(id)
  }

  /**
   * Call when containerd runs, before its first use. A record of this boot: the layers of an earlier podd are written
   * to the disk. A record of an earlier boot: images that were not on the disk are removed, to be pulled or imported
   * again, together with the remains of pulls in flight. Never throws; the record stays where that failed.
   */
  async recover(tools: UnpackTools): Promise<void> {
    const { bootId, file, images, onDiscarded } = this.#options
    await this.#inTurn(async () => {
      if (this.#open > 0) return
      const record = await readUnpackRecord(file)
      if (record === undefined) return
      if (record.bootId === bootId) await tools.writeOut()
      else {
        const written = new Set(record.written)
        for (const image of await images.list()) {
          if (written.has(image.id)) continue
          await images.remove(image.id)
          onDiscarded(image)
        }
        await tools.dropUnfinished()
      }
      await removeFileDurably(file.path)
    })
  }

  async #write(): Promise<void> {
    const { bootId, file } = this.#options
    await writeUnpackRecord(file, { bootId, written: [...this.#written] })
  }

  async #inTurn(work: () => Promise<void>): Promise<void> {
    await this.#turns.run(work).catch((error: unknown) => {
      const { file, logger } = this.#options
      logger.warn(
        { err: error, path: file.path },
        'a power cut may damage images that are pulled or imported',
      )
    })
  }
}

/** One step for each version before the current one, oldest first. */
const migrations: readonly Migration[] = []

/** The record exists while layers may be only in the page cache. */
export interface UnpackRecord {
  /** The boot in which they were unpacked. */
  readonly bootId: string
  /** The ids of the images whose layers are on the disk. */
  readonly written: readonly string[]
}

/** Undefined where none was being unpacked, or the record is damaged. Throws the system's read error. */
export async function readUnpackRecord(file: SmallFile): Promise<UnpackRecord | undefined> {
  return loadState(file, migrations, toRecord)
}

/** Throws the system's error (ENOSPC, EROFS, …). */
export async function writeUnpackRecord(file: SmallFile, record: UnpackRecord): Promise<void> {
  await file.write(`${JSON.stringify({ version: migrations.length + 1, ...record })}\n`)
}

function toRecord({ bootId, written }: { readonly [key: string]: Json }): UnpackRecord | undefined {
  if (typeof bootId !== 'string' || !Array.isArray(written)) return undefined
  const ids = written.flatMap((id: Json) => (typeof id === 'string' ? [id] : []))
  return ids.length === written.length ? { bootId, written: ids } : undefined
}
