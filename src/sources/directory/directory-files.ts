import { lstat, readdir, readFile, realpath } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { trace } from '../../base/trace.ts'
import { mapBounded, Semaphore } from '../../base/waits.ts'
import type { MountEntry } from '../../host/mounts.ts'
import type { Problem, SourceDocument } from '../../pod/objects/document.ts'
import type { DecodeResult } from '../../pod/decode/decode-documents.ts'
import { buildKustomization, isKustomization } from '../kustomization.ts'
import { danglingMark, isManifestName, lookAtFile } from '../read-manifest-file.ts'
import type { FileLook } from '../read-manifest-file.ts'
import { MissingFiles } from '../source.ts'
import type { SourceOptions } from '../source.ts'
import type { WatchDirectory } from '../watch-directory.ts'
import { fileWritersProblem } from './directory-problems.ts'
import { ageMs, failureProblem, PendingFiles, readContent, readFailure, sizeOf } from './pending-files.ts'
import type { PendingFile, ReadContent } from './pending-files.ts'
import { lookAtEach, ReferredFiles } from './referred-files.ts'
import { TakenFiles } from './taken-files.ts'
import type { DocumentLists } from './taken-files.ts'

const concurrentReads = 8
/** The name of the file that stands where a directory could. */
const singleFile = ''

export interface DirectorySourceOptions extends SourceOptions {
  /** The manifest directory, or a single manifest file; it need not exist. */
  readonly path: string
  /** Whether subdirectories are read too. */
  readonly recursive?: boolean
  /** Whether files that others than root can write are not read; by default they get a warning. */
  readonly isStrict?: boolean
  readonly watch?: WatchDirectory
  /** Which network file system a path is on. */
  readonly findNetwork?: (path: string) => Promise<string | undefined>
  /** The interval of full reads in case an event was lost; by default a minute. */
  readonly rescanMs?: number
  /** Overrides this host's mounts. */
  readonly readMounts?: () => readonly MountEntry[]
  /** The same while it is missing, unreadable, or can't be watched; by default two seconds. */
  readonly unhealthyRescanMs?: number
}

/**
 * The changes of the files in the manifest directory: which settle, are read, or went missing, and when each takes
 * effect. They go by their names; where the path is a single file, that one's is empty.
 */
export class DirectoryFiles {
  readonly #directory: string
  readonly #onRead: () => void
  readonly #options: Pick<
    DirectorySourceOptions,
    'clock' | 'decode' | 'verifier' | 'values' | 'fieldValidation'
  >
  readonly #taken: TakenFiles
  readonly #pending: PendingFiles
  /** How many were read since `onRead` was called. */
  #untold = 0
  readonly #missing: MissingFiles
  readonly seen: SeenFiles
  readonly #reads = new Semaphore(concurrentReads)
  /** What the kustomizations among them refer to. */
  readonly referred: ReferredFiles
  /** Hints about files that came since they were last looked at. */
  readonly #hints = new Map<string, { readonly kind: 'written' | 'renamed' }>()
  #isChanged = false
  #isSingleFile = false

  /**
   * @param lastGood the last good copy
   * @param onRead called when a read that went on in the background has ended
   */
  constructor(
    directory: string,
    lastGood: readonly SourceDocument[],
    onRead: () => void,
    options: Pick<
      DirectorySourceOptions,
      'clock' | 'decode' | 'verifier' | 'values' | 'fieldValidation' | 'isStrict'
    >,
  ) {
    this.#directory = directory
    this.#onRead = onRead
    this.#options = options
    this.#missing = new MissingFiles(options.clock)
    this.seen = new SeenFiles(directory, options.isStrict ?? false)
    this.#taken = new TakenFiles(directory, lastGood)
    this.#pending = new PendingFiles(options.clock, this.#taken)
    this.referred = new ReferredFiles(directory, this.#taken, this.#pending, options.verifier !== undefined)
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
    return this.#isSingleFile || this.seen.hasLinks
  }

  /** Which files lack a good signature; undefined where none does. */
  get unverified(): string | undefined {
    const [first, ...more] = [...this.#taken.unverified].toSorted()
    if (first === undefined) return undefined
    const others =
      more.length === 0 ? '' : `, nor ${more.length === 1 ? 'has 1 other' : `have ${more.length} others`}`
    return `${join(this.#directory, first)} has no good signature${others}`
  }

  get hasUnverified(): boolean {
    return this.#taken.unverified.size > 0
  }

  countPods(): number {
    return this.documents().pods.length
  }

  problems(): readonly Problem[] {
    const failures = [...this.#pending.files].flatMap(([name, { failure }]) =>
      failure === undefined ? [] : failureProblem(join(this.#directory, name), failure),
    )
    return [...this.#taken.problems(), ...failures, ...this.seen.problems()]
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
    for (const name of [...this.#taken.names(), ...this.#pending.files.keys()]) this.hint(name, 'renamed')
  }

  /** Notes that names came, went or changed, those that are no manifests' too. */
  noteMove(): void {
    this.#pending.noteMove()
  }

  /** Looks at the files that there are hints about. */
  async lookAtHinted(): Promise<void> {
    await lookAtEach([...this.#hints], async ([name, hint]) => {
      await this.#look(name, hint.kind)
      if (this.#hints.get(name) === hint) this.#hints.delete(name)
    })
  }

  /** Looks at every file that the directory lists or listed before. */
  async lookAtAll(listed: readonly string[]): Promise<void> {
    const known = [...this.#taken.names(), ...this.#pending.files.keys()]
    this.#isSingleFile = listed.includes(singleFile)
    await this.lookAtHinted()
    const named = [...new Set([...listed, ...known])].map((name) => [name, undefined] as const)
    await lookAtEach(named, ([name]) => this.#look(name, undefined))
  }

  #lookAtFile(name: string): Promise<FileLook> {
    return isKustomization(name) && !this.#isSingleFile
      ? this.referred.lookAt(name)
      : lookAtFile(join(this.#directory, name))
  }

  async #look(name: string, hint: 'written' | 'renamed' | undefined): Promise<void> {
    const { clock } = this.#options
    // A single file in place of the directory replaces the files of the directory, and the reverse.
    const isOther = (name === singleFile) !== this.#isSingleFile
    const found = isOther ? { kind: 'missing' as const } : await this.#lookAtFile(name)
    const place = this.referred.placeOf(name)
    const look = this.seen.judge(name, place === 'referred' ? { kind: 'missing' } : found)
    if (place === 'awaited' && look.kind !== 'missing') {
      this.#pending.files.delete(name)
      return
    }
    if (look.kind === 'missing') {
      this.#pending.files.delete(name)
      await this.#noteMissing(name, hint)
      return
    }
    this.#missing.noteReturn(name)
    const pending = this.#pending.files.get(name)
    const known = pending?.look.fingerprint ?? this.#taken.fingerprint(name)
    // Its signature may have come: not every change of one is seen.
    const isUnverified = pending === undefined && this.#taken.unverified.has(name)
    if (known === look.fingerprint && hint === undefined && !isUnverified) return
    this.noteMove()
    const isEmpty = look.kind === 'file' && look.sizeBytes === 0
    this.#pending.files.set(name, {
      look,
      isWrittenInPlace: isEmpty || hint !== 'renamed' || (pending?.isWrittenInPlace ?? false),
      changedAtMs: clock.monotonicMs() - (hint === undefined ? ageMs(look, clock.wallMs()) : 0),
    })
  }

  async #noteMissing(name: string, hint: 'written' | 'renamed' | undefined): Promise<void> {
    if (!this.#taken.has(name) || this.#missing.has(name)) return
    this.noteMove()
    const path = join(this.#directory, name)
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
    const isGood = !this.#pending.files.has(singleFile) && this.#taken.isGood(singleFile)
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
        this.#pending.files.get(name) === pending ? await this.#readContent(name, pending.look) : undefined,
      )
      // A hint about the file has made another pending entry of it meanwhile.
      if (read === undefined || this.#pending.files.get(name) !== pending || this.#hints.has(name)) return
      const { failure: _, ...rest } = pending
      const isKnown = (other: string): boolean => !this.#pending.files.has(other)
      const dropsObjects = this.#taken.dropsObjects(name, read.result, isKnown)
      const complete = { ...rest, read: { ...read, dropsObjects, isEarly } }
      if (this.#pending.waitMs(name, complete) > 0) {
        this.#pending.files.set(name, complete)
      } else if (isEarly && !read.isBraced) await this.#confirm(name, pending, complete.read)
      else this.#take(name, complete, complete.read)
    } catch (error) {
      const failure = readFailure(error, pending.failure, this.#options.clock.monotonicMs())
      if (this.#pending.files.get(name) === pending) this.#pending.files.set(name, { ...pending, failure })
    } finally {
      this.#pending.endRead(name)
      this.#noteRead()
    }
  }

  /** Takes what was read early if the file is still the same. A change may be waiting behind the timer that found it quiet. */
  async #confirm(name: string, pending: PendingFile, read: Required<PendingFile>['read']): Promise<void> {
    this.#pending.beginRead(name)
    const look = await this.#lookAtFile(name)
    this.#pending.endRead(name)
    if (this.#pending.files.get(name) === pending && !this.#hints.has(name)) {
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
    this.#onRead()
  }

  /** Throws what the system throws, and DecodeUnavailable. */
  async #readContent(name: string, look: PendingFile['look']): Promise<ReadContent | undefined> {
    const path = join(this.#directory, name)
    const isBuilt = isKustomization(name) && !this.#isSingleFile
    const build = isBuilt
      ? () => buildKustomization(this.#directory, name, look.fingerprint, this.#options.clock)
      : undefined
    const known = (hash: string): DecodeResult | undefined => this.#taken.decoded(name, hash)
    const read = await readContent(path, look, { ...this.#options, build }, known)
    trace?.('decoded', name)
    if (read === undefined) this.hint(name, 'written')
    return read
  }

  #take(name: string, { look }: PendingFile, content: ReadContent): void {
    trace?.('settled', name)
    this.#pending.files.delete(name)
    const seen = { fingerprint: look.fingerprint, sizeBytes: sizeOf(look) }
    this.#isChanged = this.#taken.take(name, seen, content) || this.#isChanged
    this.referred.noteTaken(name)
  }
}

/**
 * What examining manifests shows beside their content: which are symlinks, and which others than root can write. The
 * latter get a warning, or aren't read in strict mode.
 */
class SeenFiles {
  readonly #directory: string
  readonly #isStrict: boolean
  readonly #writers = new Map<string, string>()
  readonly #links = new Set<string>()
  /** Links whose targets are missing. */
  readonly #dangling = new Set<string>()
  #hasArrived = false

  constructor(directory: string, isStrict: boolean) {
    this.#directory = directory
    this.#isStrict = isStrict
  }

  get hasLinks(): boolean {
    return this.#links.size > 0
  }

  /** Whether the target of a link is missing. */
  get hasDangling(): boolean {
    return this.#dangling.size > 0
  }

  /** Whether the missing target of a link has come since this was last asked. */
  takeArrived(): boolean {
    const hasArrived = this.#hasArrived
    this.#hasArrived = false
    return hasArrived
  }

  problems(): readonly Problem[] {
    return [...this.#writers]
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, writers]) => fileWritersProblem(join(this.#directory, name), writers))
  }

  /** The result of examining a file, with strict mode applied. */
  judge(name: string, look: FileLook): FileLook {
    if (look.kind !== 'missing' && look.isLink === true) this.#links.add(name)
    else this.#links.delete(name)
    if (look.kind === 'unreadable' && look.fingerprint === danglingMark) this.#dangling.add(name)
    else if (this.#dangling.delete(name) && look.kind !== 'missing') this.#hasArrived = true
    const writers = look.kind === 'file' ? look.otherWriters : undefined
    if (look.kind !== 'file' || writers === undefined) {
      this.#writers.delete(name)
      return look
    }
    const { fingerprint } = look
    if (this.#isStrict) return { kind: 'unreadable', fingerprint, reason: `can be written by ${writers}` }
    this.#writers.set(name, writers)
    return look
  }
}

/**
 * Whether there are signs that a removed name will return: the old file lies beside it under a name that is no
 * manifest's (vim and emacs keep it as `NAME~` while they write), an editor has it open (`.NAME.swp`, `.#NAME`); or
 * git, which replaces files by removing them, is updating its work tree. Without signs the file was removed, or a
 * program that leaves none (tar, install) is about to write it. Never throws.
 * @param path the file's
 * @param fingerprint of the file when it was last examined (see lookAtFile)
 */
export async function isBeingReplaced(path: string, fingerprint: string | undefined): Promise<boolean> {
  const marks = await Promise.all([
    isOpenInEditor(path),
    isMovedAside(path, fingerprint),
    isInUpdatingWorkTree(path),
  ])
  return marks.includes(true)
}

async function isOpenInEditor(path: string): Promise<boolean> {
  const name = basename(path)
  const marks = [`.${name}.swp`, `.#${name}`].map((mark) => identityOf(join(dirname(path), mark)))
  return (await Promise.all(marks)).some((identity) => identity !== undefined)
}

async function isMovedAside(path: string, fingerprint: string | undefined): Promise<boolean> {
  if (fingerprint === undefined) return false
  try {
    // A manifest's new name appears as a new file.
    const others = (await readdir(dirname(path))).filter((name) => !isManifestName(name))
    const found = await mapBounded(others, (other) => identityOf(join(dirname(path), other)))
    return found.some((identity) => identity !== undefined && fingerprint.startsWith(`${identity}:`))
  } catch {
    // Listing the directory reports why it can't be read.
    return false
  }
}

/** Undefined where there is nothing, or it can't be looked at. */
async function identityOf(path: string): Promise<string | undefined> {
  // The same as if it didn't exist.
  const stats = await lstat(path, { bigint: true }).catch(() => undefined)
  return stats && `${stats.dev}:${stats.ino}`
}

/** git holds `index.lock` from before the first file that it removes until after the last that it writes. */
async function isInUpdatingWorkTree(path: string): Promise<boolean> {
  try {
    let directory = await realpath(dirname(path))
    for (;;) {
      const marker = join(directory, '.git')
      if ((await identityOf(marker)) !== undefined)
        return (await identityOf(join(await gitDirectory(marker), 'index.lock'))) !== undefined
      if (directory === '/') return false
      directory = dirname(directory)
    }
  } catch {
    // Without anything readable it is no work tree.
    return false
  }
}

/** `.git` is a directory, or a file that names it: in a linked work tree, say (gitrepository-layout(5)). */
async function gitDirectory(marker: string): Promise<string> {
  if ((await lstat(marker)).isDirectory()) return marker
  const [, named = marker] = /^gitdir: (.+)$/mu.exec(await readFile(marker, 'utf8')) ?? []
  return resolve(dirname(marker), named)
}
