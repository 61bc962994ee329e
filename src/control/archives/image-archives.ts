import type { ArchiveReport } from '../../api/image-archives.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { WakeSlot } from '../../base/wake-slot.ts'
import {
  findAwaitedArchive,
  planImageArchives,
  selectReplaced,
} from '../../decide/node/plan-image-archives.ts'
import type { ArchiveContent, ArchiveFile, ArchivePlan } from '../../decide/node/plan-image-archives.ts'
import type { ArchiveDirectory, ArchiveLook } from '../../images/archive-directory.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import type { SmallFile } from '../../store/small-file.ts'
import { createStateReport } from '../../store/state-report.ts'
import { ArchiveFiles } from './archive-files.ts'
import type { ArchiveHint, SeenFile } from './archive-files.ts'
import { ArchivePins } from './archive-pins.ts'
import type { ArchivePinsHost } from './archive-pins.ts'
import { ArchiveRecords } from './archive-records.ts'
import { toArchiveReport } from './archive-report.ts'
import { importOrDiscard } from './import-archive.ts'
import type { ArchiveImportHost } from './import-archive.ts'

/** The directory and the runtime. Whatever throws counts as failed for the time being. */
export interface ImageArchivesHost extends ArchivePinsHost, ArchiveImportHost {
  readonly directory: string
  /** Makes the directory where there is none. */
  readonly prepare: () => Promise<void>
  readonly list: () => Promise<ArchiveDirectory>
  readonly read: (name: string) => Promise<ArchiveContent>
  /** Tells of changes of files; a name that came by a rename is complete. */
  readonly watch: (onHint: (hint: ArchiveHint) => void) => { close(): Promise<void> }
  readonly pull: (image: string, signal: AbortSignal) => Promise<void>
  /** Complete names. */
  readonly presentImages: (signal: AbortSignal) => Promise<ReadonlySet<string>>
  /** On the disk that holds the images. */
  readonly availableBytes: () => Promise<number>
}

export interface ImageArchivesOptions {
  readonly host: ImageArchivesHost
  readonly stateFile: SmallFile
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
  /** Has on record that these images were imported, and not pulled. Never rejects. */
  readonly onImported: (names: readonly string[]) => Promise<void>
  /** These images are there now: pods that wait for them may go on. */
  readonly onImages: (names: readonly string[]) => void
}

/** Whether all images are still there is looked at this often, and when the runtime is back. */
const recheckMs = 300_000
/** The directory is read again this often: a watch may fail. */
const rescanMs = 60_000
/** While the runtime isn't there. */
const runtimeRetryMs = 1000
/** How long the runtime may take until it lists what was imported. */
const listedMs = 30_000
const listedPollMs = 50

/**
 * Follows the directory of image archives: imports what is in it, pulls what its lists name, pins both, and lets go of
 * what is no longer there. One archive at a time, lists beside them.
 */
export class ImageArchives {
  readonly #options: ImageArchivesOptions
  readonly #records: ArchiveRecords
  readonly #files: ArchiveFiles
  readonly #pins: ArchivePins
  readonly #slot = new WakeSlot()
  /** Complete names of images that pods wait for. */
  readonly #wanted = new Set<string>()
  #plan: ArchivePlan | undefined
  #present: ReadonlySet<string> | undefined
  #presentAtMs = 0
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
    this.#pins = new ArchivePins({ host: options.host, records: this.#records, logger: options.logger })
  }

  /** Which archive an image that is not there waits for, in words; undefined where none brings it. */
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
    this.#present = undefined
    this.#slot.wake()
  }

  /** These images were imported or pulled in another way: pods that wait for them may go on. Never rejects. */
  async announce(images: readonly string[], how: 'imported' | 'pulled', signal: AbortSignal): Promise<void> {
    const names = images.map((image) => normalizeImageName(image))
    await this.#untilListed(names, signal).catch(() => undefined)
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

  /** Does what can be done now; gives how long to wait before the next look. */
  async #settle(signal: AbortSignal): Promise<number> {
    for (;;) {
      await this.#files.look(this.#records.device)
      if (this.#files.unreadable === undefined) await this.#records.setDevice(this.#files.device)
      await this.#askPresent(signal)
      const plan = this.#replan()
      if (signal.aborted) return 0
      if (await this.#act(plan, signal)) continue
      const waits = [rescanMs, plan.wakeMs ?? rescanMs]
      if (this.#present === undefined && this.#hasWork) waits.push(runtimeRetryMs)
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
    if (plan.forget.length > 0 && this.#present !== undefined) {
      await this.#pins.unpin(plan.unpin, this.#present)
      await this.#records.remove(plan.forget)
      return true
    }
    const [unread] = plan.read
    if (unread !== undefined) {
      await this.#read(unread)
      return true
    }
    if (plan.lists.length > 0 && plan.imports.length === 0 && this.#pulling === undefined)
      this.#pulling = this.#pullLists(plan.lists, signal).finally(() => {
        this.#pulling = undefined
        this.#slot.wake()
      })
    const [due] = plan.imports
    if (due === undefined) return false
    await this.#import(due, signal)
    return true
  }

  get #hasWork(): boolean {
    return !this.#files.isEmpty || this.#records.all.size > 0
  }

  async #askPresent(signal: AbortSignal): Promise<void> {
    const { clock, host, logger } = this.#options
    const isOld = clock.monotonicMs() - this.#presentAtMs >= recheckMs
    if (!this.#hasWork || (this.#present !== undefined && !isOld)) return
    try {
      this.#present = await host.presentImages(signal)
      this.#presentAtMs = clock.monotonicMs()
    } catch (error) {
      this.#present = undefined
      logger.debug({ err: error }, 'image archives wait for the container runtime')
    }
  }

  get #archives(): readonly ArchiveFile[] {
    return this.#files.all(this.#options.host.unsupported)
  }

  #replan(): ArchivePlan {
    const files = this.#archives
    const facts = { files, imported: this.#records.all, present: this.#present }
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

  async #import(name: string, signal: AbortSignal): Promise<void> {
    const { events, host, logger } = this.#options
    const seen = this.#files.get(name)
    const content = seen?.content
    if (seen === undefined || content?.kind !== 'archive') return
    let before: ReadonlySet<string>
    try {
      before = await host.presentImages(signal)
    } catch (error) {
      this.#present = undefined
      logger.debug({ err: error }, 'image archives wait for the container runtime')
      return
    }
    try {
      const pinned = await this.#pins.list()
      const archive = { name, images: content.images, before }
      const names = await importOrDiscard(archive, { host, logger }, signal)
      const images = names.map((image) => normalizeImageName(image))
      for (const image of names) await this.#pins.pin(image, pinned)
      await this.#untilListed(images, signal)
      await this.#options.onImported(images)
      await this.#record(name, seen, { digest: content.digest, images, pinned })
      logger.info({ path: `${host.directory}/${name}`, image: images.join(' ') }, 'imported an image archive')
      const message = `Imported ${images.join(', ')} from ${host.directory}/${name}`
      events.recordNode({ type: 'Normal', reason: 'ImagesImported', message })
      this.#options.onImages(images)
    } catch (error) {
      if (signal.aborted) return
      this.#files.fail(seen, `${errorMessage(error)}${await this.#describeRoom(seen)}`)
    }
  }

  async #record(
    name: string,
    seen: SeenFile,
    {
      digest,
      images,
      pinned,
    }: {
      readonly digest: string
      readonly images: readonly string[]
      readonly pinned: ReadonlySet<string>
    },
  ): Promise<void> {
    await this.#pins.unpin(selectReplaced(name, images, this.#records.all), this.#present)
    const kept = this.#pins.kept(images, pinned)
    const record = { ...timesOf(seen.look), digest, images }
    await this.#records.set(name, kept.length === 0 ? record : { ...record, kept })
    for (const image of images) this.#wanted.delete(image)
    this.#files.succeed(seen)
  }

  /** Resolves when the runtime lists images that were imported, or after a while. */
  async #untilListed(images: readonly string[], signal: AbortSignal): Promise<void> {
    const { clock, host } = this.#options
    const giveUpAtMs = clock.monotonicMs() + listedMs
    do {
      const present = await host.presentImages(signal)
      this.#present = present
      if (images.every((image) => present.has(image))) return
      await clock.sleep(listedPollMs, signal)
    } while (clock.monotonicMs() < giveUpAtMs)
  }

  /** Never rejects. */
  async #pullLists(names: readonly string[], signal: AbortSignal): Promise<void> {
    for (const name of names) {
      const seen = this.#files.get(name)
      const content = seen?.content
      if (seen === undefined || content?.kind !== 'archive') continue
      const failures: string[] = []
      const pinned = await this.#pins.list().catch((error: unknown) => {
        failures.push(`cannot tell which images are pinned: ${errorMessage(error)}`)
        return undefined
      })
      for (const image of content.images) {
        if (pinned === undefined) break
        await this.#pullListed(image, pinned, signal).catch((error: unknown) => {
          failures.push(`cannot pull ${image}: ${errorMessage(error)}`)
        })
      }
      if (signal.aborted) return
      if (failures.length === 0 && pinned !== undefined)
        await this.#record(name, seen, { ...content, pinned })
      else this.#files.fail(seen, failures.join('; '))
    }
  }

  async #pullListed(image: string, pinned: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { host, onImages } = this.#options
    signal.throwIfAborted()
    if (!(await host.presentImages(signal)).has(image)) {
      await host.pull(image, signal)
      await this.#untilListed([image], signal)
      onImages([image])
    }
    await this.#pins.pin(image, pinned)
  }

  /** Each failure once, and again when it comes back after a success. */
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

  /** What an import that failed may have lacked. */
  async #describeRoom({ look: { sizeBytes } }: SeenFile): Promise<string> {
    const availableBytes = await this.#options.host.availableBytes().catch(() => undefined)
    if (availableBytes === undefined || availableBytes >= sizeBytes) return ''
    return `; the disk that holds the images has ${availableBytes} bytes available, and the archive has ${sizeBytes}`
  }
}

function timesOf({ sizeBytes, modifiedAtMs }: ArchiveLook) {
  return { sizeBytes, modifiedAtMs }
}
