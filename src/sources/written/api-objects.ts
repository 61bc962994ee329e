import { readFile, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import {
  isAtomicFileTemp,
  removeAtomicFileTemps,
  removeFileDurably,
  writeFileAtomic,
} from '../../base/atomic-file.ts'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import { makeDirectory } from '../../base/make-directory.ts'
import { Semaphore } from '../../base/semaphore.ts'
import { isKeptKind } from '../../pod/kinds/kept-kinds.ts'
import { isObjectDocument, isPodDocument } from '../../pod/objects/document.ts'
import type { Problem, SourceSnapshot } from '../../pod/objects/document.ts'
import { decodeKept, nameOfManifest } from './kept-document.ts'
import type { KeptManifest, ObjectName } from './kept-document.ts'
import { fileNameOf, isObjectFile, keyOf, readObjectFile } from './object-file.ts'
import { watchDirectory } from '../watch-directory.ts'
import type { DirectoryHint, WatchDirectory } from '../watch-directory.ts'

export interface ApiObjectsOptions {
  /** Made with the first object. */
  readonly directory: string
  /** Whether Secrets are on disk; otherwise they go with the process. */
  readonly persistSecrets: boolean
  readonly logger: Logger
  readonly watch?: WatchDirectory
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
  readonly #objects = new Map<string, KeptManifest>()
  /** What a file said last, by its name: an event about it may be an echo of podd's own write. */
  readonly #texts = new Map<string, string>()
  readonly #problems = new Map<string, Problem>()
  readonly #writes = new Semaphore(1)
  readonly #loaded = Promise.withResolvers<void>()
  #directoryProblem: Problem | undefined
  #take: TakeSnapshot = async () => {}

  constructor(options: ApiObjectsOptions) {
    this.#options = options
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
    await this.#writes.run(() => this.#load())
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
    return this.#objects.get(keyOf(object))
  }

  /** All, or those of one kind. */
  list(kind?: string): readonly KeptManifest[] {
    const all = [...this.#objects.values()]
    return kind === undefined ? all : all.filter((object) => object.kind === kind)
  }

  findPod(uid: string): KeptManifest | undefined {
    for (const object of this.#objects.values())
      if (object.uid === uid && object.kind === 'Pod') return object
    return undefined
  }

  /**
   * Keeps an object; resolves when it is on disk and in force. Within `exclusively`.
   * @throws PoddError OBJECT_NOT_KEPT
   */
  async put(manifest: JsonObject): Promise<KeptManifest> {
    const kept = this.#toKept(manifest)
    if (this.#isOnDisk(kept)) {
      const text = `${JSON.stringify(manifest, undefined, 2)}\n`
      await this.#touchDisk(async () => {
        await makeDirectory(this.#options.directory, 0o700)
        await writeFileAtomic(kept.path, text)
      })
      this.#texts.set(basename(kept.path), text)
    }
    this.#objects.set(keyOf(kept), kept)
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
    this.#forget(kept)
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

  #forget(kept: KeptManifest): void {
    this.#objects.delete(keyOf(kept))
    this.#texts.delete(basename(kept.path))
    this.#problems.delete(basename(kept.path))
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

  async #load(): Promise<void> {
    const { directory, logger } = this.#options
    this.#directoryProblem = undefined
    try {
      const names = await readdir(directory)
      if (names.some((name) => isAtomicFileTemp(name)))
        for (const name of names.filter((each) => isObjectFile(each)))
          await removeAtomicFileTemps(join(directory, name))
      for (const name of names.filter((each) => isObjectFile(each)).sort()) await this.#read(name)
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return
      logger.error({ path: directory, err: error }, 'cannot read the directory of API objects')
      this.#directoryProblem = {
        severity: 'error',
        place: { path: directory },
        message: `cannot be read: ${errorMessage(error)}; pods that were written over the API are left as they are`,
      }
    }
  }

  /** Somebody may have edited or removed the file. */
  #reread(name: string): void {
    if (!isObjectFile(name)) return
    const isBlind = this.#directoryProblem !== undefined
    void this.#writes
      .run(async () => {
        if (isBlind) await this.#load()
        if ((await this.#read(name)) || isBlind) await this.#publish()
      })
      .catch((error: unknown) =>
        this.#options.logger.error({ path: name, err: error }, 'cannot read an API object'),
      )
  }

  #findByPath(path: string): KeptManifest | undefined {
    for (const object of this.#objects.values()) if (object.path === path) return object
    return undefined
  }

  /** Takes what a file says. False where that is known. */
  async #read(name: string): Promise<boolean> {
    const path = join(this.#options.directory, name)
    const before = this.#findByPath(path)
    let text: string
    try {
      text = await readFile(path, 'utf8')
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
      const wasBad = this.#problems.delete(name)
      this.#texts.delete(name)
      if (before === undefined || !this.#isOnDisk(before)) return wasBad
      this.#forget(before)
      return true
    }
    if (this.#texts.get(name) === text) return false
    this.#texts.set(name, text)
    const { kept, refusal } = readObjectFile(text, path, before)
    if (kept !== undefined) this.#objects.set(keyOf(kept), kept)
    if (refusal === undefined) this.#problems.delete(name)
    else
      this.#problems.set(name, {
        severity: 'error',
        place: { path },
        message: before === undefined ? refusal : `${refusal}; what it said before stays`,
      })
    return true
  }

  async #publish(isSame = false): Promise<void> {
    const documents = [...this.#objects.values()]
      .filter(({ kind, manifest }) => kind !== 'Pod' || !isBeingDeleted(manifest))
      .flatMap(({ document }) => document ?? [])
    const problems = [...this.#problems.values()]
    const snapshot: SourceSnapshot = {
      source: 'api',
      location: this.#options.directory,
      ready: this.#directoryProblem === undefined,
      pods: documents.filter((document) => isPodDocument(document)),
      objects: documents.filter((document) => isObjectDocument(document)),
      problems: this.#directoryProblem === undefined ? problems : [this.#directoryProblem, ...problems],
      unreadable: problems
        .map(({ place }) => place.path)
        .filter((path) => this.#findByPath(path) === undefined),
    }
    await this.#take(snapshot, isSame)
  }
}

/** Whether it was deleted and isn't gone yet. */
export function isBeingDeleted({ metadata }: JsonObject): boolean {
  return isJsonObject(metadata) && typeof metadata['deletionTimestamp'] === 'string'
}
