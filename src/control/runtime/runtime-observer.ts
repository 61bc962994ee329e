import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { sameData } from '../../base/json.ts'
import type { Logger } from '../../base/logger.ts'
import type { RandomSource } from '../../base/random.ts'
import { WakeSlot } from '../../base/waits.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { ContainerId, PodKey, PodUid } from '../../pod/values/ids.ts'
import type { ObservedPod, RuntimeEvent } from '../../pod/state/observed.ts'
import { instanceSelector, labelKeys } from '../../translate/identity.ts'
import { isAsListed } from './is-as-listed.ts'
import { fingerprint, listRuntime, observeListing } from './runtime-listing.ts'
import type { ListCalls, Listing } from './runtime-listing.ts'
import { RuntimeStatuses } from './runtime-statuses.ts'
import type { StatusCalls } from './runtime-statuses.ts'

/** What the observer needs of CRI's RuntimeService. */
export interface ObserverCalls extends ListCalls, StatusCalls {}

/** `unserved`: this runtime has no events at all; it has to be listed again and again. */
export type ObserverEvent = RuntimeEvent | { readonly kind: 'unserved' }

export interface RuntimeEventSource {
  /** Calls `onEvent` until the signal is aborted; losses of the connection and reconnections are events too. */
  run(onEvent: (event: ObserverEvent) => void, signal: AbortSignal): Promise<void>
}

export interface RuntimeObserverOptions {
  readonly calls: ObserverCalls
  /** Undefined where the runtime serves no events: then it is listed every second. */
  readonly events: RuntimeEventSource | undefined
  readonly clock: Clock
  readonly random: RandomSource
  readonly logger: Logger
  /** The period of full lists beside the events, as a safety net. */
  readonly relistMs: number
  /** Only sandboxes and containers with this instance's label are observed; empty: all. */
  readonly instance: string
  /** Something of this pod may have changed. */
  readonly onChange: (uid: PodUid) => void
  /** The runtime became available or unavailable. */
  readonly onHealth: (health: RuntimeHealth) => void
  readonly isNotFound: (error: unknown) => boolean
  /** Whether the kernel has killed for memory in a container that has just ended. */
  readonly hasOomKills: (uid: PodUid, containerId: ContainerId) => Promise<boolean>
  /** The runtime did not answer in time. */
  readonly isTimeout: (error: unknown) => boolean
}

export type RuntimeHealth = { readonly healthy: true } | { readonly healthy: false; readonly message: string }

/** Without events, the full list is all there is (the kubelet's PLEG period). */
const relistWithoutEventsMs = 1000

/**
 * What runs, read from the runtime: the only writer of the observed state. Events are hints that wake a
 * pod's worker, which then reads its pod again (`read`), so that no pod acts on an observation older
 * than its own last write; a slow full relist finds what an event missed.
 */
export class RuntimeObserver {
  readonly #options: RuntimeObserverOptions
  /** Which pod a container or sandbox belongs to. */
  readonly #owners = new Map<string, PodUid>()
  readonly #statuses: RuntimeStatuses
  /** From the last list, and from reads since. */
  #pods = new Map<PodUid, ObservedPod>()
  /** Those of each name. */
  #named = new Map<PodKey, Set<PodUid>>()
  /** What was read while a list was in flight: the list may be older. */
  readonly #readMeanwhile = new Map<PodUid, ObservedPod | undefined>()
  readonly #relistSlot = new WakeSlot()
  #polling: boolean
  #streamLost = false
  #health: RuntimeHealth | undefined
  /** See `losses`; a list that began before the last one doesn't prove that the runtime is back. */
  #losses = 0
  /** Since the last full list an event reported an OOM kill, which no list shows. */
  #hasOomKill = false
  /** The first full list is complete: a pod that was not in it was created by this podd. */
  #hasListed = false
  #listedAtMs: number | undefined

  constructor(options: RuntimeObserverOptions) {
    this.#options = options
    this.#statuses = new RuntimeStatuses(options)
    this.#polling = options.events === undefined
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { events } = this.#options
    const listening = events?.run((event) => this.#onEvent(event), signal)
    await Promise.all([listening, this.#relistForever(signal)])
  }

  /** All pods that the runtime is known to hold. */
  pods(): ReadonlyMap<PodUid, ObservedPod> {
    return this.#pods
  }

  /** Those of this name: several where one replaces another. */
  podsNamed(key: PodKey): readonly ObservedPod[] {
    return [...(this.#named.get(key) ?? [])].flatMap((uid) => this.#pods.get(uid) ?? [])
  }

  /** How often the runtime became unavailable. What was read before the last time may be outdated. */
  get losses(): number {
    return this.#losses
  }

  /** When the last full list ended or failed (monotonic); before the first one, when the observer began. */
  get listedAtMs(): number | undefined {
    return this.#listedAtMs
  }

  /** The runtime became unavailable: it counts as such until it can be listed again. */
  reportGone(message: string): void {
    this.#losses += 1
    this.#setHealth({ healthy: false, message })
    this.#relistSlot.wake()
  }

  /** Asks for a full relist soon. */
  requestRelist(): void {
    this.#relistSlot.wake()
  }

  /** What the runtime currently holds of one pod; `undefined` where it holds nothing. */
  async read(uid: PodUid): Promise<ObservedPod | undefined> {
    const selector = { ...instanceSelector(this.#options.instance), [labelKeys.podUid]: uid }
    const pods = await this.#observe(await listRuntime(this.#options.calls, selector))
    const pod = pods.get(uid)
    this.#take(uid, pod)
    return pod
  }

  /** Takes the status of a new sandbox that was read elsewhere: it isn't read again while it is listed with the same state. */
  noteSandbox(status: cri.PodSandboxStatus): void {
    const uid = status.labels[labelKeys.podUid]
    if (uid === undefined) return
    // So that it is dropped once it is no longer listed.
    this.#owners.set(status.id, uid)
    this.#statuses.noteSandbox(status)
  }

  /** Everything of this pod was removed from the runtime. */
  forgetPod(uid: PodUid): void {
    this.#take(uid, undefined)
  }

  /**
   * Lists everything, and reports what changed since the last list. A pod whose status the runtime doesn't give in time stays
   * as it was observed last and delays no other; in the first list, which must be complete, that is an error.
   */
  async relist(): Promise<ReadonlyMap<PodUid, ObservedPod>> {
    this.#readMeanwhile.clear()
    // Meanwhile owners are only added, at the end.
    const ownersBefore = this.#owners.size
    const exitedBefore = [...this.#statuses.exited()]
    const { calls, instance } = this.#options
    const listing = await listRuntime(calls, instanceSelector(instance))
    if (this.#isAsBefore(listing)) return this.#pods
    this.#hasOomKill = false
    const knownBefore = new Set([...[...this.#owners.keys()].slice(0, ownersBefore), ...exitedBefore])
    const silent = new Set<PodUid>()
    const pods = new Map(await this.#observe(listing, this.#hasListed ? silent : undefined))
    const before = this.#pods
    for (const uid of silent) {
      const known = before.get(uid)
      if (known === undefined) pods.delete(uid)
      else pods.set(uid, known)
    }
    this.#pods = pods
    this.#named = new Map()
    for (const pod of pods.values()) this.#index(pod)
    this.#hasListed = true
    for (const [uid, pod] of this.#readMeanwhile) this.#take(uid, pod)
    this.#forget(knownBefore, pods)
    for (const uid of new Set([...before.keys(), ...pods.keys()])) {
      if (fingerprint(before.get(uid)) !== fingerprint(pods.get(uid))) this.#options.onChange(uid)
    }
    return pods
  }

  #take(uid: PodUid, pod: ObservedPod | undefined): void {
    this.#readMeanwhile.set(uid, pod)
    const before = this.#pods.get(uid)
    if (before !== undefined) this.#unindex(before)
    if (pod === undefined) this.#pods.delete(uid)
    else {
      this.#pods.set(uid, pod)
      this.#index(pod)
    }
  }

  #index(pod: ObservedPod): void {
    const key = podKey(pod)
    const uids = this.#named.get(key)
    if (uids === undefined) this.#named.set(key, new Set([pod.uid]))
    else uids.add(pod.uid)
  }

  #unindex(pod: ObservedPod): void {
    const key = podKey(pod)
    const uids = this.#named.get(key)
    uids?.delete(pod.uid)
    if (uids?.size === 0) this.#named.delete(key)
  }

  async #relistForever(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options
    this.#listedAtMs = clock.monotonicMs()
    const aborted = new Promise<void>((resolve) => {
      const onAbort = (): void => {
        this.#relistSlot.wake()
        resolve()
      }
      signal.addEventListener('abort', onAbort, { once: true })
    })
    while (!signal.aborted) {
      // A frozen runtime must not delay the stop.
      await Promise.race([this.#tryRelist(), aborted])
      this.#listedAtMs = clock.monotonicMs()
      const timer = clock.startTimer(this.#relistPeriodMs(), () => this.#relistSlot.wake())
      await this.#relistSlot.wait()
      timer.cancel()
    }
  }

  async #tryRelist(): Promise<void> {
    const losses = this.#losses
    try {
      await this.relist()
      if (losses === this.#losses) this.#setHealth({ healthy: true })
    } catch (error) {
      // The first report of the loss has a better reason than a call that could not be sent.
      if (this.#health?.healthy === false) return
      this.#options.logger.warn({ err: error }, 'cannot list the containers of the runtime')
      this.#setHealth({ healthy: false, message: errorMessage(error) })
    }
  }

  #relistPeriodMs(): number {
    const { random, relistMs } = this.#options
    const often = this.#polling || this.#streamLost || this.#health?.healthy !== true
    return (often ? relistWithoutEventsMs : relistMs) * (1 + random() * 0.1)
  }

  #setHealth(health: RuntimeHealth): void {
    if (sameData(this.#health, health)) return
    this.#health = health
    this.#options.onHealth(health)
  }

  #onEvent(event: ObserverEvent): void {
    switch (event.kind) {
      case 'opened':
        this.#streamLost = false
        this.#relistSlot.wake()
        return
      case 'unserved':
        this.#polling = true
        this.#relistSlot.wake()
        return
      case 'lost':
        this.#options.logger.warn({ reason: event.reason }, 'the runtime event stream broke')
        this.#streamLost = true
        this.reportGone(event.reason)
        return
      case 'exited':
        this.#statuses.noteExit(event.containerId, event.exit)
        void this.#lookForOomKill(event.containerId)
        break
      case 'oom':
        // An OOM event may arrive after the exit.
        this.#statuses.noteOomKill(event.containerId)
        this.#hasOomKill = true
        break
      case 'created':
      case 'started':
      case 'deleted':
        break
    }
    const owner = this.#owners.get(event.containerId)
    if (owner !== undefined) this.#options.onChange(owner)
  }

  /**
   * containerd tells of an OOM kill by an event alone, which it leaves out where it finds the container's cgroup gone by then
   * (cgroup version 1): the kernel's own count is looked at before that. Never rejects.
   */
  async #lookForOomKill(containerId: ContainerId): Promise<void> {
    const uid = this.#owners.get(containerId)
    if (uid === undefined) return
    try {
      if (await this.#options.hasOomKills(uid, containerId)) this.#onEvent({ kind: 'oom', containerId })
    } catch (error) {
      this.#options.logger.debug({ uid, id: containerId, err: error }, 'cannot look for OOM kills')
    }
  }

  /** Whether the runtime still holds exactly what was last observed, so that nothing has to be read or dropped. */
  #isAsBefore({ sandboxes, containers }: Listing): boolean {
    if (!this.#hasListed || this.#hasOomKill || this.#statuses.hasExits) return false
    if (this.#owners.size !== sandboxes.length + containers.length) return false
    return isAsListed({ pods: this.#pods, owners: this.#owners }, sandboxes, containers)
  }

  /**
   * @param silent collects the pods of which a status was not read in time: their observation is incomplete. Without
   * it, that is an error.
   */
  #observe(listing: Listing, silent?: Set<PodUid>): Promise<ReadonlyMap<PodUid, ObservedPod>> {
    for (const { id, labels } of [...listing.sandboxes, ...listing.containers]) {
      const uid = labels[labelKeys.podUid]
      if (uid !== undefined) this.#owners.set(id, uid)
    }
    return observeListing(listing, this.#statuses, (id, error) => {
      const uid = this.#owners.get(id)
      if (silent === undefined || uid === undefined || !this.#options.isTimeout(error)) throw error
      silent.add(uid)
    })
  }

  /** Drops what was known before the list began and is not in it. Keeps what was created since. */
  #forget(knownBefore: ReadonlySet<string>, pods: ReadonlyMap<PodUid, ObservedPod>): void {
    const ids = new Set<string>()
    for (const pod of pods.values()) for (const { id } of [...pod.sandboxes, ...pod.containers]) ids.add(id)
    for (const id of knownBefore) {
      if (ids.has(id)) continue
      this.#owners.delete(id)
      this.#statuses.forget(id)
    }
  }
}
