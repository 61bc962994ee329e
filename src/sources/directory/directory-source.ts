import { realpath, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { signatureSuffix } from '../../base/minisign.ts'
import { WakeSlot } from '../../base/waits.ts'
import { mountPointOf, readMounts } from '../../host/mounts.ts'
import type { MountEntry } from '../../host/mounts.ts'
import { joinIdleWarnings } from '../../pod/objects/document.ts'
import type { Problem, SourceSnapshot } from '../../pod/objects/document.ts'
import { describeOtherWriters, isManifestName, isManifestPath, listManifests } from '../read-manifest-file.ts'
import { LastGoodSaver, refillMs } from '../source.ts'
import type { ReportingSource, SourceReport } from '../source.ts'
import { findNetworkFileSystem, identify, watchDirectory } from '../watch-directory.ts'
import type { DirectoryHint, DirectoryIdentity, DirectoryWatch } from '../watch-directory.ts'
import { DirectoryFiles } from './directory-files.ts'
import type { DirectorySourceOptions } from './directory-files.ts'
import {
  directoryProblem,
  directoryWritersProblem,
  networkProblem,
  passedOverProblem,
  refusedProblem,
  unmountedProblem,
  unreadableNameProblem,
  watchProblem,
} from './directory-problems.ts'

const defaultRescanMs = 60_000
const defaultUnhealthyRescanMs = 2_000
/** How long the first snapshot waits for files that look half-written. */
const firstSnapshotMs = 1_000
/**
 * The least time between snapshots while files keep changing; it doubles with each, as the cost of a snapshot grows with
 * the number of files.
 */
const snapshotGapMs = 100
const longestSnapshotGapMs = 1000

/**
 * The manifest directory as a source of pods. Events of the file system only trigger a read of the directory itself. A
 * directory that is missing or can't be read is a problem and never an empty set.
 */
export function createDirectorySource(options: DirectorySourceOptions): ReportingSource {
  let loop: DirectoryLoop | undefined
  return {
    async run(onSnapshot, signal) {
      if (signal.aborted) return
      const directory = resolve(options.path)
      const wake = new WakeSlot()
      const saver = new LastGoodSaver(options.lastGood, options.name, directory, options.logger, () =>
        wake.wake(),
      )
      const lastGood = await saver.load()
      loop = new DirectoryLoop(options, directory, wake, saver, lastGood)
      await loop.run(onSnapshot, signal)
    },
    report: () => loop?.report() ?? { mode: 'watch' },
  }
}

class DirectoryLoop {
  readonly #options: DirectorySourceOptions
  readonly #directory: string
  readonly #wake: WakeSlot
  readonly #saver: LastGoodSaver
  readonly #files: DirectoryFiles
  readonly #facts: DirectoryFacts
  readonly #hadLastGood: boolean
  /** The last good copy was kept without Secrets. */
  readonly #lacksSecrets: boolean
  /** The mount point of the directory's file system when its last good copy was saved. */
  readonly #keptMountPoint: string | undefined
  #mountPoint: string | undefined
  #watch: DirectoryWatch | undefined
  /** Those of directories below, to which kustomizations refer; by their paths. */
  readonly #below = new Map<string, DirectoryWatch>()
  /** Why the directory can't be watched, so that it is polled. */
  #watchProblem: Problem | undefined
  #isListingDue = true
  #isRead = false
  /** Whether all files of the first read were taken, or timed out. */
  #isComplete = false
  #identity: DirectoryIdentity | undefined
  #directoryProblem: Problem | undefined
  #failingSinceMs = 0
  #unverifiedSinceMs = 0
  #readAtMs: number | undefined

  constructor(
    options: DirectorySourceOptions,
    directory: string,
    wake: WakeSlot,
    saver: LastGoodSaver,
    lastGood: Awaited<ReturnType<LastGoodSaver['load']>>,
  ) {
    this.#options = options
    this.#directory = directory
    this.#wake = wake
    this.#saver = saver
    this.#facts = new DirectoryFacts(directory, this.#unhealthyRescanMs(), options.findNetwork)
    this.#hadLastGood = lastGood?.isComplete === true
    this.#lacksSecrets = lastGood?.lacksSecrets === true
    this.#keptMountPoint = lastGood?.documents.length === 0 ? undefined : lastGood?.mountPoint
    this.#files = new DirectoryFiles(directory, lastGood?.documents ?? [], () => wake.wake(), options)
  }

  async run(onSnapshot: (snapshot: SourceSnapshot) => void, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    const startedMs = clock.monotonicMs()
    let readSinceMs: number | undefined
    const onAbort = (): void => this.#wake.wake()
    signal.addEventListener('abort', onAbort, { once: true })
    const unfollow = this.#options.values?.follow(() => {
      this.#files.decodeAgain()
      this.#wake.wake()
    })
    this.#startWatch()
    let published: string | undefined
    let publishedAtMs = startedMs
    let gapMs = snapshotGapMs
    try {
      while (!signal.aborted) {
        if (this.#files.hasDueRemovals()) await this.#confirmRemovals()
        await this.#look()
        const isFirst = published === undefined
        this.#files.settle({ removeAtOnce: isFirst })
        if (this.#files.referred.takeChange()) {
          this.#watchReferred()
          this.#isListingDue = true
          this.#wake.wake()
        }
        if (!this.#files.hasUnverified) this.#unverifiedSinceMs = 0
        else if (this.#unverifiedSinceMs === 0) this.#unverifiedSinceMs = clock.wallMs()
        if (this.#isRead) readSinceMs ??= clock.monotonicMs()
        // A file that takes long to decode isn't half-written: until it is decoded, no pod is removed.
        this.#isComplete ||=
          readSinceMs !== undefined &&
          !this.#files.isReading() &&
          (!this.#files.isSettling() || clock.monotonicMs() - readSinceMs >= firstSnapshotMs)
        const fromMs = isFirst ? startedMs + firstSnapshotMs : publishedAtMs + gapMs
        const isSettling = this.#files.isSettling()
        const holdMs = isSettling ? fromMs - clock.monotonicMs() : 0
        if (holdMs <= 0) {
          const problems = this.#problems()
          const state = JSON.stringify([problems, this.#isReady()])
          if (this.#files.takeChange() || state !== published) {
            published = state
            publishedAtMs = clock.monotonicMs()
            gapMs = isSettling ? Math.min(gapMs * 2, longestSnapshotGapMs) : snapshotGapMs
            onSnapshot(this.#snapshot(problems))
            if (this.#isComplete) this.#saver.save(this.#files.documents().all, this.#mountPoint)
          }
        }
        await this.#waitForWork(holdMs, signal)
      }
    } finally {
      signal.removeEventListener('abort', onAbort)
      unfollow?.()
      await this.#watch?.close()
      await Promise.all([...this.#below.values()].map((watch) => watch.close()))
      await this.#saver.flush()
      await this.#options.verifier?.flush()
    }
  }

  report(): SourceReport {
    const { message } = this.#directoryProblem ?? {}
    const { unverified } = this.#files
    const refused =
      unverified === undefined ? undefined : { message: unverified, sinceMs: this.#unverifiedSinceMs }
    const isPolled = this.#watchProblem !== undefined || this.#facts.isOnNetwork
    return {
      mode: isPolled ? 'poll' : 'watch',
      hash: this.#isRead ? this.#files.hash() : undefined,
      answeredAtMs: this.#readAtMs,
      failure: message === undefined ? refused : { message, sinceMs: this.#failingSinceMs },
    }
  }

  #snapshot(problems: readonly Problem[]): SourceSnapshot {
    const { pods, objects } = this.#files.documents()
    return {
      source: this.#options.name,
      location: this.#directory,
      ready: this.#isReady(),
      isAnswer: this.#isComplete,
      ...(this.#lacksSecrets && !this.#isComplete && { lacksSecrets: true }),
      pods,
      objects,
      problems,
    }
  }

  #isReady(): boolean {
    return this.#isComplete || this.#hadLastGood
  }

  #problems(): readonly Problem[] {
    return [
      this.#directoryProblem,
      this.#watchProblem,
      ...this.#facts.problems(),
      this.#saver.problem(),
      ...joinIdleWarnings(this.#files.problems()),
    ].filter((problem) => problem !== undefined)
  }

  async #look(): Promise<void> {
    if (!this.#isListingDue && this.#directoryProblem === undefined) {
      await this.#files.lookAtHinted()
      return
    }
    this.#isListingDue = false
    void this.#saver.keep()
    try {
      const identity = await identify(this.#directory)
      const { isStrict, recursive = false } = this.#options
      const { names: listed, ...found } = await listDirectory(this.#directory, identity, recursive)
      const passedOver = found.passedOver.filter((name) => this.#signedBy(name) === undefined)
      const { writable } = found
      if (writable !== undefined && isStrict === true) {
        this.#noteDirectoryProblem(refusedProblem(writable.path, writable.writers, this.#files.countPods()))
        return
      }
      const before = this.#identity
      const isOtherDisk = before === undefined ? await this.#isElsewhere() : before.device !== identity.device
      if (listed.length === 0 && isOtherDisk) {
        this.#noteDirectoryProblem(unmountedProblem(this.#directory, this.#files.countPods()))
        return
      }
      const wasAway =
        this.#directoryProblem !== undefined || (before !== undefined && before.id !== identity.id)
      if (wasAway) this.#files.delayRemovals(refillMs)
      await this.#facts.note(identity, { ...found, passedOver })
      if (before?.device !== identity.device)
        this.#mountPoint = await findMountPoint(this.#directory, this.#options.readMounts)
      // The watched directory is hidden below a mount, or was removed with a directory above it.
      if (before !== undefined && before.id !== identity.id) await this.#restartWatch()
      this.#identity = identity
      await this.#files.lookAtAll(listed)
      // From now on the target is watched, too.
      if (this.#files.seen.takeArrived()) await this.#restartWatch()
      this.#isRead = true
      this.#readAtMs = this.#options.clock.wallMs()
      this.#noteDirectoryProblem(undefined)
      if (this.#saver.problem() !== undefined) this.#saver.save(this.#files.documents().all, this.#mountPoint)
    } catch (error) {
      this.#noteDirectoryProblem(directoryProblem(this.#directory, error, this.#files.countPods()))
    }
  }

  /** Its last good copy was read from a disk that is no longer mounted there. */
  async #isElsewhere(): Promise<boolean> {
    return (
      this.#keptMountPoint !== undefined &&
      (await findMountPoint(this.#directory, this.#options.readMounts)) !== this.#keptMountPoint
    )
  }

  /** A missing file counts only while its directory exists and the file has not returned. */
  async #confirmRemovals(): Promise<void> {
    // The listing reports why it can't be looked at.
    const found = await identify(this.#directory).catch(() => undefined)
    if (found === undefined || found.id !== this.#identity?.id || found.isFile) this.#isListingDue = true
    else await this.#files.lookAtMissing()
  }

  #noteDirectoryProblem(problem: Problem | undefined): void {
    const { logger } = this.#options
    if (problem !== undefined) this.#files.forgetMissing()
    const before = this.#directoryProblem?.message
    if (before === undefined) this.#failingSinceMs = this.#options.clock.wallMs()
    this.#directoryProblem = problem
    if (before === problem?.message) return
    if (problem === undefined)
      logger.info({ path: this.#directory }, 'the manifest directory is readable again')
    else
      logger.error({ path: this.#directory, reason: problem.message }, 'cannot read the manifest directory')
  }

  #startWatch(): void {
    const { watch = watchDirectory, recursive = false } = this.#options
    const onHint = (hint: DirectoryHint): void => this.#onHint(hint)
    const onFailure = (error: unknown): void => this.#noteWatchFailure(error)
    try {
      this.#watch = watch(this.#directory, { onHint, onFailure }, { recursive, looksAt: isManifestName })
    } catch (error) {
      this.#watch = undefined
      onFailure(error)
    }
  }

  #noteWatchFailure(error: unknown): void {
    this.#watchProblem = watchProblem(this.#directory, error, this.#unhealthyRescanMs())
    const facts = { path: this.#directory, err: error }
    this.#options.logger.error(facts, 'cannot watch the manifest directory')
    this.#wake.wake()
  }

  /** Watches the directories that kustomizations refer to, where the source doesn't read these itself. */
  #watchReferred(): void {
    const { watch = watchDirectory, recursive = false } = this.#options
    const wanted = recursive ? new Set<string>() : this.#files.referred.directories()
    for (const [path, watching] of this.#below)
      if (!wanted.has(path)) {
        this.#below.delete(path)
        void watching.close()
      }
    for (const path of wanted) {
      if (this.#below.has(path)) continue
      const onHint = (hint: DirectoryHint): void =>
        this.#onHint(hint.kind === 'directory' ? hint : { ...hint, name: join(path, hint.name) })
      const onFailure = (error: unknown): void => this.#noteWatchFailure(error)
      try {
        this.#below.set(
          path,
          watch(join(this.#directory, path), { onHint, onFailure }, { looksAt: () => false }),
        )
      } catch (error) {
        onFailure(error)
      }
    }
  }

  /** Watches the directory that the path currently refers to. */
  async #restartWatch(): Promise<void> {
    await this.#watch?.close()
    this.#startWatch()
  }

  #onHint(hint: DirectoryHint): void {
    const signed = hint.kind === 'directory' ? undefined : this.#signedBy(hint.name)
    const referring = hint.kind === 'directory' ? [] : this.#files.referred.referringTo(hint.name)
    for (const kustomization of referring) this.#files.hint(kustomization, 'written')
    if (referring.length > 0 && hint.kind !== 'renamed') this.#wake.wake()
    else if (hint.kind !== 'directory' && isManifestPath(hint.name)) this.#files.hint(hint.name, hint.kind)
    else if (signed !== undefined) this.#files.hint(signed, 'renamed')
    else if (hint.kind === 'written') return
    else {
      this.#files.noteMove()
      // Of temporary files there are many, and a list of all manifests costs the more, the more there are.
      this.#isListingDue ||=
        hint.kind === 'directory' ||
        this.#options.recursive === true ||
        this.#files.mayBeReachedThroughLinks()
    }
    this.#wake.wake()
  }

  /** The manifest that a file is the signature of; undefined where it is none, or where none is needed. */
  #signedBy(name: string): string | undefined {
    if (this.#options.verifier === undefined || !name.endsWith(signatureSuffix)) return undefined
    const manifest = name.slice(0, -signatureSuffix.length)
    return isManifestPath(manifest) ? manifest : undefined
  }

  #unhealthyRescanMs(): number {
    return this.#options.unhealthyRescanMs ?? defaultUnhealthyRescanMs
  }

  /** Waits for an event, or until delayed work is due, such as a snapshot in `holdMs` if that is above 0. */
  async #waitForWork(holdMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return
    const isHealthy =
      this.#directoryProblem === undefined &&
      this.#watchProblem === undefined &&
      !this.#facts.isOnNetwork &&
      // Nothing tells of a link's target that isn't there yet.
      !this.#files.seen.hasDangling &&
      !this.#files.hasUnverified
    const { clock, rescanMs = defaultRescanMs } = this.#options
    const rescanInMs = isHealthy ? rescanMs : this.#unhealthyRescanMs()
    const dueInMs = this.#files.nextWaitMs() ?? rescanInMs
    const waitMs = Math.min(dueInMs, rescanInMs, holdMs > 0 ? holdMs : Infinity)
    const timer = clock.startTimer(waitMs, () => {
      if (waitMs >= rescanInMs) this.#isListingDue = true
      this.#wake.wake()
    })
    await this.#wake.wait()
    timer.cancel()
  }
}

/** A directory that others than root can write. */
export interface WritableDirectory {
  readonly path: string
  readonly writers: string
}

export interface DirectoryListing {
  /** See listManifests; an empty name where the path is a single file. */
  readonly names: readonly string[]
  /** Files that aren't read because of their names. */
  readonly passedOver: readonly string[]
  /** The same, with names that aren't UTF-8. */
  readonly unreadableNames: readonly string[]
  /** The first one, of the directory and the subdirectories that are read. */
  readonly writable: WritableDirectory | undefined
}

/** Lists a directory. Throws what the system throws. */
async function listDirectory(
  directory: string,
  { isFile, otherWriters }: DirectoryIdentity,
  recursive: boolean,
): Promise<DirectoryListing> {
  if (isFile) return { names: [''], passedOver: [], unreadableNames: [], writable: undefined }
  const subdirectories: string[] = []
  const passedOver: string[] = []
  const unreadableNames: string[] = []
  const names = await listManifests(directory, recursive, {
    onDirectory: (name) => void subdirectories.push(name),
    onPassedOver: (name) => void passedOver.push(name),
    onUnreadableName: (name) => void unreadableNames.push(name),
  })
  const writable =
    otherWriters === undefined
      ? await findWritable(subdirectories.toSorted().map((name) => join(directory, name)))
      : { path: directory, writers: otherWriters }
  return { names, passedOver, unreadableNames, writable }
}

async function findWritable(paths: readonly string[]): Promise<WritableDirectory | undefined> {
  for (const path of paths) {
    // One that is gone holds nothing.
    const stats = await stat(path, { bigint: true }).catch(() => undefined)
    const writers = stats === undefined ? undefined : describeOtherWriters(stats)
    if (writers !== undefined) return { path, writers }
  }
  return undefined
}

/** The facts about the manifest directory that are worth a warning. */
class DirectoryFacts {
  readonly #directory: string
  readonly #pollMs: number
  readonly #findNetwork: (path: string) => Promise<string | undefined>
  #seen: string | undefined
  #network: Problem | undefined
  #writers: Problem | undefined
  #names: readonly Problem[] = []

  /** @param pollMs the interval of reads where changes aren't reported */
  constructor(directory: string, pollMs: number, findNetwork = findNetworkFileSystem) {
    this.#directory = directory
    this.#pollMs = pollMs
    this.#findNetwork = findNetwork
  }

  /** Its file system reports no changes by other hosts. */
  get isOnNetwork(): boolean {
    return this.#network !== undefined
  }

  problems(): readonly Problem[] {
    return [this.#network, this.#writers, ...this.#names].filter((problem) => problem !== undefined)
  }

  async note(
    { id }: DirectoryIdentity,
    { writable, passedOver, unreadableNames }: Omit<DirectoryListing, 'names'>,
  ): Promise<void> {
    const directory = this.#directory
    this.#writers = writable && directoryWritersProblem(writable.path, writable.writers)
    this.#names = [
      ...unreadableNames.toSorted().map((name) => unreadableNameProblem(join(directory, name))),
      ...(passedOver.length === 0 ? [] : [passedOverProblem(directory, passedOver)]),
    ]
    if (this.#seen === id) return
    this.#seen = id
    const fileSystem = await this.#findNetwork(directory)
    this.#network = fileSystem === undefined ? undefined : networkProblem(directory, fileSystem, this.#pollMs)
  }
}

/** Where the file system of a directory is mounted; undefined for the root's. Its device number may change with each boot. */
async function findMountPoint(
  directory: string,
  listMounts: () => readonly MountEntry[] = readMounts,
): Promise<string | undefined> {
  const mountPoint = mountPointOf(await realpath(directory), listMounts())
  return mountPoint === '/' ? undefined : mountPoint
}
