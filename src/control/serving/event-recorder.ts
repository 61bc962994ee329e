import { join } from 'node:path'
import type { EventObject } from '../../api/resource.ts'
import { writeFileAtomic } from '../../base/atomic-file.ts'
import { formatTime } from '../../base/clock.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { EventRecorder, NodeEvent, NodeEventRecorder, PodEvent } from '../../pod/state/pod-event.ts'
import { digestText, uuidOfText } from '../../pod/values/hash.ts'
import { eventMigrations, parseEvents } from '../../store/reports.ts'
import type { Kept, KeptEvent } from '../../store/reports.ts'
import { createStateReport, loadState, smallFile } from '../../store/state-report.ts'
import type { ShownResources } from './resource-store.ts'

/** How many different events are kept; the oldest are dropped first. */
const capacity = 1000
/** The delay before a new event is written; later ones within it are written together. */
const writeNewAfterMs = 2000
/** The delay before a raised count is written: a probe that fails each second must not wear out a small disk. */
const writeRepeatsAfterMs = 60_000
/**
 * From this many events that differ in nothing but their message, each within the last ten minutes, the next
 * ones are told as one (`staging/src/k8s.io/client-go/tools/record/events_cache.go`, Kubernetes 1.36).
 */
const similarEvents = { most: 10, withinMs: 600_000 }
/** The namespace of events about objects without a namespace, as in Kubernetes. */
const nodeEventNamespace = 'default'
const combinedPrefix = '(combined from similar events): '

const version = eventMigrations.length + 1

/**
 * Keeps the newest events in memory and, in batches, on disk (`<root-dir>/events.json`). The same event again raises a
 * count, and so do many similar ones. The newest revision is written with them, so that the next podd continues beyond
 * it. A disk that can't be written costs only this copy.
 */
export class RingEventRecorder implements EventRecorder, NodeEventRecorder {
  readonly #path: string
  readonly #hostName: string
  readonly #shown: Pick<ShownResources, 'events' | 'revisions'>
  readonly #clock: Clock
  readonly #logger: Logger
  /** Oldest first: a Map keeps the order of insertion. */
  readonly #events = new Map<string, Kept>()
  #timer: Timer | undefined
  #timerFiresAtMs = Number.POSITIVE_INFINITY
  #flushing: Promise<void> = Promise.resolve()
  #failing = false

  constructor(
    rootDir: string,
    hostName: string,
    shown: Pick<ShownResources, 'events' | 'revisions'>,
    clock: Clock,
    logger: Logger,
  ) {
    this.#path = join(rootDir, 'events.json')
    this.#hostName = hostName
    this.#shown = shown
    this.#clock = clock
    this.#logger = logger
  }

  /** Loads the events of an earlier podd. A file that can't be read is put aside and doesn't prevent the start. */
  async load(): Promise<void> {
    const report = createStateReport(this, this.#logger)
    try {
      const content = await loadState(smallFile(this.#path), eventMigrations, parseEvents, report)
      if (content === undefined) return
      if (content.revision !== undefined) this.#shown.revisions.continueAfter(content.revision)
      for (const item of content.events) this.#keep(keyOf(item.event), item)
    } catch (error) {
      this.#logger.warn({ err: error, path: this.#path }, 'cannot read earlier events')
    }
  }

  record(event: PodEvent): void {
    this.#take(event)
  }

  recordNode({ type, reason, message }: NodeEvent): void {
    this.#take({ type, reason, message })
  }

  #take(told: KeptEvent): void {
    const nowMs = this.#clock.wallMs()
    const event = this.#events.has(keyOf(told)) ? told : this.#combined(told, nowMs)
    const key = keyOf(event)
    const known = this.#events.get(key)
    const kept = known ?? { event, firstAtMs: nowMs, lastAtMs: nowMs, count: 0 }
    kept.event = event
    kept.lastAtMs = nowMs
    kept.count += 1
    this.#keep(key, kept)
    this.#writeWithin(known === undefined ? writeNewAfterMs : writeRepeatsAfterMs)
  }

  #keep(key: string, kept: Kept): void {
    this.#events.delete(key)
    this.#events.set(key, kept)
    this.#shown.events.put(key, this.#toObject(kept))
    const [oldest] = this.#events.keys()
    if (this.#events.size <= capacity || oldest === undefined) return
    this.#events.delete(oldest)
    this.#shown.events.remove(oldest)
  }

  /** The event itself, or the combined one that stands for it and similar ones. */
  #combined(event: KeptEvent, nowMs: number): KeptEvent {
    const combined = { ...event, message: `${combinedPrefix}${event.message}` }
    // A time in the future dates from before the clock was set back.
    const isRecent = ({ lastAtMs }: Kept): boolean =>
      lastAtMs > nowMs - similarEvents.withinMs && lastAtMs <= nowMs
    const standing = this.#events.get(keyOf(combined))
    if (standing !== undefined && isRecent(standing)) return combined
    const similar = [...this.#events.values()].filter(
      (kept) => isSimilar(kept.event, event) && isRecent(kept),
    )
    return similar.length < similarEvents.most ? event : combined
  }

  #writeWithin(delayMs: number): void {
    const firesAtMs = this.#clock.monotonicMs() + delayMs
    if (firesAtMs >= this.#timerFiresAtMs) return
    this.#timer?.cancel()
    this.#timerFiresAtMs = firesAtMs
    this.#timer = this.#clock.startTimer(delayMs, () => {
      void this.flush()
    })
  }

  /** Writes pending events; never throws. */
  async flush(): Promise<void> {
    this.#timer?.cancel()
    this.#timerFiresAtMs = Number.POSITIVE_INFINITY
    this.#flushing = this.#flushing.then(() => this.#write())
    await this.#flushing
  }

  async #write(): Promise<void> {
    const revision = this.#shown.revisions.latest
    try {
      await writeFileAtomic(
        this.#path,
        JSON.stringify({ version, revision, events: [...this.#events.values()] }),
      )
      this.#failing = false
    } catch (error) {
      if (!this.#failing) this.#logger.warn({ err: error, path: this.#path }, 'cannot write events')
      this.#failing = true
      this.#writeWithin(writeRepeatsAfterMs)
    }
  }

  #toObject({ event, firstAtMs, lastAtMs, count }: Kept): EventObject {
    const hostName = this.#hostName
    const { pod, kind = 'Pod', container } = event
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: {
        // Several may be recorded within one millisecond.
        name: `${pod?.name ?? hostName}.${firstAtMs.toString(16)}${digestText(keyOf(event)).slice(0, 6)}`,
        namespace: pod?.namespace ?? nodeEventNamespace,
        uid: uuidOfText(`${firstAtMs} ${keyOf(event)}`),
        creationTimestamp: formatTime(firstAtMs),
      },
      involvedObject:
        pod === undefined
          ? // As the kubelet refers to its node (`pkg/kubelet/kubelet.go`, nodeRef, 1.36).
            { kind: 'Node', namespace: '', name: hostName, uid: hostName }
          : {
              apiVersion: kind === 'Pod' ? 'v1' : 'batch/v1',
              kind,
              namespace: pod.namespace,
              name: pod.name,
              uid: pod.uid,
              ...(container === undefined ? {} : { fieldPath: `spec.containers{${container}}` }),
            },
      type: event.type,
      reason: event.reason,
      message: event.message,
      // Clients pick the events of a node's agent by this name.
      source: { component: 'kubelet', host: hostName },
      reportingComponent: 'kubelet',
      reportingInstance: hostName,
      firstTimestamp: formatTime(firstAtMs),
      lastTimestamp: formatTime(lastAtMs),
      count,
    }
  }
}

function keyOf({ pod, container, type, reason, message }: KeptEvent): string {
  return JSON.stringify([
    pod?.uid,
    container,
    type,
    reason,
    message.startsWith(combinedPrefix) ? combinedPrefix : message,
  ])
}

function isSimilar(one: KeptEvent, other: KeptEvent): boolean {
  return (
    one.pod?.uid === other.pod?.uid &&
    one.reason === other.reason &&
    one.container === other.container &&
    one.type === other.type
  )
}
