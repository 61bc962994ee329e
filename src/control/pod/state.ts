import { readClocks } from '../../base/clock.ts'
import type { ClockReading } from '../../base/clock.ts'
import { sameData } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Admission, Neighbour } from '../../decide/admission/admit-pod.ts'
import {
  containerRetry,
  retryOf,
  nextImageRetry,
  noRetries,
  selectCancelledStarts,
  withRetry,
  withoutCancelledStarts,
  withoutContainer,
  withoutReasons,
  withoutReferenceRetries,
} from '../../decide/plan/backoff.ts'
import type { Retry, RetryKey, Retries } from '../../decide/plan/backoff.ts'
import { computeEnding, goesAwayAfter } from '../../decide/plan/ending.ts'
import type { EndRequest } from '../../decide/plan/ending.ts'
import { blockedWaiting } from '../../decide/plan/pod-action.ts'
import type { PodPlan, Waiting } from '../../decide/plan/pod-action.ts'
import { addClockMoves, clockStep, moveObservedTimes, moveRecordTimes } from '../../decide/plan/clock-set.ts'
import type { ClockStep } from '../../decide/plan/clock-set.ts'
import type { PodFacts } from '../../decide/plan/pod-facts.ts'
import { awaitRuntime, hasFinished } from '../../decide/plan/progress.ts'
import {
  changedResources,
  computeHeldBack,
  podAsAllocated,
  podAsApplied,
  podLevelResources,
} from '../../decide/plan/resize.ts'
import type { ContainerResize, ResizeRefusal, ResizeState } from '../../decide/plan/resize.ts'
import { selectOpenRestarts } from '../../decide/plan/restart-request.ts'
import type { DerivedStatus } from '../../decide/status/derive-status.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { withDebuggers } from '../../pod/schema/default-pod.ts'
import { withClasses } from '../../pod/schema/pod-resources.ts'
import type { ResourceLists } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import { podKey } from '../../pod/values/ids.ts'
import type { ContainerId, PodRef, SandboxId } from '../../pod/values/ids.ts'
import { isImageReason } from '../images/image-request.ts'
import type { PodEnv } from './env.ts'
import { PodMemory } from './memory.ts'
import type { MemoryEnv } from './memory.ts'

/**
 * Where a pod stands:
 *
 * ```
 *   adopted ──confirm──▶ waiting ──admitted──▶ active ──end──▶ ending ──all stopped──▶ stopped ──cleaned up──▶ gone
 *      │                    │                     ▲               ▲ │
 *      └──────── end ───────┴──────── end ────────┼───────────────┘ │
 *                                                 └── ended, kept ──┘
 * ```
 *
 * `adopted`: it is known from the record of an earlier podd, and nothing is done for it until its source confirms it.
 * `ending`, and kept: it was evicted, or exceeded its deadline; its status stays.
 * `stopped`: nothing of it runs and its ports are free, so that its successor may start.
 */
export type PodStage = 'adopted' | 'waiting' | 'active' | 'ending' | 'stopped' | 'gone'

export interface NewWorker {
  readonly record: PodRecord
  readonly pod: Pod
  /** The record is already on disk. */
  readonly saved: boolean
  /** The pod was adopted from an earlier podd: no pass runs before it is confirmed. */
  readonly adopted?: boolean
  readonly observed?: ObservedPod
  /** Images that were just pulled for this pod. */
  readonly pulled?: ReadonlySet<string>
}

/** A manifest that changes nothing of a pod, or only what may change in place. */
export interface PodUpdate {
  readonly pod: Pod
  readonly manifest: JsonObject
  readonly place: Required<Pick<PodRecord, 'source' | 'path' | 'owner'>>
}

export interface HookInFlight {
  /** Rejects where it could not be begun after all. */
  readonly ended: Promise<void>
}

/**
 * The state of one pod, and what follows from it. Everybody reads it; it is changed by its named transitions alone,
 * which stand together below, and by those of its record (PodMemory).
 */
export type PodState = Readonly<PodLife>

/** Who is told of changes of the state. */
interface StateListener {
  /** There may be something to do for the pod. */
  readonly wake: () => void
  /** It reached another stage, settled, or is over or no longer so. */
  readonly onStage: () => void
}

export function createPodState(env: StateEnv, input: NewWorker, listener: StateListener): PodState {
  return new PodLife(env, input, listener)
}

type StateEnv = MemoryEnv & Pick<PodEnv, 'clock'>

class PodLife {
  readonly ref: PodRef
  /** Changed by its own transitions. */
  readonly memory: Omit<PodMemory, 'change' | 'changeContainer'>
  readonly #memory: PodMemory
  /** Image fetches for containers that keep running meanwhile. */
  readonly aheadFetches: AheadFetches
  readonly #onStage: () => void
  pod: Pod
  stage: PodStage
  admission: Admission | undefined
  /** When starts, fetches, sandboxes and resizes that failed are tried again; the backoff of restarts is in the record. */
  retries: Retries = noRetries
  waiting: ReadonlyMap<string, Waiting> = new Map()
  /** By container: the missing reference that keeps a container from being recreated. */
  blockedRestarts: ReadonlyMap<string, string> = new Map()
  resize: ResizeState | undefined
  resizeRefusal: ResizeRefusal | undefined
  /** Exited containers and stopped sandboxes that the node's garbage collection wants removed. */
  condemned: ReadonlySet<string> = new Set()
  /** Whether its containers were started, or wait for something. */
  isSettled = false
  /** Whether this podd has observed it. */
  isSeen = false
  /** Its UID is new, so the runtime can't have anything of it. */
  isUnheardOf: boolean
  /** It is over, and its volumes and its cgroup were removed. */
  isReleased = false
  /** The newest sandbox, where it was stopped for a pod that is blocked. */
  stoppedSandbox: SandboxId | undefined
  /** Its cgroup was removed while it ran. */
  isCgroupRemoved = false
  /** The error of the newest pass, where it failed. */
  lastError: string | undefined
  observed: ObservedPod
  /** With the times as the runtime says them. */
  #observedAsSaid: ObservedPod
  /** The value of `runtimeLosses` when the newest pass read `observed`. */
  lossesWhenSeen = 0
  readonly #fresh: Set<string>
  readonly #postStarts: Set<ContainerId>
  readonly #preStops = new Map<ContainerId, HookInFlight>()
  readonly #linkedLogs = new Map<ContainerId, 'linked' | 'failed'>()
  /** By the wall clock as it is set. */
  #clocks: ClockReading
  /** Those before the first observation: what the runtime says by the clock as it was is not known yet. */
  #earlySteps: readonly ClockStep[] = []
  /** Names of containers that were observed running. The runtime may lose them. */
  readonly #seenRunning = new Set<string>()
  /** What `hasEnded` gave for these: whenever one pod changes, it is asked of all. */
  #ended:
    | {
        readonly record: PodRecord
        readonly pod: Pod
        readonly observed: ObservedPod
        readonly hasEnded: boolean
      }
    | undefined
  /** Undefined before the first observation: see selectCancelledStarts. */
  #cancelledStarts: ReadonlySet<ContainerId> | undefined

  constructor(env: StateEnv, input: NewWorker, listener: StateListener) {
    const { record, pod, observed, pulled, adopted = false } = input
    this.#memory = new PodMemory(env, input)
    this.memory = this.#memory
    this.aheadFetches = new AheadFetches(listener.wake)
    this.#onStage = listener.onStage
    this.ref = { namespace: record.namespace, name: record.name, uid: record.uid }
    this.pod = withDebuggers(pod, record.debuggers)
    this.#clocks = readClocks(env.clock)
    this.#fresh = new Set(pulled)
    this.#postStarts = new Set(record.postStartsDue)
    this.stage = record.ending === undefined ? (adopted ? 'adopted' : 'waiting') : 'ending'
    this.observed = this.nothing
    this.#observedAsSaid = this.nothing
    if (observed !== undefined) this.see(observed)
    this.isUnheardOf = !input.saved && observed === undefined
  }

  // Its life.

  /** A source has confirmed an adopted pod, or its confirmation is no longer awaited. Returns whether it was adopted. */
  confirm(): boolean {
    if (this.stage !== 'adopted') return false
    this.stage = 'waiting'
    return true
  }

  /** It may run, or stays as failed. Not where it is terminating. */
  activate(): void {
    if (this.record.ending !== undefined) return
    this.#enter('active')
  }

  /** Takes a request to end it. Returns whether that changes anything. */
  requestEnd(request: EndRequest, nowMs: number): boolean {
    if (this.stage === 'stopped' || this.stage === 'gone') return false
    this.aheadFetches.cancel()
    const before = this.record.ending
    const ending = computeEnding(before, request, nowMs)
    if (ending === before) return false
    this.#memory.change({ ending })
    this.#enter('ending')
    return true
  }

  /** It has ended, and stays as failed. Not where nothing of it is to remain: a deletion is never revoked. */
  finishEnding(): void {
    const { ending } = this.record
    if (ending === undefined || goesAwayAfter(ending)) return
    const { reason, message, until } = ending
    this.#memory.change({
      ending: undefined,
      failed: { reason, message, ...(until !== undefined && { until, admission: true }) },
    })
  }

  /** Nothing of it runs, and its successor may start. */
  noteStopped(): void {
    this.#enter('stopped')
  }

  noteGone(): void {
    this.#enter('gone')
  }

  #enter(stage: PodStage): void {
    if (this.stage === stage) return
    this.stage = stage
    this.#onStage()
  }

  /** Its containers were started, or wait for something. */
  settle(): void {
    if (this.isSettled) return
    this.isSettled = true
    this.#onStage()
  }

  /** Its volumes and its cgroup were removed, or are needed again. */
  noteReleased(isReleased: boolean): void {
    this.isReleased = isReleased
  }

  // What is desired of it.

  admit(admission: Admission): boolean {
    if (sameData(this.admission, admission)) return false
    this.admission = admission
    // Known classes need no write.
    const classes = admission.kind === 'admitted' ? admission.classes : undefined
    if (classes !== undefined && !sameData(classes, this.record.classes)) this.#memory.change({ classes })
    return true
  }

  /** It is judged again whether it may run. */
  forgetRejection(): void {
    if (this.admission?.kind === 'rejected') this.#memory.change({ failed: undefined })
    this.admission = undefined
  }

  /** Takes why the host has no room for a resize; undefined where it has room. Returns whether there is something to do. */
  takeResizeVerdict(refusal: ResizeRefusal | undefined): boolean {
    if (refusal === undefined) this.#memory.change({ allocated: undefined })
    else if (sameData(this.resizeRefusal, refusal)) return false
    this.resizeRefusal = refusal
    return true
  }

  /** Takes a manifest. Returns what it changed: nothing, metadata that containers don't depend on, or the spec. */
  update({ pod: given, manifest, place }: PodUpdate): 'same' | 'metadata' | 'spec' {
    const pod = withDebuggers(given, this.record.debuggers)
    const { source, path, owner, manifest: before, generation = 1 } = this.record
    const isKnown = sameData({ source, path, owner, manifest: before }, { ...place, manifest })
    if (isKnown && sameData(this.pod, pod)) {
      // A source gives the same objects with each snapshot: from now on they are compared by identity.
      this.pod = pod
      this.memory.shareManifest(manifest)
      return 'same'
    }
    const change = sameData(this.pod.spec, pod.spec) ? 'metadata' : 'spec'
    const allocated =
      this.admission?.kind === 'admitted'
        ? computeHeldBack(this.pod.spec, pod.spec, this.record.allocated)
        : undefined
    if (allocated === undefined) this.resizeRefusal = undefined
    const podResources = podLevelBefore(this, pod)
    this.pod = pod
    this.#memory.change({
      ...place,
      manifest,
      allocated,
      podResources,
      ...(change === 'spec' ? { generation: generation + 1 } : {}),
    })
    return change
  }

  /** Adds ephemeral containers, which go with the pod. Throws PoddError RECORD_WRITE: then none is. */
  async addDebuggers(added: readonly JsonObject[]): Promise<void> {
    await this.memory.commit(({ debuggers = [], generation = 1 }) => ({
      debuggers: [...debuggers, ...added],
      generation: generation + 1,
    }))
    this.pod = withDebuggers(this.pod, this.record.debuggers)
  }

  /** These containers are to be recreated at once. Throws PoddError RECORD_WRITE: then none is. */
  async requestRestarts(names: readonly string[], ids: readonly ContainerId[]): Promise<void> {
    // A request that was refused must not be carried out later.
    await this.memory.commit(({ restartRequested = [] }) => ({
      restartRequested: [...new Set([...restartRequested, ...ids])],
    }))
    for (const container of names) this.retries = withoutContainer(this.retries, container)
  }

  /** These exited containers and stopped sandboxes are to be removed, when nothing else is to be done for it. */
  condemn(ids: ReadonlySet<string>): void {
    this.condemned = ids
  }

  // What is observed of it.

  /** @param losses the value of `runtimeLosses` before it was read; left out by what doesn't begin a pass */
  see(observed: ObservedPod, losses: number = this.lossesWhenSeen): void {
    this.#cancelledStarts ??= selectCancelledStarts(observed, this.record.containers)
    this.#observedAsSaid = withoutCancelledStarts(observed, this.#cancelledStarts)
    this.observed = moveObservedTimes(this.#observedAsSaid, this.record)
    for (const step of this.#earlySteps) this.#moveObserved(step)
    this.#earlySteps = []
    this.lossesWhenSeen = losses
    this.isUnheardOf = false
    for (const { name, state } of this.observed.containers)
      if (state === 'running') this.#seenRunning.add(name)
  }

  noteSeen(): void {
    this.isSeen = true
  }

  /** Tells where it is over, and was not, or the other way round. */
  reviewOver(wasOver: boolean): void {
    if (this.isOver !== wasOver) this.#onStage()
  }

  noteCgroup(isRemoved: boolean): void {
    this.isCgroupRemoved = isRemoved
  }

  noteError(message: string | undefined): void {
    this.lastError = message
  }

  // What its passes decide and do.

  /** A pass of a pod that may run begins. */
  beginPass(now: ClockReading): void {
    this.reviewClock(now)
    if (this.record.startedAtMs === undefined) this.#memory.change({ startedAtMs: now.wallMs })
  }

  /** When the wall clock was set, what was taken by it in this boot moves with it. Returns whether it was. */
  reviewClock(now: ClockReading): boolean {
    const step = clockStep(this.#clocks, now)
    if (step === undefined) return false
    this.#clocks = now
    this.#memory.change(moveRecordTimes(this.record, step))
    if (this.#cancelledStarts === undefined) this.#earlySteps = [...this.#earlySteps, step]
    else this.#moveObserved(step)
    return true
  }

  #moveObserved(step: ClockStep): void {
    this.#memory.change(addClockMoves(this.record, this.observed, step))
    this.observed = moveObservedTimes(this.#observedAsSaid, this.record)
  }

  /** When the host was booted, in wall milliseconds. */
  get bootedAtMs(): number {
    return this.#clocks.wallMs - this.#clocks.uptimeMs
  }

  takePlan({ waiting, resize, blockedRestarts = new Map(), restartAll }: PodPlan): void {
    this.waiting = waiting
    this.resize = resize
    this.blockedRestarts = blockedRestarts
    if (restartAll !== undefined) this.#memory.change({ restartAll: [...restartAll] })
  }

  /** What podd remembers of how it is shown. */
  takeStatus(change: DerivedStatus['recordChange']): void {
    if (change !== undefined) this.#memory.change(change)
  }

  /** None of its containers may start. */
  block(message: string): void {
    const { record, pod, observed } = this
    this.waiting = awaitRuntime({ pod, record, observed }, blockedWaiting(message))
  }

  /** What ran of it while it is blocked was stopped. */
  noteBlockedStop(sandbox: SandboxId | undefined): void {
    this.stoppedSandbox = sandbox
    this.#onStage()
  }

  fail(failed: NonNullable<PodRecord['failed']>): void {
    this.#memory.change({ failed })
  }

  /** A restart is done when the container has a successor. */
  forgetDoneRestarts(): void {
    for (const key of ['restartRequested', 'restartsDue', 'restartAll'] as const) {
      const wanted = this.record[key]
      if (wanted === undefined) continue
      const open = selectOpenRestarts(this.restartFacts, wanted)
      if (open.length === wanted.length) continue
      this.#memory.change({ [key]: open.length === 0 ? undefined : open })
    }
  }

  /** Of the containers that were to be stopped and started again, only these still are. */
  keepRestarts(due: readonly ContainerId[]): void {
    this.#memory.change({ restartsDue: due.length === 0 ? undefined : due })
  }

  /** The container runs without the image that its manifest names; undefined: with it. */
  awaitImage(container: string, awaitedImage: string | undefined): void {
    if (this.record.containers[container]?.awaitedImage !== awaitedImage)
      this.#memory.changeContainer(container, { awaitedImage })
  }

  /** These containers, and the pod itself where `podResources` is set, have their new resources. */
  noteResized(resizes: readonly ContainerResize[], podResources?: ResourceLists): void {
    for (const { container, to } of resizes)
      this.#memory.changeContainer(container.name, { resized: { containerId: container.id, resources: to } })
    if (podResources !== undefined) this.#memory.change({ podResources })
  }

  // What is put off after failures.

  retryLater(key: RetryKey, retry: Retry): void {
    this.retries = withRetry(this.retries, key, retry)
  }

  retryNow(key: RetryKey): void {
    this.retries = withRetry(this.retries, key, undefined)
  }

  /** An object that it refers to has changed. */
  retryReferences(): void {
    this.retries = withoutReferenceRetries(this.retries)
  }

  retryImages(): void {
    this.retries = withoutReasons(this.retries, isImageReason)
  }

  /** A changed manifest may have mended what failed: drops all retries and fetches. */
  forgetFailures(): void {
    this.retries = noRetries
    this.#fresh.clear()
    this.aheadFetches.cancel()
    this.memory.forgetAttempts()
  }

  // Images, hooks and logs.

  /** Images that were just ensured: the next start doesn't ask the registry again. */
  get fresh(): ReadonlySet<string> {
    return this.#fresh
  }

  /** All images that the next start of this container needs are present. */
  noteFetched(container: string, images: readonly string[]): void {
    for (const image of images) this.#fresh.add(image)
    this.retryNow(nextImageRetry(container))
  }

  /** A start has used these images: the next one asks the registry again if the pull policy says so. */
  useImages(images: readonly string[]): void {
    for (const image of images) this.#fresh.delete(image)
  }

  /** Containers whose postStart hook is in flight. */
  get postStarts(): ReadonlySet<ContainerId> {
    return this.#postStarts
  }

  beginPostStart(id: ContainerId): void {
    this.#postStarts.add(id)
  }

  endPostStart(id: ContainerId): void {
    this.#postStarts.delete(id)
  }

  /** preStop hooks in flight, by container. */
  get preStops(): ReadonlyMap<ContainerId, HookInFlight> {
    return this.#preStops
  }

  /** The hook is in flight until it has ended. */
  beginPreStop(id: ContainerId, run: () => Promise<void>): HookInFlight {
    const ended = run().finally(() => this.#preStops.delete(id))
    // Whoever waits for it gets the error.
    ended.catch(() => undefined)
    // Not the promise itself: whoever awaits this would wait for the hook.
    const hook = { ended }
    this.#preStops.set(id, hook)
    return hook
  }

  /** Containers whose log was linked since podd began, or could not be. */
  get linkedLogs(): ReadonlyMap<ContainerId, 'linked' | 'failed'> {
    return this.#linkedLogs
  }

  noteLog(id: ContainerId, result: 'linked' | 'failed'): void {
    this.#linkedLogs.set(id, result)
  }

  forgetLogs(): void {
    for (const id of this.#linkedLogs.keys())
      if (!this.observed.containers.some((container) => container.id === id)) this.#linkedLogs.delete(id)
  }

  // What follows from all this.

  /** The observation of a pod of which the runtime holds nothing. */
  get nothing(): ObservedPod {
    return { ...this.ref, sandboxes: [], containers: [] }
  }

  get record(): PodRecord {
    return this.memory.record
  }

  /** The pod as it was admitted: without resources that it has requested since. */
  get allocatedPod(): Pod {
    return podAsAllocated(this.classedPod, this.record.allocated)
  }

  /** The pod as its manifest requests it, with what its classes added at its admission. */
  get classedPod(): Pod {
    return withClasses(this.pod, this.record.classes)
  }

  /** The pod with the resources that its running containers currently have. */
  get appliedPod(): Pod {
    return podAsApplied({ ...this.restartFacts, pod: this.allocatedPod })
  }

  /** It is terminating, and nothing of it will remain. */
  get goesAway(): boolean {
    return this.record.ending !== undefined && goesAwayAfter(this.record.ending)
  }

  get hasRunning(): boolean {
    return this.observed.containers.some((container) => container.state === 'running')
  }

  /** It failed or finished, and nothing of it will run again. */
  get hasEnded(): boolean {
    const { record, pod, observed } = this
    const known = this.#ended
    if (known?.record === record && known.pod === pod && known.observed === observed) return known.hasEnded
    const hasEnded = record.failed === undefined ? hasFinished(this.restartFacts) : !this.hasRunning
    this.#ended = { record, pod, observed, hasEnded }
    return hasEnded
  }

  /** Whether it has released its ports and resources: it has ended, and is kept for its status. */
  get isOver(): boolean {
    return this.hasEnded && !this.observed.sandboxes.some((sandbox) => sandbox.ready)
  }

  /** It was rejected, has ended or is terminating: it can no longer change in place. */
  get isPastChange(): boolean {
    const { failed, ending } = this.record
    return (
      this.hasEnded || failed !== undefined || ending !== undefined || this.admission?.kind === 'rejected'
    )
  }

  /** Whether this podd has not admitted it yet. */
  get isWaiting(): boolean {
    return this.stage === 'adopted' || this.stage === 'waiting'
  }

  /** Whether the runtime has anything of it that is alive, as far as is known. */
  get isLive(): boolean {
    const { sandboxes, containers } = this.observed
    return (
      sandboxes.some((sandbox) => sandbox.ready) ||
      containers.some(({ state }) => state !== 'exited' && state !== 'created')
    )
  }

  /** Whether it holds resources of the host: it was admitted, and has not finished; or it runs though it is blocked. */
  get holdsResources(): boolean {
    if (this.stage === 'stopped' || this.stage === 'gone' || this.isOver) return false
    if (this.stage === 'ending' || this.admission?.kind === 'admitted') return true
    if (this.admission?.kind !== 'blocked') return !this.isWaiting
    return this.isLive || this.observed.sandboxes[0]?.id !== this.stoppedSandbox
  }

  /** Why nothing of it may be started that isn't there; undefined where it may. */
  get startBlock(): PodFacts['blocked'] {
    const { admission } = this
    if (admission?.kind !== 'blocked') return undefined
    return { message: admission.message, containers: admission.containers ?? [] }
  }

  asNeighbour(): Neighbour {
    return {
      key: podKey(this.ref),
      pod: this.allocatedPod,
      hasEnded: this.hasEnded,
      isEnding: this.record.ending !== undefined,
    }
  }

  /** Whether it requests more than it was admitted with. */
  get wantsToGrow(): boolean {
    return this.record.allocated !== undefined && this.record.ending === undefined
  }

  /** Whether it has run, and restarts by itself if it has ended. A pod that the runtime has lost counts as run. */
  get isAtWork(): boolean {
    if (this.hasRunning) return true
    if (this.isPastChange || (this.admission !== undefined && this.admission.kind !== 'admitted'))
      return false
    const { observed, record } = this
    const hasRun = (name: string): boolean => {
      const { ended, startedUp, ready } = record.containers[name] ?? {}
      return this.#seenRunning.has(name) || (ended ?? startedUp ?? ready) !== undefined
    }
    return this.pod.spec.containers.some(
      ({ name }) =>
        hasRun(name) ||
        observed.containers.some((container) => container.name === name && container.state !== 'created'),
    )
  }

  /** Why a container keeps running with its old spec although its manifest changed; undefined where none does. */
  get updateProblem(): string | undefined {
    const goesOn = ({ name, image }: ContainerSpec): boolean => {
      const newest = this.observed.containers.find((container) => container.name === name)
      if (newest === undefined || newest.image === image) return false
      return newest.state === 'running' || this.waiting.get(name)?.reason === 'CrashLoopBackOff'
    }
    const why = ({ name, image }: ContainerSpec): string | undefined => {
      const own = retryOf(this.retries, containerRetry(name))
      const retry = retryOf(this.retries, nextImageRetry(name)) ?? (own?.image === image ? own : undefined)
      return retry?.waiting.message ?? this.blockedRestarts.get(name)
    }
    const { initContainers, containers } = this.pod.spec
    const spec = [...initContainers, ...containers].find((each) => goesOn(each) && why(each) !== undefined)
    return spec === undefined ? undefined : why(spec)
  }

  get restartFacts() {
    const { containers: history, podResources, restartRequested, restartsDue, restartAll } = this.record
    const { postStartsDue } = this.record
    return {
      pod: this.pod,
      observed: this.observed,
      history,
      podResources,
      restartRequested: new Set(restartRequested),
      restartsDue: new Set(restartsDue),
      restartAll: new Set(restartAll),
      ...(postStartsDue !== undefined && { postStartsDue }),
    }
  }

  /** Its active deadline by the wall clock; undefined where it has none, or is over. */
  get activeDeadlineMs(): number | undefined {
    const seconds = this.pod.spec.activeDeadlineSeconds
    const { startedAtMs } = this.record
    if (seconds === undefined || startedAtMs === undefined || this.hasEnded) return undefined
    return startedAtMs + seconds * 1000
  }
}

/**
 * The pod-level resources that stay allocated whatever the new version requests; undefined where it requests the same.
 */
function podLevelBefore({ record, pod: before }: PodState, after: Pod): PodRecord['podResources'] {
  if (record.podResources !== undefined) return record.podResources
  const applied = podLevelResources(podAsAllocated(before, record.allocated).spec)
  return changedResources(applied, podLevelResources(after.spec)).length === 0 ? undefined : applied
}

/**
 * Image fetches in flight for containers that keep running meanwhile, one per container. A pull may take long, and the
 * pod's passes don't wait for it.
 */
class AheadFetches {
  readonly #onEnd: () => void
  readonly #inFlight = new Map<string, AbortController>()

  /** @param onEnd a fetch has ended without being cancelled, successfully or not */
  constructor(onEnd: () => void) {
    this.#onEnd = onEnd
  }

  has(container: string): boolean {
    return this.#inFlight.has(container)
  }

  /** @param fetch never rejects; its result is ignored once the signal is aborted */
  begin(container: string, fetch: (signal: AbortSignal) => Promise<void>): void {
    this.#inFlight.get(container)?.abort()
    const abort = new AbortController()
    this.#inFlight.set(container, abort)
    void fetch(abort.signal).finally(() => {
      if (abort.signal.aborted) return
      this.#inFlight.delete(container)
      this.#onEnd()
    })
  }

  /** Cancels the fetch for this container, or all of them without a name. */
  cancel(container?: string): void {
    for (const [name, abort] of this.#inFlight) {
      if (container !== undefined && container !== name) continue
      abort.abort()
      this.#inFlight.delete(name)
    }
  }
}
