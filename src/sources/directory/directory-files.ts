import { join } from 'node:path'
import { mapBounded, Semaphore } from '../../base/waits.ts'
import { trace } from '../../base/trace.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { DocumentLists } from './document-lists.ts'
import { MissingFiles } from '../missing-files.ts'
import { failureProblem, readFailure } from './read-failure.ts'
import type { PendingFile, ReadContent } from './pending-file.ts'
import { PendingFiles } from './pending-files.ts'
import { sizeOf } from './pending-file.ts'
import { readContent } from './read-content.ts'
import { lookAtFile } from '../read-manifest-file.ts'
import type { DirectoryFilesOptions } from './directory-options.ts'
import { SeenFiles } from './seen-files.ts'
import { isBeingReplaced } from './replaced-file.ts'
import { ageMs } from './settle-file.ts'
import { TakenFiles } from './taken-files.ts'
import { leaveOutUnchanged } from './unchanged-files.ts'

const concurrentReads = 8
/** The name of the file that stands where a directory could. */
const singleFile = ''

/**
 * The changes of the files in the manifest directory: which settle, are read, or went missing, and when each takes
 * effect. They go by their names; where the path is a single file, that one's is empty.
 */
export class DirectoryFiles {
  readonly #options: DirectoryFilesOptions
  readonly #taken: TakenFiles
  readonly #pending: PendingFiles
  /** How many were read since `onRead` was called. */
  #untold = 0
  readonly #missing: MissingFiles
  readonly #seen: SeenFiles
  readonly #reads = new Semaphore(concurrentReads)
  /** Hints about files that came since they were last looked at. */
  readonly #hints = new Map<string, { readonly kind: 'written' | 'renamed' }>()
  #isChanged = false
  #isSingleFile = false

  constructor(options: DirectoryFilesOptions) {
    this.#options = options
    this.#missing = new MissingFiles(options.clock)
    this.#seen = new SeenFiles(options.directory, options.isStrict)
    this.#taken = new TakenFiles(options.directory, options.lastGood)
    this.#pending = new PendingFiles(options.clock, this.#taken)
  }

  isSettling(): boolean {
    return this.#pending.isSettling
  }

  /** See PendingFiles. */
  isReading(): boolean {
    return this.#pending.isReading
  }

  /** In the order of the names. */
  documents(): DocumentLists {
    return this.#taken.documents()
  }

  /** Distinguishes what the files hold. */
  hash(): string {
    return this.#taken.hash()
  }

  /** Whether a name that is no manifest's may lead to one. */
  mayBeReachedThroughLinks(): boolean {
    return this.#isSingleFile || this.#seen.hasLinks
  }

  /** Whether the target of a link is missing. */
  get hasDangling(): boolean {
    return this.#seen.hasDangling
  }

  /** Whether the missing target of a link has come since this was last asked. */
  takeArrived(): boolean {
    return this.#seen.takeArrived()
  }

  countPods(): number {
    return this.documents().pods.length
  }

  problems(): readonly Problem[] {
    const { directory } = this.#options
    const failures = [...this.#pending.entries()].flatMap(([name, { failure }]) =>
      failure === undefined ? [] : failureProblem(join(directory, name), failure),
    )
    return [...this.#taken.problems(), ...failures, ...this.#seen.problems()]
  }

  /** Whether anything changed since this was last asked. */
  takeChange(): boolean {
    const isChanged = this.#isChanged
    this.#isChanged = false
    return isChanged
  }

  /** Notes that a file changed. From now on nothing that was read of it before is taken. */
  hint(name: string, kind: 'written' | 'renamed'): void {
    trace?.('changed', name)
    this.noteMove()
    const before = this.#hints.get(name)
    this.#hints.set(name, { kind: before?.kind === 'written' ? 'written' : kind })
  }

  /** What stands in the files means something else now. */
  decodeAgain(): void {
    for (const name of [...this.#taken.names(), ...this.#pending.keys()]) this.hint(name, 'renamed')
  }

  /** Notes that names came, went or changed, those that are no manifests' too. */
  noteMove(): void {
    this.#pending.noteMove()
  }

  /** Looks at the files that there are hints about. */
  async lookAtHinted(): Promise<void> {
    await mapBounded([...this.#hints], async ([name, hint]) => {
      await this.#look(name, hint.kind)
      if (this.#hints.get(name) === hint) this.#hints.delete(name)
    })
  }

  /** Looks at every file that the directory lists or listed before; `isLocal` where no network file system can hold a look up. */
  async lookAtAll(listed: readonly string[], { isLocal }: { readonly isLocal: boolean }): Promise<void> {
    const known = [...this.#taken.names(), ...this.#pending.keys()]
    this.#isSingleFile = listed.includes(singleFile)
    await this.lookAtHinted()
    const names = [...new Set([...listed, ...known])]
    const changed = isLocal ? leaveOutUnchanged(names, (name) => this.#settled(name), this.#options) : names
    await mapBounded(changed, (name) => this.#look(name, undefined))
  }

  /** The fingerprint of a file that was taken and from which nothing else is awaited. */
  #settled(name: string): string | undefined {
    const isOther = (name === singleFile) !== this.#isSingleFile
    const isAwaited = isOther || this.#pending.has(name) || this.#missing.has(name)
    return isAwaited ? undefined : this.#taken.fingerprint(name)
  }

  async #look(name: string, hint: 'written' | 'renamed' | undefined): Promise<void> {
    const { clock, directory } = this.#options
    // A single file in place of the directory replaces the files of the directory, and the reverse.
    const isOther = (name === singleFile) !== this.#isSingleFile
    const found = isOther ? { kind: 'missing' as const } : await lookAtFile(join(directory, name))
    const look = this.#seen.judge(name, found)
    if (look.kind === 'missing') {
      this.#pending.delete(name)
      await this.#noteMissing(name, hint)
      return
    }
    this.#missing.noteReturn(name)
    const pending = this.#pending.get(name)
    const known = pending?.look.fingerprint ?? this.#taken.fingerprint(name)
    if (known === look.fingerprint && hint === undefined) return
    this.noteMove()
    const isEmpty = look.kind === 'file' && look.sizeBytes === 0
    this.#pending.set(name, {
      look,
      isWrittenInPlace: isEmpty || hint !== 'renamed' || (pending?.isWrittenInPlace ?? false),
      changedAtMs: clock.monotonicMs() - (hint === undefined ? ageMs(look, clock.wallMs()) : 0),
    })
  }

  async #noteMissing(name: string, hint: 'written' | 'renamed' | undefined): Promise<void> {
    if (!this.#taken.has(name) || this.#missing.has(name)) return
    this.noteMove()
    const path = join(this.#options.directory, name)
    // What no event reported may have been gone for long.
    const isKnownReplaced = hint === undefined || this.#missing.names().length > 0
    const isReplaced = isKnownReplaced || (await isBeingReplaced(path, this.#taken.fingerprint(name)))
    this.#missing.note(name, isReplaced)
  }

  /** Looks again at the names that are missing: one may be back. */
  async lookAtMissing(): Promise<void> {
    await mapBounded(this.#missing.names(), (name) => this.#look(name, undefined))
  }

  /** Delays removals: after the whole directory was away, it may be about to be filled again. */
  delayRemovals(delayMs: number): void {
    this.#missing.delay(delayMs)
  }

  /** Whether `settle` would drop something. */
  hasDueRemovals(): boolean {
    return this.#missing.due(this.#pending.state).length > 0
  }

  /** Nothing is missing in a directory that can't be read; when it can, its list tells. */
  forgetMissing(): void {
    this.#isSingleFile = false
    this.#missing.forgetAll()
  }

  /** Reads and takes what has settled, and drops what is gone for good. Reading goes on in the background. */
  settle(options: { readonly removeAtOnce: boolean }): void {
    // Decides which files wait for others before any is taken: a document that moved between two is taken with both.
    const due = this.#pending.due()
    for (const [name, pending] of due) {
      if (pending.read === undefined) void this.#read(name, pending)
      else if (pending.read.isEarly) void this.#confirm(name, pending, pending.read)
      else this.#take(name, pending, pending.read)
    }
    this.#noteReplaced()
    const others = this.#pending.state
    const isAtOnce = options.removeAtOnce && others === 'settled'
    for (const name of isAtOnce ? this.#missing.names() : this.#missing.due(others)) {
      this.#missing.forget(name)
      this.#isChanged = this.#taken.drop(name) || this.#isChanged
    }
  }

  /** A single file in place of the directory replaces all that was there, but only once it is whole and good. */
  #noteReplaced(): void {
    if (!this.#isSingleFile) return
    const isGood = !this.#pending.has(singleFile) && this.#taken.isGood(singleFile)
    for (const name of this.#taken.names()) {
      if (name === singleFile) continue
      if (isGood) this.#missing.note(name, false)
      else this.#missing.forget(name)
    }
  }

  /** Milliseconds until `settle` has something to do; undefined when nothing is pending. */
  nextWaitMs(): number | undefined {
    const waits = [...this.#pending.waitsMs(), ...this.#missing.waitsMs(this.#pending.state)].filter(
      (waitMs) => waitMs !== Infinity,
    )
    return waits.length === 0 ? undefined : Math.min(...waits)
  }

  async #read(name: string, pending: PendingFile): Promise<void> {
    this.#pending.beginRead(name)
    const isEarly = this.#pending.waitMs(name, pending) > 0
    try {
      const read = await this.#reads.run(async () =>
        this.#pending.get(name) === pending ? await this.#readContent(name, pending.look) : undefined,
      )
      // A hint about the file has made another pending entry of it meanwhile.
      if (read === undefined || this.#pending.get(name) !== pending || this.#hints.has(name)) return
      const { failure: _, ...rest } = pending
      const isKnown = (other: string): boolean => !this.#pending.has(other)
      const dropsObjects = this.#taken.dropsObjects(name, read.result, isKnown)
      const complete = { ...rest, read: { ...read, dropsObjects, isEarly } }
      if (this.#pending.waitMs(name, complete) > 0) {
        this.#pending.set(name, complete)
      } else if (isEarly && !read.isBraced) await this.#confirm(name, pending, complete.read)
      else this.#take(name, complete, complete.read)
    } catch (error) {
      const failure = readFailure(error, pending.failure, this.#options.clock.monotonicMs())
      if (this.#pending.get(name) === pending) this.#pending.set(name, { ...pending, failure })
    } finally {
      this.#pending.endRead(name)
      this.#noteRead()
    }
  }

  /** Takes what was read early if the file is still the same. A change may be waiting behind the timer that found it quiet. */
  async #confirm(name: string, pending: PendingFile, read: Required<PendingFile>['read']): Promise<void> {
    this.#pending.beginRead(name)
    const look = await lookAtFile(join(this.#options.directory, name))
    this.#pending.endRead(name)
    if (this.#pending.get(name) === pending && !this.#hints.has(name)) {
      const isSame = look.kind !== 'missing' && look.fingerprint === pending.look.fingerprint
      if (isSame) this.#take(name, pending, read)
      else this.hint(name, 'written')
    }
    this.#noteRead()
  }

  /** Each call of `onRead` costs a look at all files: where many are read at once, several reads share one call. */
  #noteRead(): void {
    this.#untold += 1
    if (this.#untold < this.#pending.readingCount / 8) return
    this.#untold = 0
    this.#options.onRead()
  }

  /** Throws what the system throws, and DecodeUnavailable. */
  async #readContent(name: string, look: PendingFile['look']): Promise<ReadContent | undefined> {
    const path = join(this.#options.directory, name)
    const read = await readContent({ path, look, ...this.#options }, (hash) =>
      this.#taken.decoded(name, hash),
    )
    trace?.('decoded', name)
    if (read === undefined) this.hint(name, 'written')
    return read
  }

  #take(name: string, { look }: PendingFile, content: ReadContent): void {
    trace?.('settled', name)
    this.#pending.delete(name)
    const seen = { fingerprint: look.fingerprint, sizeBytes: sizeOf(look) }
    this.#isChanged = this.#taken.take(name, seen, content) || this.#isChanged
  }
}
