import type { Clock, Timer } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { countCrashes, mayHold, selectHeld } from '../../decide/sources/judge-trial.ts'
import type { HeldSet, TrialRecord } from '../../decide/sources/judge-trial.ts'
import type { SourceDocument, SourceName, SourceSnapshot } from '../../pod/objects/document.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { LastGoodStore } from '../../store/last-good.ts'
import type { SmallFile } from '../../store/small-file.ts'
import type { StateReport } from '../../store/state-report.ts'
import { readTrialRecord, writeTrialRecord } from '../../store/trial-record.ts'
import type { Source } from '../source.ts'
import { loadWorkedSet, setSignature } from './worked-set.ts'

/** How long reading a fingerprint may take. */
const fingerprintMs = 10_000
/** How often a held source is looked at for a change. */
const lookMs = 10_000

/** A source, and how to tell that what it gives has changed without decoding it. */
export interface TriedSource {
  readonly name: SourceName
  /** As users may see it. */
  readonly location: string
  readonly source: Source
  /** Undefined where the source can't be read. */
  fingerprint(signal: AbortSignal): Promise<string | undefined>
}

export interface SourceTrialsOptions {
  /** `<root-dir>/trial.json` */
  readonly file: SmallFile
  /** The sets that worked. */
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
  readonly signature: string
  /** When the set came, or at the last look since. */
  fingerprint: string | undefined
}

/**
 * Notices that podd crashes again and again since a source changed, and then runs the last set of that source that
 * worked, until the source changes again or another version of podd starts. A set worked once podd has run with it for
 * the trial period.
 */
export class SourceTrials {
  readonly #options: SourceTrialsOptions
  readonly #current = new Map<SourceName, Current>()
  #record: TrialRecord
  #timer: Timer | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(options: SourceTrialsOptions) {
    this.#options = options
    const { bootId, reports } = options
    this.#record = { bootId, running: true, crashes: 0, reports, worked: {}, held: {} }
  }

  /** Records this start, and decides which sources are held. Never throws. */
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
      this.#options.sources.map(async (source) => ({
        name: source.name,
        location: source.location,
        fingerprint: await this.#fingerprint(source),
      })),
    )
    this.#record = { ...this.#record, held: selectHeld(before, { crashes, podd, sources }) }
    await this.#write()
  }

  /** The source, or in its place the last set that worked while it is held. */
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

  /** podd ends by itself. Never throws. */
  async noteEnd(): Promise<void> {
    if (this.#options.periodMs === 0) return
    this.#timer?.cancel()
    this.#record = { ...this.#record, running: false, crashes: 0 }
    await this.#write()
  }

  /** Until the source changes. */
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
    for (;;) {
      await clock.sleep(lookMs, signal).catch(() => undefined)
      if (signal.aborted) return
      const fingerprint = await this.#fingerprint(tried)
      if (fingerprint === undefined || fingerprint === held.fingerprint) continue
      break
    }
    logger.info({ path: location }, 'the source changed and is followed again')
    events.recordNode({
      type: 'Normal',
      reason: 'SourceFollowed',
      message: `${location} changed: podd follows it again`,
    })
    this.#record = {
      ...this.#record,
      crashes: 0,
      held: Object.fromEntries(Object.entries(this.#record.held).filter(([other]) => other !== name)),
    }
    await this.#write()
  }

  #note(tried: TriedSource, { ready, pods, objects }: SourceSnapshot): void {
    if (!ready || this.#options.periodMs === 0) return
    const documents = [...pods, ...objects]
    const signature = setSignature(documents)
    if (this.#current.get(tried.name)?.signature === signature) return
    const current: Current = { documents, signature, fingerprint: undefined }
    this.#current.set(tried.name, current)
    void this.#fingerprint(tried).then((fingerprint) => {
      current.fingerprint = fingerprint
    })
    this.#startTrial()
  }

  #startTrial(): void {
    this.#timer?.cancel()
    this.#timer = this.#options.clock.startTimer(this.#options.periodMs, () => void this.#endTrial())
  }

  /** podd has run for the trial period with what the sources gave last. */
  async #endTrial(): Promise<void> {
    const { sources, copies, logger } = this.#options
    const worked = { ...this.#record.worked }
    for (const source of sources) {
      const { name, location } = source
      const current = this.#current.get(name)
      if (current === undefined) continue
      const fingerprint = await this.#fingerprint(source)
      if (fingerprint === undefined) continue
      if (fingerprint !== current.fingerprint) {
        // It was written to meanwhile, without a change of the set so far.
        current.fingerprint = fingerprint
        this.#startTrial()
        continue
      }
      const before = worked[name]
      try {
        if (before?.location !== location || before.digest !== current.signature)
          await copies.save(name, location, current.documents)
        worked[name] = { location, fingerprint, digest: current.signature }
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
    const timeout = new AbortController()
    const timer = this.#options.clock.startTimer(fingerprintMs, () =>
      timeout.abort(new PoddError('SOURCE_TIMEOUT', `no full answer within ${fingerprintMs / 1000} s`)),
    )
    try {
      return await source.fingerprint(timeout.signal)
    } catch {
      // The source itself reports that it can't be read.
      return undefined
    } finally {
      timer.cancel()
    }
  }

  /** A disk that can't be written costs the count of crashes, never the pods. */
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
