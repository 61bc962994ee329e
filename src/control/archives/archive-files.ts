import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { archiveRetryMs } from '../../decide/node/plan-image-archives.ts'
import type { ArchiveContent, ArchiveFile } from '../../decide/node/plan-image-archives.ts'
import { isImageList } from '../../images/archive-directory.ts'
import type { ArchiveDirectory, ArchiveLook } from '../../images/archive-directory.ts'

export type ArchiveHint =
  | { readonly kind: 'written' | 'renamed'; readonly name: string }
  | { readonly kind: 'directory' }

/** A file as last observed, and its state. */
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

  /** Records the content of a file. */
  setContent(seen: SeenFile, content: ArchiveContent): void {
    this.#update(seen, (now) => ({ ...now, content }))
  }

  /** Records that reading or importing a file failed; it is retried later. */
  fail(seen: SeenFile, message: string): void {
    const count = (seen.failure?.count ?? 0) + 1
    const retryAtMs = this.#clock.monotonicMs() + archiveRetryMs(count)
    this.#update(seen, (now) => ({ ...now, failure: { message, count, retryAtMs } }))
  }

  /** Records that a file was imported. */
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
