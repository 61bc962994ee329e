import { createHash } from 'node:crypto'
import { sleepUnlessAborted } from '../base/clock.ts'
import type { Clock, Timer } from '../base/clock.ts'
import { PoddError } from '../base/errors.ts'
import { sameData } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import { areRepeated, countCrashes, mayHold, selectHeld } from '../decide/sources/judge-trial.ts'
import type { HeldSet, TrialRecord } from '../decide/sources/judge-trial.ts'
import { errorAt, groupDocuments } from '../pod/objects/document.ts'
import type { SourceDocument, SourceSnapshot } from '../pod/objects/document.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import type { SourceName } from '../pod/values/ids.ts'
import type { LastGoodStore } from '../store/last-good.ts'
import { readTrialRecord, writeTrialRecord } from '../store/source-records.ts'
import type { SmallFile, StateReport } from '../store/state-report.ts'
import { answerDeadline } from './source.ts'
import type { Source } from './source.ts'

/** How long reading a fingerprint may take. */
const fingerprintMs = 10_000
/** The interval of checks for a change of a held source. */
const lookMs = 10_000

/** A source, and its fingerprint, which shows changes without decoding. */
export interface TriedSource {
  readonly name: SourceName
  /** The location as it may be shown. */
  readonly location: string
  readonly source: Source
  /** Undefined where the source can't be read. */
  fingerprint(signal: AbortSignal): Promise<string | undefined>
}

export interface SourceTrialsOptions {
  /** `<root-dir>/trial.json` */
  readonly file: SmallFile
  /** The store of the sets that worked. */
  readonly copies: LastGoodStore
  readonly sources: readonly TriedSource[]
  readonly bootId: string
  /** The crash reports that are kept, by their time in wall milliseconds. */
  readonly reports: readonly number[]
  readonly poddVersion: string
  /** How long podd has to run with a set until it counts as one that works; 0: no source is ever held. */
  readonly periodMs: number
  readonly events: NodeEventRecorder
  readonly report: StateReport
  readonly clock: Clock
  readonly logger: Logger
}

interface Current {
  readonly documents: readonly SourceDocument[]
  /** In the middle of its trial, or at the last check since. */
  fingerprint: string | undefined
}

/**
 * Detects that podd crashes repeatedly since a source changed, and then runs the last set of that source that worked,
 * until the source changes again or another version of podd starts. A set worked once podd has run with it for the
 * trial period.
 */
export class SourceTrials {
  readonly #options: SourceTrialsOptions
  readonly #current = new Map<SourceName, Current>()
  #record: TrialRecord
  #timer: Timer | undefined
  #looking: Promise<void> = Promise.resolve()
  #writing: Promise<void> = Promise.resolve()

  constructor(options: SourceTrialsOptions) {
    this.#options = options
    const { bootId, reports } = options
    this.#record = { bootId, running: true, crashes: 0, reports, worked: {}, held: {} }
  }

  /** Records this start, and decides which sources are replaced by their last set that worked. Never throws. */
  async begin(): Promise<void> {
    const { file, bootId, reports, periodMs, poddVersion: podd, report } = this.#options
    if (periodMs === 0) return
    const before = await readTrialRecord(file, report)
    const crashes = countCrashes(before, { bootId, reports })
    // A crash of the checks below must count.
    this.#record = { ...this.#record, crashes, worked: before?.worked ?? {}, held: before?.held ?? {} }
    await this.#write()
    if (before === undefined || !mayHold(before, crashes)) return
    const sources = await Promise.all(
      this.#options.sources.map(async (source) => {
        const { name, location } = source
        return { name, location, fingerprint: await this.#fingerprint(source) }
      }),
    )
    this.#record = { ...this.#record, held: selectHeld(before, { crashes, podd, sources }) }
    await this.#write()
  }

  /** Whether podd has crashed again and again. To be asked after `begin`. */
  get hasCrashedRepeatedly(): boolean {
    return areRepeated(this.#record.crashes)
  }

  /** Wraps a source: while it is on trial and held, it yields the last set that worked. */
  wrap({ name }: { readonly name: SourceName }): Source {
    const tried = this.#options.sources.find((source) => source.name === name)
    if (tried === undefined) throw new PoddError('INTERNAL', `there is no source ${name}`)
    return {
      run: async (onSnapshot, signal) => {
        const held = this.#record.held[name]
        if (held !== undefined) await this.#runHeld(tried, held, onSnapshot, signal)
        if (signal.aborted) return
        await tried.source.run((snapshot) => {
          this.#note(tried, snapshot)
          onSnapshot(snapshot)
        }, signal)
      },
    }
  }

  /** Records that podd ends without a crash. Never throws. */
  async noteEnd(): Promise<void> {
    if (this.#options.periodMs === 0) return
    this.#timer?.cancel()
    this.#record = { ...this.#record, running: false, crashes: 0 }
    await this.#write()
  }

  /** Runs until the source changes. */
  async #runHeld(
    tried: TriedSource,
    held: HeldSet,
    onSnapshot: (snapshot: SourceSnapshot) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { copies, events, logger, clock } = this.#options
    const { name, location } = tried
    const snapshot = await loadWorkedSet(copies, tried).catch((error: unknown) => {
      logger.error({ path: location, err: error }, 'cannot read the last set that worked')
    })
    if (snapshot === undefined) return
    const message = `podd crashed again and again after ${location} changed: it runs the last set that worked, until ${location} changes again or podd is upgraded`
    logger.error({ path: location }, 'podd crashed again and again after this source changed')
    events.recordNode({ type: 'Warning', reason: 'SourceHeld', message })
    onSnapshot(snapshot)
    let fingerprint: string | undefined
    do {
      await sleepUnlessAborted(clock, lookMs, signal)
      if (signal.aborted) return
      fingerprint = await this.#fingerprint(tried)
    } while (fingerprint === undefined || fingerprint === held.fingerprint)
    logger.info({ path: location }, 'the source changed and is followed again')
    const followed = `${location} changed: podd follows it again`
    events.recordNode({ type: 'Normal', reason: 'SourceFollowed', message: followed })
    const { [name]: _, ...others } = this.#record.held
    this.#record = { ...this.#record, crashes: 0, held: others }
    await this.#write()
  }

  #note(tried: TriedSource, { ready, pods, objects }: SourceSnapshot): void {
    if (!ready || this.#options.periodMs === 0) return
    const documents = [...pods, ...objects]
    const before = this.#current.get(tried.name)?.documents
    if (before !== undefined && isSameSet(before, documents)) return
    this.#current.set(tried.name, { documents, fingerprint: undefined })
    this.#startTrial()
  }

  /** Reads fingerprints in the middle of the trial, and not with each change: that would look at all files of the source. */
  #startTrial(): void {
    this.#timer?.cancel()
    const halfMs = this.#options.periodMs / 2
    this.#timer = this.#options.clock.startTimer(halfMs, () => {
      this.#timer = this.#options.clock.startTimer(halfMs, () => void this.#endTrial())
      this.#looking = this.#lookAtNew()
    })
  }

  async #lookAtNew(): Promise<void> {
    for (const source of this.#options.sources) {
      const current = this.#current.get(source.name)
      if (current !== undefined) current.fingerprint ??= await this.#fingerprint(source)
    }
  }

  /** podd has run for the trial period with the sources' newest sets. */
  async #endTrial(): Promise<void> {
    const { sources, copies, logger } = this.#options
    await this.#looking
    const worked = { ...this.#record.worked }
    for (const source of sources) {
      const { name, location } = source
      const current = this.#current.get(name)
      if (current === undefined) continue
      const fingerprint = await this.#fingerprint(source)
      if (fingerprint === undefined) continue
      if (fingerprint !== current.fingerprint) {
        // The source was written meanwhile, without a change of its set so far.
        current.fingerprint = fingerprint
        this.#startTrial()
        continue
      }
      const before = worked[name]
      const digest = setSignature(current.documents)
      try {
        if (before?.location !== location || before.digest !== digest)
          await copies.save(name, location, current.documents)
        worked[name] = { location, fingerprint, digest }
      } catch (error) {
        logger.warn({ err: error, path: location }, 'cannot keep the set that works')
        this.#startTrial()
      }
    }
    const next = { ...this.#record, crashes: 0, worked }
    const isSame = JSON.stringify(next) === JSON.stringify(this.#record)
    this.#record = next
    if (!isSame) await this.#write()
  }

  async #fingerprint(source: TriedSource): Promise<string | undefined> {
    try {
      using deadline = answerDeadline(this.#options.clock, fingerprintMs)
      return await source.fingerprint(deadline.signal)
    } catch {
      // The source itself reports that it can't be read.
      return undefined
    }
  }

  /** Where the disk can't be written only the count of crashes is lost. */
  #write(): Promise<void> {
    const { file, logger } = this.#options
    const record = this.#record
    this.#writing = this.#writing.then(() =>
      writeTrialRecord(file, record).catch((error: unknown) =>
        logger.warn({ err: error, path: file.path }, 'cannot record how podd starts and ends'),
      ),
    )
    return this.#writing
  }
}

/** The set that worked, as the source's snapshot; undefined where none can be read. Throws what the store throws. */
async function loadWorkedSet(
  copies: LastGoodStore,
  { name, location }: { readonly name: SourceName; readonly location: string },
): Promise<SourceSnapshot | undefined> {
  const copy = await copies.load(name, location)
  if (copy === undefined) return undefined
  const documents = groupDocuments(copy.documents)
  const problem = errorAt(
    location,
    `podd crashed again and again after this source changed: the last set that worked runs instead (${documents.pods.length} pods)`,
    'change the manifest that podd crashes on, or upgrade podd; `podd status` names the crash reports',
  )
  return {
    source: name,
    location,
    ready: copy.isComplete,
    standsIn: 'crashed',
    ...documents,
    problems: [problem],
  }
}

/** Equal for equal sets, wherever their documents stand. */
function setSignature(documents: readonly SourceDocument[]): string {
  const text = JSON.stringify(documents.map(({ manifest, place }) => [manifest, place.path]))
  return createHash('sha256').update(text).digest('hex')
}

/** Whether two sets have equal signatures. What didn't change is the same object in both. */
function isSameSet(before: readonly SourceDocument[], after: readonly SourceDocument[]): boolean {
  return before.length === after.length && after.every((document, at) => isSameDocument(before[at], document))
}

function isSameDocument(before: SourceDocument | undefined, after: SourceDocument): boolean {
  if (before === after) return true
  return before?.place.path === after.place.path && sameData(before.manifest, after.manifest)
}
