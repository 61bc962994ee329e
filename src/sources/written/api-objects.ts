import { join } from 'node:path'
import { removeFileDurably, writeFileAtomic } from '../../base/atomic-file.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { makeDirectory } from '../../base/make-directory.ts'
import { Semaphore } from '../../base/semaphore.ts'
import { isKeptKind } from '../../pod/kinds/kept-kinds.ts'
import { isObjectDocument, isPodDocument } from '../../pod/objects/document.ts'
import type { SourceSnapshot } from '../../pod/objects/document.ts'
import { decodeKept, nameOfManifest } from './kept-document.ts'
import type { KeptManifest, ObjectName } from './kept-document.ts'
import type { Incumbent } from './duplicate-files.ts'
import { fileNameOf, isObjectFile } from './object-file.ts'
import { ObjectFiles } from './object-files.ts'
import { watchDirectory } from '../watch-directory.ts'
import type { DirectoryHint, WatchDirectory } from '../watch-directory.ts'

export interface ApiObjectsOptions {
  /** Made with the first object. */
  readonly directory: string
  /** Whether Secrets are on disk; otherwise they go with the process. */
  readonly persistSecrets: boolean
  readonly logger: Logger
  readonly watch?: WatchDirectory
  /** The pod with this UID that an earlier podd had; left out, nothing is known of earlier podds. */
  readonly findRecorded?: (uid: string) => Promise<Incumbent | undefined>
}

/**
 * Takes a snapshot; resolves when it is in force. Never rejects.
 * @param isSame nothing in it changed: what did is of no concern to pods
 */
export type TakeSnapshot = (snapshot: SourceSnapshot, isSame: boolean) => Promise<void>

/**
 * The objects that were written over the API: a file each, in JSON, which may be edited and removed by hand, and a source
 * of pods like the others. One write at a time.
 */
export class ApiObjects {
  readonly #options: ApiObjectsOptions
  readonly #files: ObjectFiles
  readonly #writes = new Semaphore(1)
  readonly #loaded = Promise.withResolvers<void>()
  #take: TakeSnapshot = async () => {}

  constructor(options: ApiObjectsOptions) {
    this.#options = options
    const { directory, logger, findRecorded = async () => undefined } = options
    const isOnDisk = (object: KeptManifest): boolean => this.#isOnDisk(object)
    this.#files = new ObjectFiles({ directory, isOnDisk, findRecorded, logger })
  }

  /** Resolves when what is there has been read. */
  get whenLoaded(): Promise<void> {
    return this.#loaded.promise
  }

  /** Reads what is there, then follows edits by hand. Resolves when the signal is aborted. */
  async run(take: TakeSnapshot, signal: AbortSignal): Promise<void> {
    this.#take = take
    const { directory, logger, watch = watchDirectory } = this.#options
    // What is watched is there then; on a disk that can't be written, the next write tells.
    await makeDirectory(directory, 0o700).catch(() => undefined)
    await this.#writes.run(() => this.#files.load())
    this.#loaded.resolve()
    void this.#publish()
    const onFailure = (error: unknown): void =>
      logger.warn({ path: directory, err: error }, 'cannot watch the directory of API objects')
    const onHint = (hint: DirectoryHint): void => {
      if (hint.kind !== 'directory') this.#reread(hint.name)
    }
    const watching = watch(directory, { onHint, onFailure }, { looksAt: isObjectFile })
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    await watching.close()
  }

  /** Runs work that reads and writes, with no other such work in between, once all objects are known. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    await this.#loaded.promise
    return this.#writes.run(work)
  }

  get(object: ObjectName): KeptManifest | undefined {
    return this.#files.objects.get(object)
  }

  /** All, or those of one kind. */
  list(kind?: string): readonly KeptManifest[] {
    const all = this.#files.objects.all()
    return kind === undefined ? all : all.filter((object) => object.kind === kind)
  }

  findPod(uid: string): KeptManifest | undefined {
    return this.#files.objects.findByUid('Pod', uid)
  }

  /**
   * Keeps an object; resolves when it is on disk and in force. Within `exclusively`.
   * @throws PoddError OBJECT_NOT_KEPT
   */
  async put(manifest: JsonObject): Promise<KeptManifest> {
    const kept = this.#toKept(manifest)
    const text = this.#isOnDisk(kept) ? `${JSON.stringify(manifest, undefined, 2)}\n` : undefined
    if (text !== undefined)
      await this.#touchDisk(async () => {
        await makeDirectory(this.#options.directory, 0o700)
        await writeFileAtomic(kept.path, text)
      })
    this.#files.noteWritten(kept, text)
    await this.#publish(isKeptKind(kept.kind))
    return kept
  }

  /**
   * Forgets an object; resolves when it is off the disk and out of force. Within `exclusively`.
   * @throws PoddError OBJECT_NOT_KEPT
   */
  async remove(object: ObjectName): Promise<void> {
    const kept = this.get(object)
    if (kept === undefined) return
    await this.#touchDisk(() => removeFileDurably(kept.path))
    this.#files.forget(kept)
    await this.#publish(isKeptKind(kept.kind))
  }

  /** Its document is what the objects are in the sync loop: `problems` says why it is none. */
  #toKept(manifest: JsonObject): KeptManifest {
    const named = nameOfManifest(manifest)
    if (named === undefined) throw new PoddError('OBJECT_NOT_KEPT', 'an object without a name cannot be kept')
    const path = this.get(named)?.path ?? join(this.#options.directory, fileNameOf(named))
    const { document } = decodeKept(manifest, path)
    return { ...named, manifest, path, document }
  }

  #isOnDisk({ kind }: KeptManifest): boolean {
    return this.#options.persistSecrets || kind !== 'Secret'
  }

  async #touchDisk(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      throw new PoddError('OBJECT_NOT_KEPT', `the object cannot be kept: ${errorMessage(error)}`, {
        cause: error,
        hint: `podd keeps what is written over the API in ${this.#options.directory}.`,
      })
    }
  }

  /** Somebody may have edited or removed the file. */
  #reread(name: string): void {
    if (!isObjectFile(name)) return
    const isBlind = !this.#files.isReadable
    void this.#writes
      .run(async () => {
        if (isBlind) await this.#files.load()
        if ((await this.#files.read(name)) || isBlind) await this.#publish()
      })
      .catch((error: unknown) =>
        this.#options.logger.error({ path: name, err: error }, 'cannot read an API object'),
      )
  }

  async #publish(isSame = false): Promise<void> {
    const documents = this.list()
      .filter(({ kind, manifest }) => kind !== 'Pod' || !isBeingDeleted(manifest))
      .flatMap(({ document }) => document ?? [])
    const snapshot: SourceSnapshot = {
      source: 'api',
      location: this.#options.directory,
      ready: this.#files.isReadable,
      pods: documents.filter((document) => isPodDocument(document)),
      objects: documents.filter((document) => isObjectDocument(document)),
      problems: this.#files.problems(),
      unreadable: this.#files.unreadable(),
    }
    await this.#take(snapshot, isSame)
  }
}

/** Whether it was deleted and isn't gone yet. */
export function isBeingDeleted({ metadata }: JsonObject): boolean {
  return isJsonObject(metadata) && typeof metadata['deletionTimestamp'] === 'string'
}
