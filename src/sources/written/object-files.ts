import { lstat, readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isAtomicFileTemp, makeDirectory, removeAtomicFileTemps } from '../../base/atomic-file.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, mayPass } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { errorAt } from '../../pod/objects/document.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { lookAtFile } from '../read-manifest-file.ts'
import { MissingFiles, refillMs } from '../source.ts'
import { identify } from '../watch-directory.ts'
import type { WatchDirectory } from '../watch-directory.ts'
import {
  duplicateProblem,
  fileNameOf,
  FollowedObjects,
  inOrderOfClaim,
  isObjectFile,
  isOfAnother,
  otherFileNameOf,
  readObjectFile,
} from './object-file.ts'
import type { EarlierObject, KeptManifest, ObjectName } from './object-file.ts'

/** How long after a failure of the system it is tried again. */
const retryMs = 2_000

export interface ApiObjectsOptions {
  /** Made with the first object. */
  readonly directory: string
  /** Whether Secrets are on disk; otherwise they go with the process. */
  readonly persistSecrets: boolean
  readonly clock: Clock
  readonly logger: Logger
  readonly watch?: WatchDirectory
  /** The pod with this UID that an earlier podd had; left out, nothing is known of earlier podds. */
  readonly findRecorded?: (uid: string) => Promise<EarlierObject | undefined>
}

/** What a file says now. */
interface FileReading extends ReturnType<typeof readObjectFile> {
  readonly name: string
  /** Undefined where it can't be read. */
  readonly seen: SeenText | undefined
  /** The object of the file so far. */
  readonly before: KeptManifest | undefined
}

interface SeenText {
  readonly text: string
  /** Of the file when it was read; undefined for what podd has written. */
  readonly fingerprint: string | undefined
}

/**
 * The files of a directory, the objects that are followed, and why the other files aren't. A file that is missing is only
 * dropped when it doesn't return shortly, under its name or another: programs replace files by removing them, and rename
 * them. One call at a time.
 */
export class ObjectFiles {
  readonly objects = new FollowedObjects()
  readonly #options: ApiObjectsOptions
  /** What a file said last, by its name: an event about it may be an echo of podd's own write. */
  readonly #texts = new Map<string, SeenText>()
  /** By the names of their files. */
  readonly #problems = new Map<string, Problem>()
  /** Those that aren't followed because another file has their name or UID, by the names of their files. */
  readonly #duplicates = new Map<string, KeptManifest>()
  readonly #missing: MissingFiles
  /** The names of the files that the system failed to read, and may read later. */
  readonly #failing = new Set<string>()
  readonly #directory: ObjectDirectory
  #isChanged = false

  constructor(options: ApiObjectsOptions) {
    this.#options = options
    this.#missing = new MissingFiles(options.clock)
    this.#directory = new ObjectDirectory(options.directory, options.logger)
  }

  /** Why the directory can't be read. */
  get directoryProblem(): Problem | undefined {
    return this.#directory.problem
  }

  /** See ObjectDirectory. */
  get directoryId(): string | undefined {
    return this.#directory.id
  }

  /** Whether the object has a file. */
  isOnDisk({ kind }: KeptManifest): boolean {
    return this.#options.persistSecrets || kind !== 'Secret'
  }

  /** Whether anything changed since this was last asked. */
  takeChange(): boolean {
    const isChanged = this.#isChanged
    this.#isChanged = false
    return isChanged
  }

  /** Milliseconds until `settle` has something to do; undefined when nothing is pending. */
  nextWaitMs(): number | undefined {
    const isFailing = this.directoryProblem !== undefined || this.#failing.size > 0
    const waits = [...this.#missing.waitsMs('settled'), ...(isFailing ? [retryMs] : [])]
    return waits.length === 0 ? undefined : Math.min(...waits)
  }

  problems(): readonly Problem[] {
    const duplicates = [...this.#duplicates.values()].flatMap((kept) => {
      const followed = this.objects.findOther(kept)
      // It may have been renamed to this one.
      const isUndecided = followed !== undefined && this.#missing.has(basename(followed.path))
      return isUndecided ? [] : duplicateProblem(kept, followed)
    })
    const ofFiles = [...this.#problems.values(), ...duplicates]
    const directory = this.directoryProblem === undefined ? [] : [this.directoryProblem]
    return [...directory, ...ofFiles.toSorted((a, b) => (a.place.path < b.place.path ? -1 : 1))]
  }

  /** The paths of the files that give no object because they can't be read. */
  unreadable(): readonly string[] {
    const paths = [...this.#problems.values()].map(({ place }) => place.path)
    return paths.filter((path) => this.objects.findByPath(path) === undefined)
  }

  /** The path for an object's file where no other one stands; undefined where there is none. */
  async choosePath(object: ObjectName & { readonly uid: string }): Promise<string | undefined> {
    const known = this.objects.get(object)
    if (known !== undefined && !this.isTaken(known)) return known.path
    for (const name of [fileNameOf(object), otherFileNameOf(object)])
      if (await this.#isFree(name)) return this.#path(name)
    return undefined
  }

  /** Whether another object has come to stand in the file of this one. */
  isTaken(object: KeptManifest): boolean {
    const name = basename(object.path)
    const seen = this.#texts.get(name)
    return this.#problems.has(name) && seen !== undefined && isOfAnother(seen.text, object)
  }

  /** podd has written the object's file, which is nothing but this text now; undefined: it has none. */
  noteWritten(kept: KeptManifest, text: string | undefined): void {
    const name = basename(kept.path)
    const before = this.objects.get(kept)
    // Another object stands there.
    if (before !== undefined && before.path !== kept.path) this.#dropName(basename(before.path))
    if (text !== undefined) {
      this.#dropName(name)
      this.#texts.set(name, { text, fingerprint: undefined })
    }
    this.objects.set(kept)
  }

  forget(kept: KeptManifest): void {
    this.objects.delete(kept)
    this.#dropName(basename(kept.path))
  }

  /** Reads all that is there and has changed. */
  async load(): Promise<void> {
    const before = this.directoryProblem?.message
    const listing = await this.#directory.list(this.#knownNames().size > 0)
    if (this.directoryProblem?.message !== before) this.#isChanged = true
    if (listing === undefined) {
      // Nothing is missing in a directory that can't be read.
      this.#missing.forgetAll()
      return
    }
    // It may be about to be filled again.
    if (listing.wasAway) this.#missing.delay(refillMs)
    await this.#readAll(listing.names)
    const present = new Set(listing.names)
    for (const name of this.#knownNames()) if (!present.has(name)) await this.read(name)
  }

  /** Reads all where the directory isn't the one that was read last, or files are missing from it. */
  async loadIfMoved(): Promise<void> {
    if (!(await this.#directory.isSame()) || this.#missing.names().length > 0) await this.load()
  }

  /** Takes what a file says. */
  async read(name: string): Promise<void> {
    const read = await this.#readFile(name, undefined)
    if (read === 'missing') {
      this.#noteMissing(name)
      return
    }
    if (read === 'known') return
    this.#take(read)
    const kept = this.#duplicates.get(name)
    const followed = kept === undefined ? undefined : this.objects.findOther(kept)
    // It may have been renamed to this one.
    if (followed !== undefined && (await lookAtFile(followed.path)).kind === 'missing')
      this.#noteMissing(basename(followed.path))
  }

  #noteMissing(name: string): void {
    if (this.#isKnown(name)) this.#missing.note(name, true)
  }

  /** Drops what is gone for good, and tries again what the system failed to read. */
  async settle(): Promise<void> {
    if (this.nextWaitMs() === undefined) return
    await this.load()
    for (const name of this.#missing.due('settled')) await this.#takeRemoval(name)
  }

  /**
   * Which of several files of one object is followed depends on all of them.
   * @param removed the object that was followed, whose file is gone
   */
  async #readAll(names: readonly string[], removed?: KeptManifest): Promise<void> {
    const fresh: (FileReading & { readonly kept: KeptManifest })[] = []
    for (const name of names) {
      const read = await this.#readFile(name, this.#texts.get(name)?.fingerprint)
      if (typeof read === 'string') continue
      const { kept, before } = read
      if (kept !== undefined && before === undefined) fresh.push({ ...read, kept })
      else this.#take(read)
    }
    const findEarlier = async (kept: KeptManifest): Promise<EarlierObject | undefined> => {
      if (kept.uid === removed?.uid) return removed
      return kept.kind === 'Pod' ? this.#options.findRecorded?.(kept.uid) : undefined
    }
    for (const read of await inOrderOfClaim(fresh, findEarlier)) this.#take(read)
  }

  /** @param fingerprint of the file where it need not be read again */
  async #readFile(name: string, fingerprint: string | undefined): Promise<FileReading | 'missing' | 'known'> {
    const path = this.#path(name)
    const found = await readObjectText(path, fingerprint)
    this.#failing.delete(name)
    if (found.kind === 'missing') return 'missing'
    if (this.#missing.has(name)) {
      this.#missing.noteReturn(name)
      // Whether these are followed was undecided.
      if (this.#duplicates.size > 0) this.#isChanged = true
    }
    if (found.kind === 'unchanged') return 'known'
    const before = this.objects.findByPath(path)
    if (found.kind === 'unreadable') {
      if (found.mayPass) this.#failing.add(name)
      return { name, before, seen: undefined, refusal: found.reason }
    }
    const { text } = found
    const isKnown = this.#texts.get(name)?.text === text
    if (!isKnown) return { name, before, seen: found, ...readObjectFile(text, path, before) }
    this.#texts.set(name, found)
    return 'known'
  }

  #take({ name, seen, before, kept, refusal }: FileReading): void {
    const problem = this.#problems.get(name)
    const said = before === undefined ? refusal : `${refusal}; what it said before stays`
    // The system still can't read it.
    if (seen === undefined && problem?.message === said) return
    this.#isChanged = true
    this.#dropName(name)
    if (seen !== undefined) this.#texts.set(name, seen)
    if (kept !== undefined && this.objects.findOther(kept) !== undefined) {
      this.#duplicates.set(name, kept)
      return
    }
    if (kept !== undefined) this.objects.set(kept)
    if (refusal === undefined || said === undefined) return
    this.#problems.set(name, errorAt(this.#path(name), said))
  }

  /** Another file that gives the object is followed from now on. */
  async #takeRemoval(name: string): Promise<void> {
    this.#isChanged = true
    const before = this.objects.findByPath(this.#path(name))
    this.#dropName(name)
    if (before === undefined || !this.isOnDisk(before)) return
    const others = [...this.#duplicates].filter(([, kept]) => this.objects.findOther(kept) === before)
    const names = others.map(([other]) => other)
    this.forget(before)
    for (const other of names) this.#texts.delete(other)
    await this.#readAll(names, before)
  }

  /** Forgets the file, if not its object. */
  #dropName(name: string): void {
    this.#texts.delete(name)
    this.#problems.delete(name)
    this.#duplicates.delete(name)
    this.#missing.forget(name)
  }

  #knownNames(): ReadonlySet<string> {
    return new Set([...this.#texts.keys(), ...this.#problems.keys(), ...this.#duplicates.keys()])
  }

  #isKnown(name: string): boolean {
    return this.#texts.has(name) || this.#problems.has(name) || this.#duplicates.has(name)
  }

  async #isFree(name: string): Promise<boolean> {
    const path = this.#path(name)
    if (this.objects.findByPath(path) !== undefined || this.#isKnown(name)) return false
    try {
      await lstat(path)
      return false
    } catch (error) {
      // Writing tells what else is wrong with it.
      return errorCode(error) === 'ENOENT'
    }
  }

  #path(name: string): string {
    return join(this.#options.directory, name)
  }
}

export interface ObjectListing {
  /** Of the files of objects, in their order. */
  readonly names: readonly string[]
  /** The directory was missing or unreadable, or it is another one than the last time. */
  readonly wasAway: boolean
}

/** The directory of the files of objects: which one it is, what is in it, and why it can't be read. */
class ObjectDirectory {
  readonly #path: string
  readonly #logger: Logger
  #id: string | undefined
  #problem: Problem | undefined

  constructor(path: string, logger: Logger) {
    this.#path = path
    this.#logger = logger
  }

  /** Changes when the directory is replaced; undefined until it was read. */
  get id(): string | undefined {
    return this.#id
  }

  get problem(): Problem | undefined {
    return this.#problem
  }

  /** Whether it can be read and is the one that was listed last. */
  async isSame(): Promise<boolean> {
    // Listing tells why it can't be looked at.
    const found = await identify(this.#path).catch(() => undefined)
    return this.#problem === undefined && found?.id === this.#id
  }

  /**
   * Undefined where it can't be read: see `problem`. Never throws.
   * @param isExpected files are known that are in it; otherwise a missing one is made again
   */
  async list(isExpected: boolean): Promise<ObjectListing | undefined> {
    try {
      const { id } = await this.#find(isExpected)
      const all = await readdir(this.#path)
      const wasAway = this.#id !== undefined && (this.#id !== id || this.#problem !== undefined)
      this.#id = id
      this.#note(undefined)
      const names = all.filter((name) => isObjectFile(name)).sort()
      if (all.some((name) => isAtomicFileTemp(name)))
        for (const name of names) await this.#removeTemps(join(this.#path, name))
      return { names, wasAway }
    } catch (error) {
      this.#note(errorCode(error) === 'ENOENT' && !isExpected ? undefined : this.#problemOf(error), error)
      return undefined
    }
  }

  /** Where files are known, it may be about to be replaced by another one; without any, nothing is lost by a new one. */
  async #find(isExpected: boolean): ReturnType<typeof identify> {
    try {
      return await identify(this.#path)
    } catch (error) {
      if (isExpected || errorCode(error) !== 'ENOENT') throw error
      // On a disk that can't be written, the next write tells.
      await makeDirectory(this.#path, 0o700).catch(() => undefined)
      return identify(this.#path)
    }
  }

  async #removeTemps(path: string): Promise<void> {
    await removeAtomicFileTemps(path).catch((error: unknown) =>
      this.#logger.warn({ path, err: error }, 'cannot remove a temporary file of an API object'),
    )
  }

  #problemOf(error: unknown): Problem {
    const isMissing = errorCode(error) === 'ENOENT'
    const why = isMissing ? 'does not exist' : `cannot be read: ${errorMessage(error)}`
    const hint = isMissing
      ? `restore it; where no object is meant to be left, create it: mkdir -m 700 ${this.#path}`
      : 'make it readable for podd'
    return errorAt(this.#path, `${why}; pods that were written over the API are left as they are`, hint)
  }

  #note(problem: Problem | undefined, error?: unknown): void {
    const before = this.#problem
    this.#problem = problem
    if (before?.message === problem?.message) return
    const path = this.#path
    if (problem === undefined) this.#logger.info({ path }, 'the directory of API objects is readable again')
    else this.#logger.error({ path, err: error }, 'cannot read the directory of API objects')
  }
}

export type ObjectText =
  | { readonly kind: 'text'; readonly text: string; readonly fingerprint: string }
  /** @see FileLook */
  | { readonly kind: 'unreadable'; readonly reason: string; readonly mayPass: boolean }
  | { readonly kind: 'missing' }
  | { readonly kind: 'unchanged' }

/**
 * What stands in the file of an object. Never throws.
 * @param known the fingerprint of a file that need not be read again
 */
async function readObjectText(path: string, known: string | undefined): Promise<ObjectText> {
  const look = await lookAtFile(path)
  if (look.kind === 'missing') return look
  const { fingerprint } = look
  if (look.kind === 'unreadable')
    return { kind: 'unreadable', reason: look.reason, mayPass: look.error !== undefined }
  if (fingerprint === known) return { kind: 'unchanged' }
  try {
    return { kind: 'text', text: await readFile(path, 'utf8'), fingerprint }
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return { kind: 'missing' }
    const reason = `cannot be read: ${errorCode(error) ?? errorMessage(error)}`
    return { kind: 'unreadable', reason, mayPass: mayPass(error) }
  }
}
