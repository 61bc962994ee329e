import type { ArchiveReport } from '../../api/images.ts'
import { errorMessage } from '../../base/errors.ts'
import { WakeSlot } from '../../base/waits.ts'
import { findAwaitedArchive, planImageArchives } from '../../decide/node/plan-image-archives.ts'
import type { ArchiveFile, ArchivePlan } from '../../decide/node/plan-image-archives.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import { createStateReport } from '../../store/state-report.ts'
import { ArchiveFiles } from './archive-files.ts'
import { ArchiveImages, timesOf } from './archive-images.ts'
import { ArchivePins } from './archive-pins.ts'
import { ArchiveRecords } from './archive-records.ts'
import { toArchiveReport } from './archive-report.ts'
import type { ImageArchivesOptions } from './image-archives-host.ts'
import { PresentImages } from './present-images.ts'

/** The directory is read again this often: a watch may fail. */
const rescanMs = 60_000
/** The interval while the runtime is unavailable. */
const runtimeRetryMs = 1000
/**
 * Follows the directory of image archives: imports what is in it, pulls what its lists name, pins both, and unpins
 * those of removed files. Imports one archive at a time, with lists in parallel.
 */
export class ImageArchives {
  readonly #options: ImageArchivesOptions
  readonly #records: ArchiveRecords
  readonly #files: ArchiveFiles
  readonly #pins: ArchivePins
  readonly #present: PresentImages
  readonly #images: ArchiveImages
  readonly #slot = new WakeSlot()
  /** Complete names of images that pods wait for. */
  readonly #wanted = new Set<string>()
  #plan: ArchivePlan | undefined
  #pulling: Promise<void> | undefined
  /** The failures that were logged, by path. */
  #told: ReadonlyMap<string, string> = new Map()

  constructor(options: ImageArchivesOptions) {
    this.#options = options
    this.#files = new ArchiveFiles(options.clock, options.host.list)
    this.#records = new ArchiveRecords(
      options.stateFile,
      createStateReport(options.events, options.logger),
      options.logger,
    )
    const { clock, host, logger } = options
    this.#pins = new ArchivePins({ host, records: this.#records, logger })
    this.#present = new PresentImages({ list: host.presentImages, clock, logger })
    this.#images = new ArchiveImages({
      ...options,
      files: this.#files,
      records: this.#records,
      pins: this.#pins,
      present: this.#present,
      onRecorded: (images) => {
        for (const image of images) this.#wanted.delete(image)
      },
    })
  }

  /** The message about the archive that a missing image waits for; undefined where none has it. */
  awaited(image: string): string | undefined {
    const { directory, unsupported } = this.#options.host
    if (unsupported !== undefined) return undefined
    if (this.#plan === undefined)
      return this.#files.unreadable === undefined
        ? `waiting for the image archives in ${directory} to be read`
        : undefined
    const name = normalizeImageName(image)
    const found = findAwaitedArchive(name, this.#archives, this.#plan.stages)
    if (found === undefined) return undefined
    if (!this.#wanted.has(name)) {
      this.#wanted.add(name)
      this.#slot.wake()
    }
    const path = `${directory}/${found.name}`
    return found.isKnown
      ? `waiting for ${path} to be imported, which has image "${image}"`
      : `waiting for ${path} to be read, which may have image "${image}"`
  }

  reports(): readonly ArchiveReport[] {
    const { directory } = this.#options.host
    return this.#archives.flatMap((file) => {
      const stage = this.#plan?.stages.get(file.name)
      return stage === undefined ? [] : [toArchiveReport(directory, file, stage)]
    })
  }

  problems(): readonly Problem[] {
    const { directory } = this.#options.host
    const unreadable: readonly Problem[] =
      this.#files.unreadable === undefined
        ? []
        : [{ severity: 'error', place: { path: directory }, message: this.#files.unreadable }]
    const failed = this.reports().flatMap(({ path, state, message }): readonly Problem[] =>
      state === 'failed' ? [{ severity: 'error', place: { path }, message: message ?? '' }] : [],
    )
    return [...unreadable, ...failed]
  }

  /** The runtime may have lost images: what is missing is imported again. */
  recheck(): void {
    this.#present.forget()
    this.#slot.wake()
  }

  /** These images were imported or pulled in another way: pods that wait for them may go on. Never rejects. */
  async announce(images: readonly string[], how: 'imported' | 'pulled', signal: AbortSignal): Promise<void> {
    const names = images.map((image) => normalizeImageName(image))
    // A pod that doesn't find its image yet tries again, with backoff.
    await this.#present.untilListed(names, signal).catch(() => undefined)
    if (how === 'imported') await this.#options.onImported(names)
    this.#options.onImages(names)
  }

  /** A user has pinned or unpinned these images: those that are pinned stay so when their archive is gone. Never rejects. */
  async noteUserPins(images: readonly string[], pinned: boolean): Promise<void> {
    const names = images.map((image) => normalizeImageName(image))
    await this.#pins.noteUser(names, pinned)
  }

  /** Follows the directory until the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, host, logger } = this.#options
    await this.#records.load()
    await host
      .prepare()
      .catch((error: unknown) =>
        logger.warn({ err: error, path: host.directory }, 'cannot make the directory of image archives'),
      )
    const watch = host.watch((hint) => {
      this.#files.note(hint)
      this.#slot.wake()
    })
    signal.addEventListener('abort', () => this.#slot.wake(), { once: true })
    while (!signal.aborted) {
      const waitMs = await this.#settle(signal)
      if (signal.aborted) break
      const timer = clock.startTimer(waitMs, () => this.#slot.wake())
      await this.#slot.wait()
      timer.cancel()
    }
    await Promise.all([watch.close(), this.#pulling])
  }

  /** Does the due work; returns how long to wait before the next look. */
  async #settle(signal: AbortSignal): Promise<number> {
    for (;;) {
      await this.#files.look(this.#records.device)
      if (this.#files.unreadable === undefined) await this.#records.setDevice(this.#files.device)
      if (this.#hasWork) await this.#present.refresh(signal)
      const plan = this.#replan()
      if (signal.aborted) return 0
      if (await this.#act(plan, signal)) continue
      const waits = [rescanMs, plan.wakeMs ?? rescanMs]
      if (this.#present.known === undefined && this.#hasWork) waits.push(runtimeRetryMs)
      return Math.max(1, Math.min(...waits))
    }
  }

  /** The next step of a plan; whether there was one. */
  async #act(plan: ArchivePlan, signal: AbortSignal): Promise<boolean> {
    for (const [name, stage] of plan.stages) {
      const look = this.#files.get(name)?.look
      if (stage.kind !== 'imported' || !stage.isTouched || look === undefined) continue
      await this.#records.set(name, { ...stage.record, ...timesOf(look) })
      return true
    }
    const present = this.#present.known
    if (plan.forget.length > 0 && present !== undefined) {
      await this.#pins.unpin(plan.unpin, present)
      await this.#records.remove(plan.forget)
      return true
    }
    const [unread] = plan.read
    if (unread !== undefined) {
      await this.#read(unread)
      return true
    }
    if (plan.lists.length > 0 && plan.imports.length === 0 && this.#pulling === undefined)
      this.#pulling = this.#images.pullLists(plan.lists, signal).finally(() => {
        this.#pulling = undefined
        this.#slot.wake()
      })
    const [due] = plan.imports
    if (due === undefined) return false
    await this.#images.import(due, signal)
    return true
  }

  get #hasWork(): boolean {
    return !this.#files.isEmpty || this.#records.all.size > 0
  }

  get #archives(): readonly ArchiveFile[] {
    return this.#files.all(this.#options.host.unsupported)
  }

  #replan(): ArchivePlan {
    const files = this.#archives
    const facts = { files, imported: this.#records.all, present: this.#present.known }
    const plan = planImageArchives(facts, this.#wanted)
    // A directory that can't be read says nothing about what is gone.
    this.#plan = this.#files.unreadable === undefined ? plan : { ...plan, forget: [], unpin: [] }
    this.#tellFailures()
    return this.#plan
  }

  async #read(name: string): Promise<void> {
    const seen = this.#files.get(name)
    if (seen === undefined) return
    try {
      this.#files.setContent(seen, await this.#options.host.read(name))
    } catch (error) {
      this.#files.fail(seen, `it cannot be read: ${errorMessage(error)}`)
    }
  }

  /** Logs each failure once, and again when it recurs after a success. */
  #tellFailures(): void {
    const { events, logger } = this.#options
    const failed = new Map(
      this.reports().flatMap(({ path, state, message = '' }) =>
        state === 'failed' ? [[path, message] as const] : [],
      ),
    )
    for (const [path, message] of failed) {
      if (this.#told.get(path) === message) continue
      logger.warn({ path, reason: message }, 'cannot import images')
      events.recordNode({ type: 'Warning', reason: 'ImageImportFailed', message: `${path}: ${message}` })
    }
    this.#told = failed
  }
}
