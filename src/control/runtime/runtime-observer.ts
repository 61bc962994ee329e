import type { Clock } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { RandomSource } from '../../base/random.ts'
import { mapBounded, Semaphore, WakeSlot } from '../../base/waits.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { ObservedPod, ProcessExit, RuntimeEvent } from '../../pod/state/observed.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { ContainerId, PodKey, PodUid, SandboxId } from '../../pod/values/ids.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import { instanceSelector, labelKeys } from '../../translate/identity.ts'
import { containerStates, observePods } from '../../translate/observe.ts'

export type ObserverCalls = Pick<
  RuntimeService,
  'listPodSandbox' | 'listContainers' | 'podSandboxStatus' | 'containerStatus'
>

/** `unserved`: this runtime has no events at all; it has to be listed again and again. */
export type ObserverEvent = RuntimeEvent | { readonly kind: 'unserved' }

export interface RuntimeEventSource {
  /** Calls `onEvent` until the signal is aborted; losses of the connection and reconnections are events too. */
  run(onEvent: (event: ObserverEvent) => void, signal: AbortSignal): Promise<void>
}

/** What is observed, and who hears of it. */
interface ObserverEnv {
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
  /** The runtime became available, or unavailable and why. */
  readonly onHealth: (problem: string | undefined) => void
  /** Whether the kernel has killed for memory in a container that has just ended. */
  readonly hasOomKills: (uid: PodUid, containerId: ContainerId) => Promise<boolean>
}

/** Without events, the full list is all there is (the kubelet's PLEG period). */
const relistWithoutEventsMs = 1000

/** How many pods are read at a time: what a runtime answers of thousands at once would hold the event loop. */
const readsAtOnce = 32

/**
 * What runs, read from the runtime: the only writer of the observed state. Events are hints that wake a
 * pod's worker, which then reads its pod again (`read`), so that no pod acts on an observation older
 * than its own last write; a slow full relist finds what an event missed.
 */
export class RuntimeObserver {
  readonly #env: ObserverEnv
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
  readonly #reads = new Semaphore(readsAtOnce)
  #polling: boolean
  #streamLost = false
  /** Undefined before the first list. */
  #health: { readonly problem: string | undefined } | undefined
  /** See `losses`; a list that began before the last one doesn't prove that the runtime is back. */
  #losses = 0
  /** Since the last full list an event reported an OOM kill, which no list shows. */
  #hasOomKill = false
  /** The first full list is complete: a pod that was not in it was created by this podd. */
  #hasListed = false
  #listedAtMs: number | undefined

  constructor(env: ObserverEnv) {
    this.#env = env
    this.#statuses = new RuntimeStatuses(env.calls, env.clock)
    this.#polling = env.events === undefined
  }

  /** Runs until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { events } = this.#env
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
    this.#setHealth(message)
    this.#relistSlot.wake()
  }

  /** Asks for a full relist soon. */
  requestRelist(): void {
    this.#relistSlot.wake()
  }

  /** What the runtime currently holds of one pod; `undefined` where it holds nothing. */
  read(uid: PodUid): Promise<ObservedPod | undefined> {
    return this.#reads.run(() => this.#read(uid))
  }

  async #read(uid: PodUid): Promise<ObservedPod | undefined> {
    const selector = { ...instanceSelector(this.#env.instance), [labelKeys.podUid]: uid }
    const pods = await this.#observe(await listRuntime(this.#env.calls, selector))
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
    const { calls, instance } = this.#env
    const listing = await listRuntime(calls, instanceSelector(instance))
    const knownBefore = new Set([...[...this.#owners.keys()].slice(0, ownersBefore), ...exitedBefore])
    const silent = new Set<PodUid>()
    const { same, rest } = this.#selectChanged(listing)
    const read = await this.#observe(rest, this.#hasListed ? silent : undefined)
    const before = this.#pods
    const pods = new Map<PodUid, ObservedPod>()
    for (const uid of new Set([...listing.sandboxes, ...listing.containers].map(uidOf))) {
      const pod = read.get(uid) ?? same.get(uid)
      if (pod !== undefined) pods.set(uid, pod)
    }
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
      const [one, other] = [before.get(uid), pods.get(uid)]
      if (one !== other && fingerprint(one) !== fingerprint(other)) this.#env.onChange(uid)
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
    const { clock } = this.#env
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
      if (losses === this.#losses) this.#setHealth(undefined)
    } catch (error) {
      // The first report of the loss has a better reason than a call that could not be sent.
      if (this.#health?.problem !== undefined) return
      this.#env.logger.warn({ err: error }, 'cannot list the containers of the runtime')
      this.#setHealth(errorMessage(error))
    }
  }

  #relistPeriodMs(): number {
    const { random, relistMs } = this.#env
    const isHealthy = this.#health !== undefined && this.#health.problem === undefined
    const often = this.#polling || this.#streamLost || !isHealthy
    return (often ? relistWithoutEventsMs : relistMs) * (1 + random() * 0.1)
  }

  #setHealth(problem: string | undefined): void {
    if (this.#health !== undefined && this.#health.problem === problem) return
    this.#health = { problem }
    this.#env.onHealth(problem)
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
        this.#env.logger.warn({ reason: event.reason }, 'the runtime event stream broke')
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
    if (owner !== undefined) this.#env.onChange(owner)
  }

  /**
   * containerd tells of an OOM kill by an event alone, which it leaves out where it finds the container's cgroup gone by then
   * (cgroup version 1): the kernel's own count is looked at before that. Never rejects.
   */
  async #lookForOomKill(containerId: ContainerId): Promise<void> {
    const uid = this.#owners.get(containerId)
    if (uid === undefined) return
    try {
      if (await this.#env.hasOomKills(uid, containerId)) this.#onEvent({ kind: 'oom', containerId })
    } catch (error) {
      this.#env.logger.debug({ uid, id: containerId, err: error }, 'cannot look for OOM kills')
    }
  }

  /**
   * The pods that the runtime still holds exactly as they were observed last, and what it lists of the others: to observe
   * thousands again because one has changed would hold the event loop.
   */
  #selectChanged(listing: Listing) {
    const same = new Map<PodUid, ObservedPod>()
    if (this.#hasListed && !this.#hasOomKill) {
      const ended = new Set(this.#statuses.exited())
      const sandboxes = Map.groupBy(listing.sandboxes, uidOf)
      const containers = Map.groupBy(listing.containers, uidOf)
      for (const [uid, known] of this.#pods) {
        const listed = { sandboxes: sandboxes.get(uid) ?? [], containers: containers.get(uid) ?? [] }
        if (isAsListed(known, listed, ended)) same.set(uid, known)
      }
    }
    this.#hasOomKill = false
    return {
      same,
      rest: {
        sandboxes: listing.sandboxes.filter((sandbox) => !same.has(uidOf(sandbox))),
        containers: listing.containers.filter((container) => !same.has(uidOf(container))),
      },
    }
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
      if (silent === undefined || uid === undefined || !isCriError(error, 'RUNTIME_TIMEOUT')) throw error
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

/** Empty for what is no pod's. */
function uidOf({ labels }: { readonly labels: Readonly<Record<string, string>> }): PodUid {
  return labels[labelKeys.podUid] ?? ''
}

/** Whether the runtime lists exactly what is known of a pod, and of none of it an end was reported since it was read. */
function isAsListed(
  pod: ObservedPod,
  { sandboxes, containers }: Listing,
  ended: ReadonlySet<string>,
): boolean {
  if (pod.sandboxes.length !== sandboxes.length || pod.containers.length !== containers.length) return false
  if ([...pod.sandboxes, ...pod.containers].some(({ id }) => ended.has(id))) return false
  return (
    sandboxes.every(
      ({ id, state }) =>
        pod.sandboxes.find((known) => known.id === id)?.ready === (state === 'SANDBOX_READY'),
    ) &&
    // Of a provisional state the runtime did not report the end yet.
    containers.every(({ id, state }) =>
      pod.containers.some(
        (known) => known.id === id && known.provisional !== true && known.state === containerStates[state],
      ),
    )
  )
}

/** What the runtime lists, of one pod or of all. */
interface Listing {
  readonly sandboxes: readonly cri.PodSandbox[]
  readonly containers: readonly cri.Container[]
}

async function listRuntime(
  calls: ObserverCalls,
  labelSelector: Readonly<Record<string, string>>,
): Promise<Listing> {
  const filter = Object.keys(labelSelector).length === 0 ? {} : { filter: { labelSelector } }
  const [sandboxes, containers] = await Promise.all([
    calls.listPodSandbox(filter),
    calls.listContainers(filter),
  ])
  return { sandboxes: sandboxes.items, containers: containers.containers }
}

/**
 * Reads the statuses of what is listed.
 * @param onError of a status that can't be read: throws, or leaves that sandbox or container out
 */
async function observeListing(
  { sandboxes, containers }: Listing,
  statuses: RuntimeStatuses,
  onError: (id: string, error: unknown) => undefined,
): Promise<ReadonlyMap<PodUid, ObservedPod>> {
  const orLeftOut = <Status>(id: string, status: Promise<Status>): Promise<Status | undefined> =>
    status.catch((error: unknown) => onError(id, error))
  const [sandboxStatuses, containerStatuses] = await Promise.all([
    mapBounded(sandboxes, (item) => orLeftOut(item.id, statuses.ofSandbox(item))),
    mapBounded(containers, (item) => orLeftOut(item.id, statuses.ofContainer(item))),
  ])
  // Without a status it was removed since the list: its exit is unknown.
  const heldSandboxes = sandboxes.flatMap((sandbox, index) => {
    const status = sandboxStatuses[index]
    return status === undefined ? [] : [{ listed: { ...sandbox, state: status.state }, status }]
  })
  const heldContainers = containers.flatMap((container, index) => {
    const status = containerStatuses[index]
    return status === undefined ? [] : [{ listed: { ...container, state: status.state }, status }]
  })
  return observePods({
    sandboxes: heldSandboxes.map(({ listed }) => listed),
    containers: heldContainers.map(({ listed }) => listed),
    sandboxStatuses: new Map(heldSandboxes.map(({ status }) => [status.id, status])),
    containerStatuses: new Map(heldContainers.map(({ status }) => [status.id, status])),
    isProvisional: (status) => statuses.isProvisional(status),
  })
}

/** Observations of a pod with equal fingerprints lead a worker to the same actions. */
function fingerprint(pod: ObservedPod | undefined): string {
  if (pod === undefined) return ''
  const sandboxes = pod.sandboxes.map((sandbox) => `${sandbox.id}:${sandbox.ready}`)
  const containers = pod.containers.map((container) => `${container.id}:${container.state}`)
  return [...sandboxes, ...containers].join(' ')
}

/** After an exit event the runtime's own records may lag behind for a moment. */
const exitSettleDelaysMs = [2, 4, 8, 16, 32, 64, 128, 256]

/**
 * The statuses of the containers and sandboxes that the runtime lists: each read once per state, and taken from
 * events while the runtime itself does not report an exit yet.
 */
class RuntimeStatuses {
  readonly #calls: ObserverCalls
  readonly #clock: Clock
  /** Statuses that can no longer change, or have not changed since they were read, by id and state. */
  readonly #containerStatuses = new Map<ContainerId, cri.ContainerStatus>()
  readonly #sandboxStatuses = new Map<SandboxId, cri.PodSandboxStatus>()
  /** Exits reported by events; without `exit`, the status is read until the runtime reports the exit too. */
  readonly #exited = new Map<string, ProcessExit | undefined>()
  readonly #oomKilled = new Set<ContainerId>()
  readonly #provisional = new WeakSet<cri.ContainerStatus>()

  constructor(calls: ObserverCalls, clock: Clock) {
    this.#calls = calls
    this.#clock = clock
  }

  /** The ids whose end an event reported and that were not read since. */
  exited(): Iterable<string> {
    return this.#exited.keys()
  }

  /** Read elsewhere, just now. */
  noteSandbox(status: cri.PodSandboxStatus): void {
    this.#sandboxStatuses.set(status.id, status)
  }

  noteExit(id: string, exit: ProcessExit | undefined): void {
    this.#exited.set(id, exit ?? this.#exited.get(id))
  }

  noteOomKill(id: ContainerId): void {
    this.#oomKilled.add(id)
  }

  /** It is gone. */
  forget(id: string): void {
    for (const known of [this.#containerStatuses, this.#sandboxStatuses, this.#exited, this.#oomKilled])
      known.delete(id)
  }

  /** Undefined where it was removed meanwhile. */
  async ofSandbox(sandbox: cri.PodSandbox): Promise<cri.PodSandboxStatus | undefined> {
    const { id } = sandbox
    const status = await this.#readStatus({
      id,
      listedState: sandbox.state,
      cache: this.#sandboxStatuses,
      read: async () => (await this.#calls.podSandboxStatus({ podSandboxId: id })).status,
      isOver: ({ state }) => state === 'SANDBOX_NOTREADY',
    })
    const exited = this.#exited.get(id) !== undefined
    return exited && status !== undefined ? { ...status, state: 'SANDBOX_NOTREADY' } : status
  }

  /** Undefined where it was removed meanwhile. */
  async ofContainer(container: cri.Container): Promise<cri.ContainerStatus | undefined> {
    const { id } = container
    const status = await this.#readStatus({
      id,
      listedState: container.state,
      cache: this.#containerStatuses,
      read: async () => (await this.#calls.containerStatus({ containerId: id })).status,
      isOver: ({ state }) => state === 'CONTAINER_EXITED',
    })
    const oomKilled = this.#oomKilled.has(id)
    // It was read before the event that tells why it ended.
    if (oomKilled && status?.state === 'CONTAINER_EXITED') return { ...status, reason: 'OOMKilled' }
    const exit = this.#exited.get(id)
    if (exit === undefined || status?.state !== 'CONTAINER_RUNNING') return status
    const provisional = withExit(status, exit, oomKilled)
    this.#provisional.add(provisional)
    return provisional
  }

  /** Whether the exit in this status is taken from an event, and not reported by the runtime itself yet. */
  isProvisional(status: cri.ContainerStatus): boolean {
    return this.#provisional.has(status)
  }

  /**
   * A status as the runtime gives it, from the cache where it can't have changed. After an exit event without details
   * the runtime is asked again for a moment, until its status shows the exit.
   */
  async #readStatus<Status extends { readonly state: string }>(facts: {
    readonly id: string
    readonly listedState: Status['state']
    readonly cache: Map<string, Status>
    readonly read: () => Promise<Status | null>
    readonly isOver: (status: Status) => boolean
  }): Promise<Status | undefined> {
    const { id, cache, isOver } = facts
    const known = cache.get(id)
    const mustSettle = this.#exited.has(id) && this.#exited.get(id) === undefined
    if (known?.state === facts.listedState && (!mustSettle || isOver(known))) return known
    try {
      let status = await facts.read()
      for (const delayMs of mustSettle ? exitSettleDelaysMs : []) {
        if (status === null || isOver(status)) break
        await this.#clock.sleep(delayMs)
        status = await facts.read()
      }
      if (status === null) return undefined
      if (mustSettle || isOver(status)) this.#exited.delete(id)
      cache.set(id, status)
      return status
    } catch (error) {
      // Removed between the list and the status call.
      if (isCriError(error, 'RUNTIME_NOT_FOUND')) return undefined
      throw error
    }
  }
}

/**
 * The status that the runtime will report once it has cleaned up after the process. In containerd that takes some 50
 * ms, in which a successor can run already.
 */
function withExit(status: cri.ContainerStatus, exit: ProcessExit, oomKilled: boolean): cri.ContainerStatus {
  const reason = oomKilled ? 'OOMKilled' : exit.exitCode === 0 ? 'Completed' : 'Error'
  const finishedAt = Math.round(exit.atMs * 1e6)
  return { ...status, state: 'CONTAINER_EXITED', exitCode: exit.exitCode, finishedAt, reason }
}
