import { readFile, readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isAtomicFileTemp, removeAtomicFileTemps } from '../../base/atomic-file.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { duplicateProblem, inOrderOfClaim } from './duplicate-files.ts'
import type { Incumbent } from './duplicate-files.ts'
import { FollowedObjects } from './followed-objects.ts'
import type { KeptManifest } from './kept-document.ts'
import { isObjectFile, readObjectFile } from './object-file.ts'

export interface ObjectFilesOptions {
  readonly directory: string
  /** Whether the object has a file. */
  readonly isOnDisk: (object: KeptManifest) => boolean
  /** The pod with this UID that an earlier podd had. */
  readonly findRecorded: (uid: string) => Promise<Incumbent | undefined>
  readonly logger: Logger
}

/** What a file says now. */
interface FileReading extends ReturnType<typeof readObjectFile> {
  readonly name: string
  readonly text: string
  /** The object of the file so far. */
  readonly before: KeptManifest | undefined
}

/** The files of a directory, the objects that are followed, and why the other files aren't. One call at a time. */
export class ObjectFiles {
  readonly objects = new FollowedObjects()
  readonly #options: ObjectFilesOptions
  /** What a file said last, by its name: an event about it may be an echo of podd's own write. */
  readonly #texts = new Map<string, string>()
  /** By the names of their files. */
  readonly #problems = new Map<string, Problem>()
  /** Those that aren't followed because another file has their name or UID, by the names of their files. */
  readonly #duplicates = new Map<string, KeptManifest>()
  #directoryProblem: Problem | undefined

  constructor(options: ObjectFilesOptions) {
    this.#options = options
  }

  /** Whether the directory could be read, or isn't there. */
  get isReadable(): boolean {
    return this.#directoryProblem === undefined
  }

  problems(): readonly Problem[] {
    const duplicates = [...this.#duplicates.values()].map((kept) =>
      duplicateProblem(kept, this.objects.findRival(kept)),
    )
    const ofFiles = [...this.#problems.values(), ...duplicates]
    const directory = this.#directoryProblem === undefined ? [] : [this.#directoryProblem]
    return [...directory, ...ofFiles.toSorted((a, b) => (a.place.path < b.place.path ? -1 : 1))]
  }

  /** The paths of the files that give no object because they can't be read. */
  unreadable(): readonly string[] {
    const paths = [...this.#problems.values()].map(({ place }) => place.path)
    return paths.filter((path) => this.objects.findByPath(path) === undefined)
  }

  /** podd has written the object's file, which is nothing but this text now; undefined: it has none. */
  noteWritten(kept: KeptManifest, text: string | undefined): void {
    const name = basename(kept.path)
    if (text !== undefined) {
      this.#texts.set(name, text)
      this.#problems.delete(name)
      this.#duplicates.delete(name)
    }
    this.objects.set(kept)
  }

  forget(kept: KeptManifest): void {
    const name = basename(kept.path)
    this.objects.delete(kept)
    this.#texts.delete(name)
    this.#problems.delete(name)
  }

  /** Reads all that is there. */
  async load(): Promise<void> {
    const { directory, logger } = this.#options
    this.#directoryProblem = undefined
    try {
      const names = await readdir(directory)
      const files = names.filter((each) => isObjectFile(each)).sort()
      if (names.some((name) => isAtomicFileTemp(name)))
        for (const name of files) await removeAtomicFileTemps(join(directory, name))
      await this.#readAll(files)
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

  /** Takes what a file says. False where that is known. Throws the system's error. */
  async read(name: string): Promise<boolean> {
    const read = await this.#readFile(name)
    if (read === 'gone') return this.#takeRemoval(name)
    if (read === 'known') return false
    this.#take(read)
    return true
  }

  /**
   * Which of several files of one object is followed depends on all of them.
   * @param removed the object that was followed, whose file is gone
   */
  async #readAll(names: readonly string[], removed?: KeptManifest): Promise<void> {
    const fresh: (FileReading & { readonly kept: KeptManifest })[] = []
    for (const name of names) {
      const read = await this.#readFile(name)
      if (typeof read === 'string') continue
      const { kept, before } = read
      if (kept !== undefined && before === undefined) fresh.push({ ...read, kept })
      else this.#take(read)
    }
    const findIncumbent = async (kept: KeptManifest): Promise<Incumbent | undefined> => {
      if (kept.uid === removed?.uid) return removed
      return kept.kind === 'Pod' ? this.#options.findRecorded(kept.uid) : undefined
    }
    for (const read of await inOrderOfClaim(fresh, findIncumbent)) this.#take(read)
  }

  async #readFile(name: string): Promise<FileReading | 'gone' | 'known'> {
    const path = join(this.#options.directory, name)
    let text: string
    try {
      text = await readFile(path, 'utf8')
    } catch (error) {
      if (errorCode(error) !== 'ENOENT') throw error
      return 'gone'
    }
    if (this.#texts.get(name) === text) return 'known'
    const before = this.objects.findByPath(path)
    return { name, text, before, ...readObjectFile(text, path, before) }
  }

  #take({ name, text, before, kept, refusal }: FileReading): void {
    this.#texts.set(name, text)
    this.#problems.delete(name)
    this.#duplicates.delete(name)
    if (kept !== undefined && this.objects.findRival(kept) !== undefined) {
      this.#duplicates.set(name, kept)
      return
    }
    if (kept !== undefined) this.objects.set(kept)
    if (refusal === undefined) return
    this.#problems.set(name, {
      severity: 'error',
      place: { path: join(this.#options.directory, name) },
      message: before === undefined ? refusal : `${refusal}; what it said before stays`,
    })
  }

  /** Another file that gives the object is followed from now on. False where the file was not known. */
  async #takeRemoval(name: string): Promise<boolean> {
    const before = this.objects.findByPath(join(this.#options.directory, name))
    const isFollowed = before !== undefined && this.#options.isOnDisk(before)
    const wasKnown = isFollowed || this.#problems.has(name) || this.#duplicates.has(name)
    this.#texts.delete(name)
    this.#problems.delete(name)
    this.#duplicates.delete(name)
    if (!isFollowed) return wasKnown
    const rivals = [...this.#duplicates].filter(([, kept]) => this.objects.findRival(kept) === before)
    this.forget(before)
    for (const [rival] of rivals) this.#texts.delete(rival)
    await this.#readAll(
      rivals.map(([rival]) => rival),
      before,
    )
    return true
  }
}
