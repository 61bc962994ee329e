import { TurnPace } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import { WakeSlot } from '../base/waits.ts'
import type { Changes } from '../base/waits.ts'
import type { SourceSnapshot } from '../pod/objects/document.ts'
import type { EvictionEnd } from '../pod/state/pod-record.ts'
import type { PodUid, SourceName } from '../pod/values/ids.ts'
import type { PodWorker } from './pod/worker.ts'

/**
 * Everything that can happen, and who takes care of it:
 *
 * | kind       | comes from                | goes to                                              |
 * |------------|---------------------------|------------------------------------------------------|
 * | snapshot   | a source                  | the gate of updates, `sources`; then all pods are brought in line |
 * | update     | the gate; who made room   | the same, with what the source gave last              |
 * | runtime    | the runtime observer      | the worker of the pod it is about; orphans             |
 * | health     | the runtime observer      | every worker: go on, or say why not                    |
 * | stage      | a pod's worker            | desired pods: names and ports that became free        |
 * | probe      | the prober                | the worker of the pod it is about                     |
 * | pull       | the image puller          | the worker of the pod it is about, which shows it      |
 * | readiness  | what the runtime reports  | every worker: go on, or say why not                    |
 * | features   | what the runtime reports  | admission: pods may need what it can't do any more     |
 * | room       | the work about the host   | admission: other pods may be admitted than before      |
 * | shutdown   | the host                  | admission, and every worker: nothing starts, or goes on |
 * | readmit    | the work about the host   | desired pods: those that were evicted until now        |
 * | orphans    | the garbage collection    | desired pods, which end what no source wants           |
 */
interface EventFields {
  readonly snapshot: {
    readonly snapshot: SourceSnapshot
    /** Called when it was handled, or the loop has ended; never throws. */
    readonly onTaken?: () => void
  }
  readonly update: { readonly source: SourceName }
  readonly runtime: { readonly uid: PodUid }
  /** `problem`: why the runtime can't be used; undefined: it answered, and was listed. */
  readonly health: { readonly problem: string | undefined }
  readonly stage: { readonly worker: PodWorker }
  readonly probe: { readonly uid: PodUid }
  readonly pull: { readonly uid: PodUid }
  readonly readiness: unknown
  readonly features: unknown
  readonly room: unknown
  readonly shutdown: unknown
  readonly readmit: { readonly now: EvictionEnd }
  readonly orphans: unknown
}

type EventKind = keyof EventFields

export type SyncEvent<Kind extends EventKind = EventKind> = {
  [Each in Kind]: { readonly kind: Each } & EventFields[Each]
}[Kind]

export type SyncHandlers = {
  readonly [Kind in EventKind]: (event: SyncEvent<Kind>) => void | Promise<void>
}

/**
 * The loop: one event after another, in the order they came, each handed to its handler, which
 * decides at once and leaves all waiting to the pods' workers; one that decides about thousands of pods lets the rest of
 * podd have its turns meanwhile, and no other event is handled before it is done. So what it knows never changes under
 * its hands (`pkg/kubelet/kubelet.go` syncLoopIteration, Kubernetes 1.36).
 */
export class SyncLoop {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #changes: Changes
  readonly #slot = new WakeSlot()
  #events: SyncEvent[] = []
  #waitsSinceMs: number | undefined
  #hasEnded = false

  /** @param changes noted after each event */
  constructor(clock: Clock, logger: Logger, changes: Changes) {
    this.#clock = clock
    this.#logger = logger
    this.#changes = changes
  }

  /** Since when the oldest event waits to be handled, monotonic; undefined where none does. */
  get waitsSinceMs(): number | undefined {
    return this.#waitsSinceMs
  }

  post(event: SyncEvent): void {
    if (this.#hasEnded) return settle(event)
    this.#waitsSinceMs ??= this.#clock.monotonicMs()
    this.#events.push(event)
    this.#slot.wake()
  }

  /** Hands each event to its handler until the signal is aborted; those that came before wait for this. */
  async run(handlers: SyncHandlers, signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#slot.wake(), { once: true })
    while (!signal.aborted) {
      await this.#slot.wait()
      const events = this.#events
      this.#events = []
      this.#waitsSinceMs = undefined
      const pace = new TurnPace(this.#clock)
      for (const event of events) {
        if (pace.isOver) await pace.next()
        const work = this.#handle(handlers, event)
        if (work !== undefined) await work
        this.#changes.note()
      }
    }
    this.#hasEnded = true
    for (const event of this.#events.splice(0)) settle(event)
  }

  /** Gives a promise only where the handler takes more than this turn. Never throws. */
  #handle(handlers: SyncHandlers, event: SyncEvent): Promise<void> | undefined {
    const fail = (error: unknown): void =>
      this.#logger.error({ reason: event.kind, err: error }, 'event failed')
    try {
      const work = dispatch(handlers, event)
      if (work !== undefined) return work.catch(fail).finally(() => settle(event))
    } catch (error) {
      fail(error)
    }
    settle(event)
    return undefined
  }
}

function dispatch<Kind extends EventKind>(
  handlers: SyncHandlers,
  event: SyncEvent<Kind>,
): void | Promise<void> {
  return handlers[event.kind](event)
}

/** Whoever waits for the event goes on. */
function settle(event: SyncEvent): void {
  if (event.kind === 'snapshot') event.onTaken?.()
}
