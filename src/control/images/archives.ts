import type { ArchiveReport } from '../../api/images.ts'
import { pollUntil } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { WakeSlot } from '../../base/waits.ts'
import {
  findAwaitedArchive,
  planImageArchives,
  selectReplaced,
} from '../../decide/node/plan-image-archives.ts'
import type {
  ArchiveContent,
  ArchiveFile,
  ArchivePlan,
  ArchiveStage,
} from '../../decide/node/plan-image-archives.ts'
import type { ArchiveDirectory, ArchiveLook } from '../../images/archive-directory.ts'
import type { Problem } from '../../pod/objects/document.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import { createStateReport } from '../../store/state-report.ts'
import type { SmallFile } from '../../store/state-report.ts'
import { ArchiveFiles, ArchivePins, ArchiveRecords } from './archive-files.ts'
import type { ArchiveHint, ArchivePinsHost, SeenFile } from './archive-files.ts'

/** The directory is read again this often: a watch may fail. */
const rescanMs = 60_000
/** The interval while the runtime is unavailable. */
const runtimeRetryMs = 1000
/**
 * Follows the directory of image archives: imports what is in it, pulls what its lists name, pins both, and unpins
 * those of removed files. Imports one archive at a time, with lists in parallel.
 */
export class ImageArchives {
  readonly #env: ArchivesEnv
  readonly #records: ArchiveRecords
  readonly #files: ArchiveFiles
  readonly #pins: ArchivePins
  readonly #present: PresentImages
  readonly #slot = new WakeSlot()
  /** Complete names of images that pods wait for. */
  readonly #wanted = new Set<string>()
  #plan: ArchivePlan | undefined
  #pulling: Promise<void> | undefined
  /** The failures that were logged, by path. */
  #told: ReadonlyMap<string, string> = new Map()

  constructor(env: ArchivesEnv) {
    const { clock, host, stateFile, events, logger } = env
    this.#env = env
    this.#files = new ArchiveFiles(clock, host.list)
    this.#records = new ArchiveRecords(stateFile, createStateReport(events, logger), logger)
    this.#pins = new ArchivePins(host, this.#records, logger)
    this.#present = new PresentImages(host.presentImages, clock, logger)
  }

  /** The message about the archive that a missing image waits for; undefined where none has it. */
  awaited(image: string): string | undefined {
    const { directory, unsupported } = this.#env.host
    if (unsupported !== undefined) return undefined
    if (this.#plan === undefined)
      return this.#files.unreadable === undefined
        ? `waiting for the image archives in ${directory} to be read`
        : undefined
    const name = normalizeImageName(image)
    const found = findAwaitedArchive(name, this.#archives, this.#plan.stages)
    if (found === undefined) return undefined
    const path = `${directory}/${found.name}`
    return found.isKnown
      ? `waiting for ${path} to be imported, which has image "${image}"`
      : `waiting for ${path} to be read, which may have image "${image}"`
  }

  /** A pod waits for this image: the archive that has it is imported before others. */
  prefer(image: string): void {
    const name = normalizeImageName(image)
    if (this.#wanted.has(name)) return
    this.#wanted.add(name)
    this.#slot.wake()
  }

  reports(): readonly ArchiveReport[] {
    const { directory } = this.#env.host
    return this.#archives.flatMap((file) => {
      const stage = this.#plan?.stages.get(file.name)
      return stage === undefined ? [] : [toArchiveReport(directory, file, stage)]
    })
  }

  problems(): readonly Problem[] {
    const { directory } = this.#env.host
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
    if (how === 'imported') await this.#env.onImported(names)
    this.#env.onImages(names)
  }

  /** A user has pinned or unpinned these images: those that are pinned stay so when their archive is gone. Never rejects. */
  async noteUserPins(images: readonly string[], pinned: boolean): Promise<void> {
    const names = images.map((image) => normalizeImageName(image))
    await this.#pins.noteUser(names, pinned)
  }

  /** Follows the directory until the signal is aborted. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, host, logger } = this.#env
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

  get #archives(): readonly ArchiveFile[] {
    return this.#files.all(this.#env.host.unsupported)
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
      this.#files.setContent(seen, await this.#env.host.read(name))
    } catch (error) {
      this.#files.fail(seen, `it cannot be read: ${errorMessage(error)}`)
    }
  }

  /** Logs each failure once, and again when it recurs after a success. */
  #tellFailures(): void {
    const { events, logger } = this.#env
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

  /** Imports an archive and records it. A failure is kept with the file. Never rejects because of one. */
  async #import(name: string, signal: AbortSignal): Promise<void> {
    const { events, host, logger } = this.#env
    const seen = this.#files.get(name)
    const content = seen?.content
    if (seen === undefined || content?.kind !== 'archive') return
    const before = await this.#present.ask(signal)
    if (before === undefined) return
    try {
      const pinned = await this.#pins.list()
      const names = await this.#importOrDiscard(name, content.images, before, signal)
      const images = names.map((image) => normalizeImageName(image))
      for (const image of names) await this.#pins.pin(image, pinned)
      await this.#present.untilListed(images, signal)
      await this.#env.onImported(images)
      await this.#record(name, seen, { digest: content.digest, images }, pinned)
      logger.info({ path: `${host.directory}/${name}`, image: images.join(' ') }, 'imported an image archive')
      const message = `Imported ${images.join(', ')} from ${host.directory}/${name}`
      events.recordNode({ type: 'Normal', reason: 'ImagesImported', message })
      this.#env.onImages(images)
    } catch (error) {
      if (signal.aborted) return
      this.#files.fail(seen, `${errorMessage(error)}${await this.#describeRoom(seen)}`)
    }
  }

  /**
   * Imports an archive. Where that fails, the names that it left behind are removed: a partially imported image would
   * count as present. Throws the import's error.
   * @param images which it holds
   * @param before which were there right before; these are kept
   */
  async #importOrDiscard(
    name: string,
    images: readonly string[],
    before: ReadonlySet<string>,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    const { host, logger } = this.#env
    try {
      return await host.importArchive(name, signal)
    } catch (error) {
      for (const image of images) {
        if (signal.aborted) break
        if (before.has(image)) continue
        try {
          if (!(await host.isUsed(image, signal))) await host.discard(image)
        } catch (problem) {
          logger.debug({ image, err: problem }, 'cannot discard what an import that failed has left')
        }
      }
      throw error
    }
  }

  async #record(
    name: string,
    seen: SeenFile,
    content: { readonly digest: string; readonly images: readonly string[] },
    pinned: ReadonlySet<string>,
  ): Promise<void> {
    const { digest, images } = content
    await this.#pins.unpin(selectReplaced(name, images, this.#records.all), this.#present.known)
    const kept = this.#pins.kept(images, pinned)
    const record = { ...timesOf(seen.look), digest, images }
    await this.#records.set(name, kept.length === 0 ? record : { ...record, kept })
    for (const image of images) this.#wanted.delete(image)
    this.#files.succeed(seen)
  }

  /** Pulls what lists of images name, one image at a time. Never rejects. */
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
      if (failures.length === 0 && pinned !== undefined) await this.#record(name, seen, content, pinned)
      else this.#files.fail(seen, failures.join('; '))
    }
  }

  async #pullListed(image: string, pinned: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const { host, onImages } = this.#env
    signal.throwIfAborted()
    if (!(await host.presentImages(signal)).has(image)) {
      await host.pull(image, signal)
      await this.#present.untilListed([image], signal)
      onImages([image])
    }
    await this.#pins.pin(image, pinned)
  }

  /** The disk space that a failed import may have lacked. */
  async #describeRoom({ look: { sizeBytes } }: SeenFile): Promise<string> {
    // The failure of the import is reported without the figure.
    const availableBytes = await this.#env.host.availableBytes().catch(() => undefined)
    if (availableBytes === undefined || availableBytes >= sizeBytes) return ''
    return `; the disk that holds the images has ${availableBytes} bytes available, and the archive has ${sizeBytes}`
  }
}

/** The identity of a file's version. */
function timesOf({ sizeBytes, modifiedAtMs }: ArchiveLook) {
  return { sizeBytes, modifiedAtMs }
}

/** The directory and the runtime. Errors count as temporary. */
export interface ImageArchivesHost extends ArchivePinsHost {
  readonly directory: string
  readonly prepare: () => Promise<void>
  readonly list: () => Promise<ArchiveDirectory>
  readonly read: (name: string) => Promise<ArchiveContent>
  /** Tells of changes of files; a name that came by a rename is complete. */
  readonly watch: (onHint: (hint: ArchiveHint) => void) => { close(): Promise<void> }
  /** Returns the imported names. */
  readonly importArchive: (name: string, signal: AbortSignal) => Promise<readonly string[]>
  /** Removes a name that a failed import has left behind. */
  readonly discard: (image: string) => Promise<void>
  /** Whether a container has this image, or a pull has or may have brought it. */
  readonly isUsed: (image: string, signal: AbortSignal) => Promise<boolean>
  readonly pull: (image: string, signal: AbortSignal) => Promise<void>
  /** Complete names. */
  readonly presentImages: (signal: AbortSignal) => Promise<ReadonlySet<string>>
  /** On the disk that holds the images. */
  readonly availableBytes: () => Promise<number>
}

/** What archives are followed with, and who hears of images. */
interface ArchivesEnv {
  readonly host: ImageArchivesHost
  readonly stateFile: SmallFile
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
  /** Records that these images were imported, and not pulled. Never rejects. */
  readonly onImported: (names: readonly string[]) => Promise<void>
  /** Called for images that are now present: pods waiting for them may continue. */
  readonly onImages: (names: readonly string[]) => void
}

/** The interval of lists; the runtime is also listed when it is available again. */
const recheckMs = 300_000
/** How long the runtime may take until it lists what was imported. */
const listedMs = 30_000
const listedPollMs = 50

/** The runtime's images, as last listed. */
class PresentImages {
  readonly #list: ImageArchivesHost['presentImages']
  readonly #clock: Clock
  readonly #logger: Logger
  #known: ReadonlySet<string> | undefined
  #askedAtMs = 0

  /** @param list asks the runtime: complete names */
  constructor(list: ImageArchivesHost['presentImages'], clock: Clock, logger: Logger) {
    this.#list = list
    this.#clock = clock
    this.#logger = logger
  }

  /** Complete names; undefined where the runtime doesn't answer, and before it was asked. */
  get known(): ReadonlySet<string> | undefined {
    return this.#known
  }

  forget(): void {
    this.#known = undefined
  }

  /** Asks where nothing is known, or it is old. Never rejects. */
  async refresh(signal: AbortSignal): Promise<void> {
    const isOld = this.#clock.monotonicMs() - this.#askedAtMs >= recheckMs
    if (this.#known === undefined || isOld) await this.ask(signal)
  }

  /** Lists the current images; undefined where the runtime doesn't answer. Never rejects. */
  async ask(signal: AbortSignal): Promise<ReadonlySet<string> | undefined> {
    try {
      this.#known = await this.#list(signal)
      this.#askedAtMs = this.#clock.monotonicMs()
    } catch (error) {
      this.#known = undefined
      this.#logger.debug({ err: error }, 'image archives wait for the container runtime')
    }
    return this.#known
  }

  /** Resolves when the runtime lists all of these, or after a while. Rejects where it doesn't answer. */
  async untilListed(images: readonly string[], signal: AbortSignal): Promise<void> {
    const areListed = async (): Promise<boolean> => {
      const present = await this.#list(signal)
      this.#known = present
      return images.every((image) => present.has(image))
    }
    await pollUntil(this.#clock, areListed, { periodMs: listedPollMs, timeoutMs: listedMs, signal })
  }
}

function toArchiveReport(
  directory: string,
  { name, isList, content, failure }: Pick<ArchiveFile, 'name' | 'isList' | 'content' | 'failure'>,
  stage: ArchiveStage,
): ArchiveReport {
  const known = content?.kind === 'archive' ? content.images : []
  const found = content?.kind === 'incomplete' ? `${content.message}; ` : ''
  const file = { path: `${directory}/${name}`, type: isList ? 'list' : 'archive' } as const
  switch (stage.kind) {
    case 'imported':
      return { ...file, state: 'imported', images: stage.record.images }
    case 'unchecked':
    case 'due':
      return {
        ...file,
        state: failure === undefined ? 'pending' : 'failed',
        images: stage.images,
        message: failure?.message ?? (isList ? 'to be pulled' : 'to be imported'),
      }
    case 'settling':
      return { ...file, state: 'pending', images: known, message: `${found}it may still be written` }
    case 'unread':
      return { ...file, state: 'pending', images: known, message: 'to be read' }
    case 'incomplete':
    case 'refused':
    case 'failed':
      return { ...file, state: 'failed', images: known, message: stage.message }
  }
}
