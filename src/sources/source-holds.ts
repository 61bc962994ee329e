import { formatTime } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { Semaphore } from '../base/waits.ts'
import { diffDocuments, summarizePending } from '../decide/sources/merge-snapshots.ts'
import type { PendingChanges } from '../decide/sources/merge-snapshots.ts'
import { groupDocuments, warningAt } from '../pod/objects/document.ts'
import type { Problem, SourceSnapshot } from '../pod/objects/document.ts'
import { holdsSecrets } from '../pod/objects/local-object.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import type { SourceName } from '../pod/values/ids.ts'
import type { LastGoodStore } from '../store/last-good.ts'
import { readHolds, writeHolds } from '../store/source-records.ts'
import type { Hold, Holds } from '../store/source-records.ts'
import type { SmallFile, StateReport } from '../store/state-report.ts'
import type { Source } from './source.ts'

/** A source that may be held. */
export interface HoldableSource {
  readonly name: SourceName
  /** The location as it may be shown. */
  readonly location: string
  readonly source: Source
}

export interface SourceHoldsOptions {
  /** `<root-dir>/holds.json` */
  readonly file: SmallFile
  /** The store of the held sources' copies. */
  readonly copies: LastGoodStore
  /** Whether the copies include Secrets. */
  readonly persistSecrets: boolean
  readonly report: StateReport
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/** The state of a source: what it gives, and what is followed of it. Times are wall milliseconds. */
export interface SourceState {
  /** Its newest snapshot, whether it is followed or not. */
  readonly newest: SourceSnapshot | undefined
  /** When its errors began. */
  readonly errorsSinceMs: number | undefined
  readonly heldSinceMs: number | undefined
  /** Only for a held source. */
  readonly pending: PendingChanges | undefined
}

/** The location of a held copy in the store: it belongs to the source, wherever it is read from. */
const copyLocation = 'held'

interface Gate {
  newest: SourceSnapshot | undefined
  errorsSinceMs: number | undefined
  /** The snapshot that is followed while the source is held. */
  frozen: SourceSnapshot | undefined
  /** The held copy came from the disk, without Secrets: the source's first ones are added. */
  lacksSecrets: boolean
  publish: (snapshot: SourceSnapshot) => void
}

/**
 * Holds sources at their current content, across restarts, until they are resumed. A held source is still read, so that
 * its changes and errors are seen; none of them is applied.
 */
export class SourceHolds {
  readonly #options: SourceHoldsOptions
  readonly #gates = new Map<SourceName, Gate>()
  readonly #turn = new Semaphore(1)
  #holds: Holds = new Map()

  constructor(options: SourceHoldsOptions) {
    this.#options = options
  }

  /** Reads which sources are held. Call it before any of them runs. Never throws. */
  async begin(): Promise<void> {
    this.#holds = await readHolds(this.#options.file, this.#options.report)
  }

  isHeld(name: SourceName): boolean {
    return this.#holds.has(name)
  }

  state(name: SourceName): SourceState {
    const gate = this.#gates.get(name)
    return {
      newest: gate?.newest,
      errorsSinceMs: gate?.errorsSinceMs,
      heldSinceMs: this.#holds.get(name)?.sinceMs,
      pending: this.#holds.has(name) && gate !== undefined ? pendingOf(gate) : undefined,
    }
  }

  /** Wraps a source: while it is held, it yields the held copy. */
  wrap({ name, location, source }: HoldableSource): Source {
    return {
      run: async (onSnapshot, signal) => {
        const gate: Gate = {
          newest: undefined,
          errorsSinceMs: undefined,
          frozen: undefined,
          lacksSecrets: false,
          publish: onSnapshot,
        }
        this.#gates.set(name, gate)
        const hold = this.#holds.get(name)
        if (hold !== undefined) {
          gate.frozen = await this.#loadFrozen(hold, name, location)
          gate.lacksSecrets = !this.#options.persistSecrets
          this.#publish(name, gate)
        }
        await source.run((snapshot) => this.#take(gate, snapshot), signal)
      },
    }
  }

  /**
   * Holds a source at its current content. One that has given nothing yet starts and ends no pod. Returns whether it
   * wasn't held before. Throws the system's error where that can't be recorded.
   */
  hold({ name, location }: HoldableSource): Promise<boolean> {
    return this.#turn.run(async () => {
      const { clock, copies, file, events, logger } = this.#options
      if (this.#holds.has(name)) return false
      const newest = this.#gates.get(name)?.newest
      const hasCopy = newest?.ready === true
      if (hasCopy) await copies.save(name, copyLocation, [...newest.pods, ...newest.objects])
      const holds = new Map(this.#holds).set(name, { sinceMs: clock.wallMs(), hasCopy })
      await writeHolds(file, holds)
      this.#holds = holds
      logger.warn({ path: location }, 'the source is held')
      const message = `${location} is held: its changes are not applied until \`podd resume\``
      events.recordNode({ type: 'Normal', reason: 'SourceFrozen', message })
      const gate = this.#gates.get(name)
      if (gate === undefined) return true
      // A snapshot that arrived while the copy was written waits for the end of the hold.
      gate.frozen = newest ?? unread(name, location)
      this.#publish(name, gate)
      return true
    })
  }

  /** Follows a source again. Returns whether it was held. Throws the system's error where that can't be recorded. */
  resume({ name, location }: HoldableSource): Promise<boolean> {
    return this.#turn.run(async () => {
      const { file, events, logger } = this.#options
      if (!this.#holds.has(name)) return false
      const holds = new Map(this.#holds)
      holds.delete(name)
      await writeHolds(file, holds)
      this.#holds = holds
      logger.warn({ path: location }, 'the source is followed again')
      const message = `${location} is followed again`
      events.recordNode({ type: 'Normal', reason: 'SourceResumed', message })
      const gate = this.#gates.get(name)
      if (gate === undefined) return true
      gate.frozen = undefined
      gate.lacksSecrets = false
      this.#publish(name, gate)
      return true
    })
  }

  #take(gate: Gate, snapshot: SourceSnapshot): void {
    const { clock } = this.#options
    gate.newest = snapshot
    if (gate.lacksSecrets && snapshot.ready && snapshot.lacksSecrets !== true) completeSecrets(gate, snapshot)
    const hasErrors = snapshot.problems.some(({ severity }) => severity === 'error')
    gate.errorsSinceMs = hasErrors ? (gate.errorsSinceMs ?? clock.wallMs()) : undefined
    this.#publish(snapshot.source, gate)
  }

  #publish(name: SourceName, gate: Gate): void {
    const { newest, frozen } = gate
    const hold = this.#holds.get(name)
    if (hold === undefined || frozen === undefined) {
      if (newest !== undefined) gate.publish(newest)
      return
    }
    const problem = heldProblem(frozen.location, hold.sinceMs, pendingOf(gate))
    gate.publish({
      ...frozen,
      standsIn: 'held',
      ...(gate.lacksSecrets && { lacksSecrets: true }),
      problems: [problem, ...(newest?.problems ?? [])],
    })
  }

  /** Without a readable copy no pod of the source is ended or started. */
  async #loadFrozen({ hasCopy }: Hold, name: SourceName, location: string): Promise<SourceSnapshot> {
    const { copies, logger } = this.#options
    if (!hasCopy) return unread(name, location)
    const copy = await copies.load(name, copyLocation).catch((error: unknown) => {
      logger.error({ err: error, path: location }, 'cannot read what a held source gave')
    })
    const ready = copy?.isComplete === true
    return { ...unread(name, location), ready, ...groupDocuments(copy?.documents ?? []) }
  }
}

function unread(source: SourceName, location: string): SourceSnapshot {
  return { source, location, ready: false, pods: [], objects: [], problems: [] }
}

function completeSecrets(gate: Gate, { objects }: SourceSnapshot): void {
  gate.lacksSecrets = false
  if (gate.frozen === undefined) return
  const secrets = objects.filter(({ manifest }) => holdsSecrets(manifest))
  gate.frozen = { ...gate.frozen, objects: [...gate.frozen.objects, ...secrets] }
}

/** Undefined until the source was read. */
function pendingOf({ newest, frozen }: Gate): PendingChanges | undefined {
  if (newest?.ready !== true || frozen === undefined) return undefined
  return diffDocuments([...frozen.pods, ...frozen.objects], [...newest.pods, ...newest.objects])
}

function heldProblem(path: string, sinceMs: number, pending: PendingChanges | undefined): Problem {
  const changes = pending === undefined ? '' : summarizePending(pending)
  const message = `held since ${formatTime(sinceMs)}: changes are not applied${changes === '' ? '' : `; pending: ${changes}`}`
  return warningAt(path, message, 'podd resume applies them.')
}
