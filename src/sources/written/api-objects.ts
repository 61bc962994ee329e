import { basename } from 'node:path'
import { removeFileDurably, writeFileAtomic, makeDirectory, writeInto } from '../../base/atomic-file.ts'
import type { Timer } from '../../base/clock.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import { Semaphore, whenAborted } from '../../base/waits.ts'
import { isKeptKind } from '../../pod/objects/object-kinds.ts'
import { groupDocuments } from '../../pod/objects/document.ts'
import type { SourceSnapshot } from '../../pod/objects/document.ts'
import { decodeKept, nameOfManifest, isObjectFile } from './object-file.ts'
import type { KeptManifest, ObjectName } from './object-file.ts'
import { ObjectFiles } from './object-files.ts'
import type { ApiObjectsOptions } from './object-files.ts'
import { watchDirectory } from '../watch-directory.ts'
import type { DirectoryHint, DirectoryWatch } from '../watch-directory.ts'

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
  #watch: DirectoryWatch | undefined
  #timer: Timer | undefined
  /** Monotonic time; Infinity where no timer runs. */
  #timerDueMs = Infinity
  #isOver = false

  constructor(options: ApiObjectsOptions) {
    this.#options = options
    this.#files = new ObjectFiles(options)
  }

  /** Resolves when what is there has been read. */
  get whenLoaded(): Promise<void> {
    return this.#loaded.promise
  }

  /** Reads what is there, then follows edits by hand. Resolves when the signal is aborted. */
  async run(take: TakeSnapshot, signal: AbortSignal): Promise<void> {
    this.#take = take
    // What is watched is there then; on a disk that can't be written, the next write tells.
    await makeDirectory(this.#options.directory, 0o700).catch(() => undefined)
    await this.#writes.run(() => this.#files.load())
    this.#loaded.resolve()
    this.#files.takeChange()
    void this.#publish()
    this.#startWatch()
    this.#startTimer()
    await whenAborted(signal)
    this.#isOver = true
    this.#timer?.cancel()
    await this.#watch?.close()
  }

  /** Runs work that reads and writes, with no other such work in between, once all objects are known. */
  async exclusively<T>(work: () => Promise<T>): Promise<T> {
    await this.#loaded.promise
    return this.#writes.run(async () => {
      await this.#catchUp(() => this.#files.loadIfMoved())
      return await work()
    })
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
    const kept = await this.#toKept(manifest)
    const text = this.#files.isOnDisk(kept) ? `${JSON.stringify(manifest, undefined, 2)}\n` : undefined
    if (text !== undefined)
      await this.#touchDisk(() =>
        writeInto(this.#options.directory, 0o700, () => writeFileAtomic(kept.path, text)),
      )
    const before = this.get(kept)
    this.#files.noteWritten(kept, text)
    if (before !== undefined && before.path !== kept.path) await this.#files.read(basename(before.path))
    await this.#publish(isKeptKind(kept.kind) && !this.#files.takeChange())
    return kept
  }

  /**
   * Forgets an object; resolves when it is off the disk and out of force. Within `exclusively`.
   * @throws PoddError OBJECT_NOT_KEPT
   */
  async remove(object: ObjectName): Promise<void> {
    const kept = this.get(object)
    if (kept === undefined) return
    const isTaken = this.#files.isTaken(kept)
    if (this.#files.isOnDisk(kept))
      await this.#touchDisk(async () => {
        if (!isTaken) await removeFileDurably(kept.path)
      })
    this.#files.forget(kept)
    if (isTaken) await this.#files.read(basename(kept.path))
    await this.#publish(isKeptKind(kept.kind) && !this.#files.takeChange())
  }

  /** Its document is what the objects are in the sync loop: `problems` says why it is none. */
  async #toKept(manifest: JsonObject): Promise<KeptManifest> {
    const named = nameOfManifest(manifest)
    if (named === undefined) throw new PoddError('OBJECT_NOT_KEPT', 'an object without a name cannot be kept')
    const path = await this.#files.choosePath(named)
    if (path === undefined)
      throw new PoddError('OBJECT_NOT_KEPT', 'the object cannot be kept: other files have its names', {
        hint: `Rename the files of its name and its UID in ${this.#options.directory}.`,
      })
    const { document } = decodeKept(manifest, path)
    return { ...named, manifest, path, document }
  }

  async #touchDisk(work: () => Promise<void>): Promise<void> {
    try {
      // There may be objects in it that podd doesn't know.
      const problem = this.#files.directoryProblem
      if (problem !== undefined) throw new Error(`${problem.place.path} ${problem.message}`)
      await work()
    } catch (error) {
      throw new PoddError('OBJECT_NOT_KEPT', `the object cannot be kept: ${errorMessage(error)}`, {
        cause: error,
        hint: `podd keeps what is written over the API in ${this.#options.directory}.`,
      })
    }
  }

  #startWatch(): void {
    const { directory, logger, watch = watchDirectory } = this.#options
    const onFailure = (error: unknown): void =>
      logger.warn({ path: directory, err: error }, 'cannot watch the directory of API objects')
    const onHint = (hint: DirectoryHint): void => this.#onHint(hint)
    this.#watch = watch(directory, { onHint, onFailure }, { looksAt: isObjectFile })
  }

  /** Somebody may have edited, removed or replaced the file, or all of them. */
  #onHint(hint: DirectoryHint): void {
    if (hint.kind === 'directory') this.#follow(() => this.#files.load())
    else if (isObjectFile(hint.name)) this.#follow(() => this.#files.read(hint.name))
  }

  #follow(read: () => Promise<void>): void {
    void this.#writes
      .run(() => this.#catchUp(read))
      .catch((error: unknown) =>
        this.#options.logger.error(
          { path: this.#options.directory, err: error },
          'cannot read the API objects',
        ),
      )
  }

  /** Reads what may have changed, and publishes what has. */
  async #catchUp(read: () => Promise<void>): Promise<void> {
    const before = this.#files.directoryId
    await read()
    const isMoved = before !== undefined && before !== this.#files.directoryId
    if (isMoved && this.#watch !== undefined) {
      // inotify follows the directory, not its path.
      await this.#watch.close()
      if (!this.#isOver) this.#startWatch()
    }
    if (this.#files.takeChange()) await this.#publish()
    this.#startTimer()
  }

  #startTimer(): void {
    const { clock } = this.#options
    const waitMs = this.#files.nextWaitMs()
    const dueMs = waitMs === undefined ? Infinity : clock.monotonicMs() + waitMs
    // What is tried again every now and then must not be put off by each write.
    if (this.#timerDueMs <= dueMs && waitMs !== undefined) return
    this.#timer?.cancel()
    this.#timerDueMs = Infinity
    if (waitMs === undefined || this.#isOver) return
    this.#timerDueMs = dueMs
    this.#timer = clock.startTimer(waitMs, () => {
      this.#timerDueMs = Infinity
      this.#follow(() => this.#files.settle())
    })
  }

  async #publish(isSame = false): Promise<void> {
    const documents = this.list()
      .filter(({ kind, manifest }) => kind !== 'Pod' || !isBeingDeleted(manifest))
      .flatMap(({ document }) => document ?? [])
    const snapshot: SourceSnapshot = {
      source: 'api',
      location: this.#options.directory,
      ready: this.#files.directoryProblem === undefined || this.#files.directoryId !== undefined,
      ...groupDocuments(documents),
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
