import { join } from 'node:path'
import type { EventObject } from '../../api/resource.ts'
import { writeFileAtomic } from '../../base/atomic-file.ts'
import { formatTime } from '../../base/clock.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { HostShutdown } from '../../host/shutdown.ts'
import type { EventRecorder, NodeEvent, NodeEventRecorder, PodEvent } from '../../pod/state/pod-event.ts'
import { digestText, uuidOfText } from '../../pod/values/hash.ts'
import { eventMigrations, parseEvents, whenItHappened } from '../../store/reports.ts'
import type { BootMoment, Boots, CurrentBoot, Kept, KeptEvent } from '../../store/reports.ts'
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
/** By how much the wall clock must have been set before what is shown is corrected. */
const setByMs = 1000
/** What is of `shutdownReasons` and went wrong in this time before podd learnt that the host is going down came of that. */
const shutdownWithinMs = 10_000
/** What a shutdown itself causes. Others, as those of a broken disk or of too little memory, may be why the host goes down. */
const shutdownReasons: ReadonlySet<string> = new Set([
  'BackOff',
  'Failed',
  'FailedCreatePodSandBox',
  'FailedKillPod',
  'FailedPostStartHook',
  'FailedPreStopHook',
  'FailedSync',
  'Killing',
  'NetworkNotReady',
  'ProbeWarning',
  'RuntimeUnavailable',
  'SandboxLost',
  'Unhealthy',
])
/** The namespace of events about objects without a namespace, as in Kubernetes. */
const nodeEventNamespace = 'default'
const combinedPrefix = '(combined from similar events): '

const version = eventMigrations.length + 1

/**
 * Keeps the newest events in memory and, in batches, on disk (`<root-dir>/events.json`). The same event again raises a
 * count, and so do many similar ones. The newest revision is written with them, so that the next podd continues beyond
 * it. A disk that can't be written costs only this copy.
 *
 * Each event has its moment by a clock that never jumps: when the wall clock is set, what is shown follows. What fails
 * because the host is going down is no warning: after the boot it is over.
 */
export class RingEventRecorder implements EventRecorder, NodeEventRecorder {
  readonly #path: string
  readonly #hostName: string
  readonly #shown: Pick<ShownResources, 'events' | 'revisions'>
  readonly #shutdown: HostShutdown
  readonly #clock: Clock
  readonly #logger: Logger
  /** Oldest first: a Map keeps the order of insertion. */
  readonly #events = new Map<string, Kept>()
  #timer: Timer | undefined
  #timerFiresAtMs = Number.POSITIVE_INFINITY
  #flushing: Promise<void> = Promise.resolve()
  #failing = false
  /** Those that events are from, and maybe more. */
  #boots: Boots = {}
  #boot: CurrentBoot
  readonly #beganUpMs: number
  /** The warnings that are shown as none in the shutdown that lasts, by the key that they have meanwhile. */
  readonly #excused = new Map<string, KeptEvent>()

  constructor(
    place: { readonly rootDir: string; readonly hostName: string; readonly bootId: string },
    shown: Pick<ShownResources, 'events' | 'revisions'>,
    shutdown: HostShutdown,
    clock: Clock,
    logger: Logger,
  ) {
    this.#path = join(place.rootDir, 'events.json')
    this.#hostName = place.hostName
    this.#shown = shown
    this.#shutdown = shutdown
    this.#clock = clock
    this.#logger = logger
    this.#beganUpMs = clock.uptimeMs()
    const readAtMs = clock.wallMs()
    this.#boot = { id: place.bootId, beganAtMs: readAtMs - this.#beganUpMs, readAtMs }
    shutdown.onChange(() => this.#reviewWarnings())
  }

  /** Loads the events of an earlier podd. A file that can't be read is put aside and doesn't prevent the start. */
  async load(): Promise<void> {
    const report = createStateReport(this, this.#logger)
    try {
      const content = await loadState(smallFile(this.#path), eventMigrations, parseEvents, report)
      if (content === undefined) return
      if (content.revision !== undefined) this.#shown.revisions.continueAfter(content.revision)
      this.#boots = content.boots
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

  /** Shows when things happened by the clock as it is set now. To be called when it may have been set. */
  reviewTimes(): void {
    const { id } = this.#boot
    const beganAtMs = this.#clock.wallMs() - this.#clock.uptimeMs()
    if (Math.abs(beganAtMs - this.#boot.beganAtMs) < setByMs) return
    this.#boot = { id, beganAtMs, readAtMs: beganAtMs + this.#beganUpMs }
    for (const [key, kept] of this.#events) this.#shown.events.put(key, this.#toObject(kept))
    this.#writeWithin(writeRepeatsAfterMs)
  }

  /** The host is going down: what went wrong just now came of that, unless it is called off. */
  #reviewWarnings(): void {
    if (this.#shutdown.isStopping) this.#excuseWarnings()
    else {
      for (const [key, warning] of this.#excused) {
        const kept = this.#events.get(key)
        if (kept !== undefined) this.#replace(key, { ...kept, event: warning })
      }
      this.#excused.clear()
    }
    this.#writeWithin(writeNewAfterMs)
  }

  #excuseWarnings(): void {
    const sinceMs = this.#clock.uptimeMs() - shutdownWithinMs
    const isOfShutdown = (moment: BootMoment | undefined): boolean =>
      moment?.boot === this.#boot.id && moment.upMs >= sinceMs
    for (const [key, kept] of this.#events) {
      if (kept.event.type !== 'Warning' || !shutdownReasons.has(kept.event.reason)) continue
      if (!isOfShutdown(kept.first) || !isOfShutdown(kept.last)) continue
      const event = ofShutdown(kept.event)
      this.#excused.set(keyOf(event), kept.event)
      this.#replace(key, { ...kept, event })
    }
  }

  #replace(key: string, kept: Kept): void {
    this.#events.delete(key)
    this.#shown.events.remove(key)
    this.#keep(keyOf(kept.event), kept)
  }

  #take(heard: KeptEvent): void {
    this.reviewTimes()
    if (heard.type === 'Warning' && !this.#shutdown.isStopping) void this.#shutdown.look()
    const told = this.#shutdown.isStopping ? ofShutdown(heard) : heard
    const upMs = this.#clock.uptimeMs()
    const nowMs = this.#boot.beganAtMs + upMs
    const last = { boot: this.#boot.id, upMs, atMs: nowMs }
    const event = this.#events.has(keyOf(told)) ? told : this.#combined(told, nowMs)
    const key = keyOf(event)
    const known = this.#events.get(key)
    const kept: Kept = known ?? { event, firstAtMs: nowMs, lastAtMs: nowMs, count: 0, first: last }
    kept.event = event
    kept.lastAtMs = nowMs
    kept.last = last
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
    const isRecent = ({ last, lastAtMs }: Kept): boolean =>
      this.#when(last, lastAtMs) > nowMs - similarEvents.withinMs
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
        JSON.stringify({ version, revision, boots: this.#knownBoots(), events: [...this.#events.values()] }),
      )
      this.#failing = false
    } catch (error) {
      if (!this.#failing) this.#logger.warn({ err: error, path: this.#path }, 'cannot write events')
      this.#failing = true
      this.#writeWithin(writeRepeatsAfterMs)
    }
  }

  /** Those that events are from. */
  #knownBoots(): Boots {
    const { id, beganAtMs } = this.#boot
    const known: Boots = { ...this.#boots, [id]: Math.round(beganAtMs) }
    const named = new Set<string>()
    for (const { first, last } of this.#events.values())
      for (const moment of [first, last]) if (moment !== undefined) named.add(moment.boot)
    return Object.fromEntries(Object.entries(known).filter(([boot]) => named.has(boot)))
  }

  #when(moment: BootMoment | undefined, atMs: number): number {
    return whenItHappened(moment, atMs, this.#boots, this.#boot)
  }

  #toObject({ event, firstAtMs, lastAtMs, first, last, count }: Kept): EventObject {
    const hostName = this.#hostName
    const { pod, kind = 'Pod', container } = event
    const newestMs = this.#when(last, lastAtMs)
    const oldestMs = Math.min(this.#when(first, firstAtMs), newestMs)
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: {
        // Several may be recorded within one millisecond.
        name: `${pod?.name ?? hostName}.${firstAtMs.toString(16)}${digestText(keyOf(event)).slice(0, 6)}`,
        namespace: pod?.namespace ?? nodeEventNamespace,
        uid: uuidOfText(`${firstAtMs} ${keyOf(event)}`),
        creationTimestamp: formatTime(oldestMs),
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
      firstTimestamp: formatTime(oldestMs),
      lastTimestamp: formatTime(newestMs),
      count,
    }
  }
}

/** The same as no warning, which says what it came of. */
function ofShutdown(event: KeptEvent): KeptEvent {
  return event.type === 'Normal'
    ? event
    : { ...event, type: 'Normal', message: `${event.message} (the host was going down)` }
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
