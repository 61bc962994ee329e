import type { PodObject } from '../api/objects.ts'
import type { Clock, Timer } from '../base/clock.ts'
import { PoddError, errorMessage } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import { sameData } from '../base/json.ts'
import type { Logger } from '../base/logger.ts'
import type { RandomSource } from '../base/random.ts'
import { WakeSlot } from '../base/wake-slot.ts'
import type { Admission } from '../decide/admit-pod.ts'
import { computeEndingActions } from '../decide/compute-ending-actions.ts'
import { computePodActions, hasFinished } from '../decide/compute-pod-actions.ts'
import { deriveStatus } from '../decide/derive-status.ts'
import type { PodAction, Waiting } from '../decide/pod-action.ts'
import { sandboxHold } from '../decide/pod-facts.ts'
import type { Hold, PodFacts, ProbeVerdicts } from '../decide/pod-facts.ts'
import { computeEnding, freesNameWithContainers, goesAwayAfter } from '../decide/pod-ending.ts'
import type { EndRequest } from '../decide/pod-ending.ts'
import type { BackoffLimits } from '../decide/restart-policy.ts'
import { growsRequests, podAsApplied, selectResizes } from '../decide/resize.ts'
import type { ResizeRefusal, ResizeState } from '../decide/resize.ts'
import { selectOpenRestarts, selectRestarts } from '../decide/restart-request.ts'
import { endingDeadlineMs } from '../decide/termination-order.ts'
import { podManifestHash } from '../pod/hash.ts'
import type { PodRef, PodUid } from '../pod/ids.ts'
import type { ObservedContainer, ObservedPod } from '../pod/observed.ts'
import type { EventRecorder } from '../pod/pod-event.ts'
import type { PodRecord } from '../pod/pod-record.ts'
import { withClasses } from '../pod/pod-classes.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import { computeSpecHash } from './config-hash.ts'
import { executeActions } from './execute-actions.ts'
import { PassPace } from './pass-pace.ts'
import type { ImagePuller } from './image-puller.ts'
import type { PodContext } from './pod-context.ts'
import type { PodHost } from './pod-host.ts'
import { PodMemory } from './pod-memory.ts'
import type { PodMemoryDeps } from './pod-memory.ts'
import { toPodObject } from './pod-object.ts'
import { VolumeRefresh } from './volume-refresh.ts'
import { readTerminationMessage } from './termination-message.ts'

/** What a worker begins with. */
export interface NewWorker {
  readonly record: PodRecord
  readonly pod: Pod
  /** The record stands on disk already. */
  readonly saved: boolean
  readonly observed?: ObservedPod
  /** Images that were pulled a moment ago for this pod. */
  readonly pulled?: ReadonlySet<string>
}

export interface PodWorkerDeps {
  readonly host: PodHost
  readonly images: ImagePuller
  readonly events: EventRecorder
  readonly records: PodMemoryDeps['records']
  readonly observe: (uid: PodUid) => Promise<ObservedPod | undefined>
  readonly probes: ProbeVerdicts
  readonly publish: (uid: PodUid, object: PodObject | undefined) => void
  /** The facts behind the probes: called whenever what is to be probed may have changed. */
  readonly onObserved: (worker: PodWorker, observed: ObservedPod) => void
  /** The pod reached another stage, or finished. */
  readonly onStage: (worker: PodWorker) => void
  readonly clock: Clock
  readonly random: RandomSource
  readonly logger: Logger
  readonly limits: BackoffLimits
  /** `containerd` */
  readonly runtimeName: () => string
  /** Whether this runtime handler can make mounts read-only all the way down. */
  readonly recursiveReadOnly: (runtimeHandler: string) => boolean
  /** Whether all is known that pods refer to: what isn't there now is missing, and not just not read yet. */
  readonly objectsKnown: () => boolean
  /** Undefined while the runtime can take calls; else why not. */
  readonly runtimeProblem: () => string | undefined
}

/**
 * Where a pod stands:
 *
 *     waiting ──admit──▶ active ──end──▶ ending ──all stopped──▶ stopped ──cleaned up──▶ gone
 *        └──────────────────end────────────▲
 *
 * `stopped`: nothing of it runs and its ports are free, so that its successor may start.
 */
export type PodStage = 'waiting' | 'active' | 'ending' | 'stopped' | 'gone'

/** How long what is left of a pod may wait for its successor's start, which it would only hinder. */
const remainsWaitMs = 2000
/** A pass that is done sooner shows the news itself. */
const newsDelayMs = 1000
const errorRetryMs = 10_000
const endingRetryMs = 2000

/** Thrown into a pass to make it let go of its waits. */
class Interrupted extends PoddError {
  constructor() {
    super('INTERRUPTED', 'the pod has something more urgent to do')
  }
}

/**
 * One pod's life, one pass after another: observe, remember, decide, publish, act. It alone writes the
 * pod's record. Whoever wakes it says no more than "look": there is no queue, the newest facts win.
 */
export class PodWorker {
  readonly ref: PodRef
  readonly #deps: PodWorkerDeps
  readonly #slot = new WakeSlot()
  readonly #pace = new PassPace()
  readonly #holds = new Map<string, Hold>()
  /** Images that were made sure of a moment ago: the next start doesn't ask the registry again. */
  readonly #fresh: Set<string>
  readonly #memory: PodMemory
  #pod: Pod
  #stage: PodStage
  #admission: Admission | undefined
  #observed: ObservedPod
  #waiting: ReadonlyMap<string, Waiting> = new Map()
  #resize: ResizeState | undefined
  #resizeRefusal: ResizeRefusal | undefined
  /** Ends the waits of the pass under way: the pod ends, or podd lets go of it. */
  #interrupt = new AbortController()
  /** Ends only waits for what a changed manifest may not want any more. */
  #outdate = new AbortController()
  #timer: Timer | undefined
  /** Actions are being carried out. */
  #acting = false
  #newsTimer: Timer | undefined
  #passes = 0
  #stopping = false
  /** All its sandboxes were stopped in this ending: ports and addresses are free. */
  #stoppedInFull = false
  /** Nothing of it can be in the runtime: its UID is new. */
  #unheardOf: boolean
  /** Its containers were started, as far as they could be. */
  #settled = false
  /** When its remains may go at the latest, on the monotonic clock; undefined once they may. */
  #remainsUntilMs: number | undefined
  /** Another pod bears its name now: this one is shown no more. */
  #superseded = false
  #loop: Promise<void> | undefined
  #lastError: string | undefined
  readonly #volumeRefresh: VolumeRefresh
  /** It was looked at since this podd began. */
  #seen = false

  constructor(deps: PodWorkerDeps, input: NewWorker) {
    const { record, pod } = input
    this.#deps = deps
    this.#memory = new PodMemory(
      {
        records: deps.records,
        readEndMessage: (container) => this.#endMessage(container),
        onUnwritten: (message) => this.#event('Warning', 'FailedSync', message),
      },
      input,
    )
    this.#pod = pod
    this.#fresh = new Set(input.pulled)
    this.#unheardOf = !input.saved && input.observed === undefined
    this.#volumeRefresh = new VolumeRefresh(deps.clock, () => this.wake())
    this.ref = { namespace: record.namespace, name: record.name, uid: record.uid }
    this.#stage = record.ending === undefined ? 'waiting' : 'ending'
    this.#observed = input.observed ?? { ...this.ref, sandboxes: [], containers: [] }
  }

  get pod(): Pod {
    return this.#pod
  }

  /** The pod with what its classes added when it was admitted. */
  get classedPod(): Pod {
    return withClasses(this.#pod, this.record.classes)
  }

  get record(): PodRecord {
    return this.#memory.record
  }

  get stage(): PodStage {
    return this.#stage
  }

  get observed(): ObservedPod {
    return this.#observed
  }

  /** It is ending, and nothing of it will stay. */
  get goesAway(): boolean {
    return this.record.ending !== undefined && goesAwayAfter(this.record.ending)
  }

  /** Whether any of its containers runs, as far as is known. */
  get hasRunning(): boolean {
    return this.#observed.containers.some((container) => container.state === 'running')
  }

  /** It failed or finished, and nothing of it will run again. */
  get hasEnded(): boolean {
    if (this.record.failed !== undefined) return !this.hasRunning
    return hasFinished(this.#restartFacts())
  }

  /** Whether it holds no ports and no resources any more: it has ended, and is kept for its status. */
  get isOver(): boolean {
    return this.hasEnded && !this.#observed.sandboxes.some((sandbox) => sandbox.ready)
  }

  /** Whether it has got to where its containers were started, or wait for something. */
  get isSettled(): boolean {
    return this.#settled
  }

  /** Why a running container isn't changed as its manifest was; undefined where none waits for that. */
  get updateProblem(): string | undefined {
    const waits = ({ name, image }: ContainerSpec): boolean =>
      this.#observed.containers.some(
        (container) => container.name === name && container.state === 'running' && container.image !== image,
      )
    const { initContainers, containers } = this.#pod.spec
    const spec = [...initContainers, ...containers].find((each) => waits(each) && this.#holds.has(each.name))
    return spec === undefined ? undefined : this.#holds.get(spec.name)?.waiting.message
  }

  get admission(): Admission | undefined {
    return this.#admission
  }

  /** Begins its work; once. */
  start(): void {
    if (this.#loop !== undefined) return
    this.#loop = this.#run()
    this.#slot.wake()
  }

  wake(): void {
    this.#slot.wake()
  }

  /** There is news of its containers: it looks soon, and if something that takes its time is under way, the news are shown meanwhile. */
  notice(): void {
    this.#slot.wake()
    if (this.#acting)
      this.#newsTimer ??= this.#deps.clock.startTimer(newsDelayMs, () => void this.#showNews())
  }

  /** The host has room for it, or not. */
  admit(admission: Admission): void {
    if (sameData(this.#admission, admission)) return
    this.#admission = admission
    if (admission.kind === 'admitted' && admission.classes !== undefined)
      this.#memory.change({ classes: admission.classes })
    if (admission.kind !== 'admitted') {
      const { reason, message } = admission
      this.#event('Warning', reason, message)
    }
    this.#slot.wake()
  }

  /** Whether it asks for more than its running containers have. */
  get wantsToGrow(): boolean {
    return this.#stage === 'active' && selectResizes(this.#restartFacts()).some((one) => growsRequests(one))
  }

  /** Why the host has no room for what it asks for more; undefined where it has. */
  judgeResize(refusal: ResizeRefusal | undefined): void {
    if (sameData(this.#resizeRefusal, refusal)) return
    this.#resizeRefusal = refusal
    if (refusal !== undefined) this.#event('Warning', `Resize${refusal.reason}`, refusal.message)
    this.#slot.wake()
  }

  /** Takes a manifest that changes nothing, or only what may change in place. */
  update(input: {
    readonly pod: Pod
    readonly manifest: JsonObject
    readonly place: Pick<PodRecord, 'source' | 'path'>
  }): void {
    const { source, path, manifest } = this.record
    const isKnown = sameData({ source, path, manifest }, { ...input.place, manifest: input.manifest })
    if (isKnown && sameData(this.#pod, input.pod)) return
    const specChanged = !sameData(this.#pod.spec, input.pod.spec)
    // Labels and annotations may stand in files.
    this.#volumeRefresh.mark()
    this.#pod = input.pod
    this.#memory.change({ ...input.place, manifest: input.manifest })
    if (specChanged) this.#clearBackoff()
    this.#slot.wake()
  }

  /** Something that the pod refers to came, changed or went: what waits for it is tried again. */
  reviewReferences(): void {
    this.#volumeRefresh.mark()
    for (const [key, { waiting }] of this.#holds) {
      if (key === sandboxHold || waiting.reason === 'CreateContainerConfigError') this.#holds.delete(key)
    }
    this.#slot.wake()
  }

  /** Ends the pod. Told again, the grace can only shrink, and what goes away stays on its way. */
  end(request: EndRequest): void {
    if (this.#stage === 'stopped' || this.#stage === 'gone') return
    const before = this.record.ending
    const ending = computeEnding(before, request, this.#deps.clock.wallMs())
    if (ending === before) return
    this.#memory.change({ ending })
    this.#setStage('ending')
    // Something that takes its time may be under way: that the pod ends is shown at once.
    if (this.#seen) this.#publish()
    this.#interruptPass()
    this.#slot.wake()
  }

  /**
   * Makes these containers anew (all but init containers that are through, where none is named), at once and without
   * charging their backoff, whatever the restart policy says of ended ones. Gives their names.
   * Throws PoddError RESTART_REFUSED for a pod that doesn't run.
   */
  restart(wanted: readonly string[] | undefined): readonly string[] {
    const { name } = this.ref
    const refuse = (message: string): PoddError => new PoddError('RESTART_REFUSED', message)
    if (this.record.ending !== undefined) throw refuse(`pod ${name} is ending`)
    if (this.hasEnded) throw refuse(`pod ${name} has finished`)
    if (this.#stage !== 'active') throw refuse(`pod ${name} does not run yet`)
    const choice = selectRestarts(this.#restartFacts(), wanted)
    if ('refused' in choice) {
      const container = `container ${choice.refused} of pod ${name}`
      throw refuse(
        choice.why === 'runs-once'
          ? `${container} is an init container, which runs once`
          : `container ${choice.refused} is not valid for pod ${name}`,
      )
    }
    for (const container of choice.names) this.#holds.delete(container)
    this.#deps.images.clearBackoff(this.ref.uid)
    const restartRequested = [...new Set([...(this.record.restartRequested ?? []), ...choice.ids])]
    this.#memory.change({ restartRequested })
    this.#slot.wake()
    return choice.names
  }

  /** Another pod took its name: the remains of this one wait until that one runs, for a moment at most. */
  supersede(): void {
    this.#superseded = true
    this.#deps.publish(this.ref.uid, undefined)
  }

  /** Of a stopped pod: its remains are in nobody's way, or that doesn't matter any more. */
  cleanUp(): void {
    if (this.#remainsUntilMs === undefined) return
    this.#remainsUntilMs = undefined
    this.#slot.wake()
  }

  /** Lets go of the pod and leaves it running; resolves when the pass under way has let go too. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.#interruptPass()
    this.#slot.wake()
    await this.#loop
  }

  /** Ends only when told to; never rejects. */
  async #run(): Promise<void> {
    while (!this.#stopping && this.#stage !== 'gone') {
      await this.#slot.wait()
      if (this.#stopping) break
      this.#timer?.cancel()
      const paceMs = this.#pace.delayMs(this.#deps.clock.monotonicMs())
      if (paceMs > 0) {
        this.#wakeIn(paceMs)
        continue
      }
      this.#interrupt = new AbortController()
      this.#outdate = new AbortController()
      this.#passes += 1
      try {
        await this.#pass(this.#interrupt.signal)
        this.#lastError = undefined
      } catch (error) {
        if (!(error instanceof Interrupted)) this.#retryLater(error)
      }
    }
    this.#timer?.cancel()
    this.#volumeRefresh.stop()
  }

  #retryLater(error: unknown): void {
    const isEnding = this.record.ending !== undefined
    this.#wakeIn((isEnding ? endingRetryMs : errorRetryMs) * (1 + this.#deps.random() * 0.5))
    const message = errorMessage(error)
    const isNews = message !== this.#lastError
    this.#lastError = message
    const { name: pod, uid } = this.ref
    try {
      if (isNews) {
        this.#deps.logger.warn({ pod, uid, err: error }, 'pod pass failed')
        this.#event('Warning', isEnding ? 'FailedKillPod' : 'FailedSync', message)
      }
      this.#publish()
    } catch (cause) {
      this.#deps.logger.error({ pod, uid, err: cause }, 'the pod cannot be shown')
    }
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const problem = this.#deps.runtimeProblem()
    // The runtime's return wakes every worker.
    if (problem !== undefined) return this.#publish()
    if (this.#remainsUntilMs !== undefined) {
      const leftMs = this.#remainsUntilMs - this.#deps.clock.monotonicMs()
      if (leftMs > 0) return this.#wakeIn(leftMs)
      this.#remainsUntilMs = undefined
    }
    const wasOver = this.isOver
    await this.#observe()
    this.#seen = true
    await this.#memory.rememberEnds(this.#observed)
    this.#forgetRestarts()
    if (this.isOver !== wasOver) this.#deps.onStage(this)
    this.#deps.onObserved(this, this.#observed)
    if (this.record.ending !== undefined) return this.#endPass(signal)
    if (!(await this.#mayRun())) return undefined
    return this.#livePass(signal)
  }

  async #observe(): Promise<void> {
    const isNew = this.#unheardOf
    this.#unheardOf = false
    // What was decided is written down while the runtime is asked.
    const saved = this.record.ending === undefined ? undefined : this.#memory.save('best-effort')
    const observed = isNew ? undefined : await this.#deps.observe(this.ref.uid)
    await saved
    this.#observed = observed ?? { ...this.ref, sandboxes: [], containers: [] }
  }

  /** Blocked, rejected and failed pods are shown and not run. */
  async #mayRun(): Promise<boolean> {
    const admission = this.#admission
    if (admission?.kind === 'rejected' && this.record.failed === undefined) {
      const { reason, message } = admission
      this.#memory.change({ failed: { reason, message, admission: true } })
    }
    if (admission?.kind === 'admitted' && this.record.failed === undefined) {
      this.#setStage('active')
      return true
    }
    await this.#memory.save('required')
    this.#publish()
    return false
  }

  async #livePass(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    if (this.record.startedAtMs === undefined) this.#memory.change({ startedAtMs: clock.wallMs() })
    this.#memory.rememberStartups(this.#observed, this.#deps.probes)
    const overdueMs = this.#activeDeadlineMs()
    if (overdueMs !== undefined && clock.wallMs() >= overdueMs) return this.#exceedDeadline()
    if (this.#observed.sandboxes.length > 0 && this.#deps.objectsKnown()) await this.#refreshVolumes()
    const plan = computePodActions(this.#facts())
    this.#tellOfBackoff(plan.waiting)
    if (plan.restartAll !== undefined) this.#memory.change({ restartAll: [...plan.restartAll] })
    this.#waiting = plan.waiting
    this.#resize = plan.resize
    this.#publish()
    if (plan.actions.length > 0) {
      this.#chargeRestarts(plan.actions)
      await this.#memory.save('required')
      await this.#act(plan.actions, signal)
      this.#settle()
      this.#slot.wake()
      return
    }
    await this.#memory.save('best-effort')
    this.#settle()
    const nowMs = clock.wallMs()
    const saveAgainMs = this.#memory.isSaved ? Infinity : errorRetryMs
    const delayMs = Math.min(
      (plan.wakeAtMs ?? Infinity) - nowMs,
      (overdueMs ?? Infinity) - nowMs,
      saveAgainMs,
    )
    if (delayMs !== Infinity) this.#wakeIn(delayMs)
  }

  /** Brings the files of volumes up to date; what can't be is told and tried again with the next change. */
  async #refreshVolumes(): Promise<void> {
    try {
      await this.#volumeRefresh.run(() => this.#deps.host.volumes.prepare(this.ref.uid, this.#pod))
    } catch (error) {
      this.#event('Warning', 'FailedMount', errorMessage(error))
    }
  }

  /**
   * Takes down what the restarts of this plan cost, so that one write serves for all. Where a sandbox
   * has to be made first, they may never come to pass: there each is charged when it is about to start.
   */
  #chargeRestarts(actions: readonly PodAction[]): void {
    if (actions.some(({ kind }) => kind === 'stop-pod' || kind === 'create-sandbox')) return
    for (const action of actions) if (action.kind === 'start-container') this.#memory.charge(action)
  }

  #tellOfBackoff(waiting: ReadonlyMap<string, Waiting>): void {
    for (const [container, { reason }] of waiting) {
      if (reason !== 'CrashLoopBackOff' || this.#waiting.get(container)?.reason === reason) continue
      const { name, namespace, uid } = this.ref
      const message = `Back-off restarting failed container ${container} in pod ${name}_${namespace}(${uid})`
      this.#deps.events.record({ pod: this.ref, container, type: 'Warning', reason: 'BackOff', message })
    }
  }

  #exceedDeadline(): void {
    this.end({
      cause: 'deadline',
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
      graceSeconds: this.#pod.spec.terminationGracePeriodSeconds,
    })
  }

  #activeDeadlineMs(): number | undefined {
    const seconds = this.#pod.spec.activeDeadlineSeconds
    const { startedAtMs } = this.record
    if (seconds === undefined || startedAtMs === undefined || this.hasEnded) return undefined
    return startedAtMs + seconds * 1000
  }

  async #endPass(signal: AbortSignal): Promise<void> {
    const { ending } = this.record
    if (ending === undefined) return
    await this.#memory.save('best-effort')
    this.#publish()
    const plan = computeEndingActions(this.#observed, { stoppedBefore: this.#stoppedInFull })
    if (plan.kind === 'stop') {
      await this.#act(plan.actions, signal)
      this.#stoppedInFull = true
      // The runtime says that all has ended: whoever waits for that need not wait until it is read back.
      if (goesAwayAfter(ending)) this.#freeName()
      this.#slot.wake()
      return
    }
    if (!goesAwayAfter(ending)) {
      this.#memory.change({
        ending: undefined,
        failed: { reason: ending.reason, message: ending.message },
      })
      await this.#memory.save('required')
      this.#setStage('active')
      this.#slot.wake()
      return
    }
    this.#setStage('stopped')
    await this.#act(plan.actions, signal)
    await this.#cleanUp()
  }

  /** Its successor may start; what is left of this one is cleared away after that. */
  #freeName(): void {
    if (this.#stage === 'stopped') return
    this.#remainsUntilMs = this.#deps.clock.monotonicMs() + remainsWaitMs
    this.#setStage('stopped')
  }

  async #act(actions: readonly PodAction[], signal: AbortSignal): Promise<void> {
    this.#acting = true
    try {
      await executeActions(this.#context(signal), actions)
    } finally {
      this.#acting = false
      this.#newsTimer?.cancel()
      this.#newsTimer = undefined
    }
  }

  /** Shows what changed while actions are carried out; these go by what was seen before. */
  async #showNews(): Promise<void> {
    this.#newsTimer = undefined
    const { signal } = this.#interrupt
    const passes = this.#passes
    try {
      const observed = await this.#deps.observe(this.ref.uid)
      if (observed === undefined || signal.aborted || !this.#acting || passes !== this.#passes) return
      const wasOver = this.isOver
      this.#observed = observed
      this.#deps.onObserved(this, observed)
      if (this.isOver !== wasOver) this.#deps.onStage(this)
      this.#publish()
    } catch (error) {
      const { name: pod, uid } = this.ref
      this.#deps.logger.debug({ pod, uid, err: error }, 'news of the pod cannot be shown')
    }
  }

  /** Leaves nothing behind. The record goes last: a podd that is killed here finishes the work later. */
  async #cleanUp(): Promise<void> {
    const { host, images, publish } = this.#deps
    await host.volumes.teardown(this.ref.uid)
    await host.cgroups.remove(this.ref.uid)
    await host.logs.removeAll(this.ref)
    await this.#memory.remove()
    images.clearBackoff(this.ref.uid)
    publish(this.ref.uid, undefined)
    this.#setStage('gone')
  }

  #restartFacts() {
    const { containers: history, restartRequested, restartAll } = this.record
    return {
      pod: this.#pod,
      observed: this.#observed,
      history,
      restartRequested: new Set(restartRequested),
      restartAll: new Set(restartAll),
    }
  }

  /** A restart is done when the container has a successor. */
  #forgetRestarts(): void {
    for (const key of ['restartRequested', 'restartAll'] as const) {
      const wanted = this.record[key]
      if (wanted === undefined) continue
      const open = selectOpenRestarts(this.#restartFacts(), wanted)
      if (open.length === wanted.length) continue
      this.#memory.change({ [key]: open.length === 0 ? undefined : open })
    }
  }

  async #endMessage(container: ObservedContainer): Promise<string> {
    try {
      return await readTerminationMessage(this.#deps.host, this.ref, container)
    } catch (error) {
      const { name, uid } = this.ref
      this.#deps.logger.warn(
        { pod: name, uid, container: container.name, err: error },
        'termination message unreadable',
      )
      return container.message
    }
  }

  #facts(): PodFacts {
    return {
      ...this.#restartFacts(),
      probes: this.#deps.probes,
      specHash: (container) => this.#specHash(container),
      imageReady: (container) => this.#fresh.has(container.image),
      holds: this.#holds,
      resizeRefusal: this.#resizeRefusal,
      nowMs: this.#deps.clock.wallMs(),
      limits: this.#deps.limits,
    }
  }

  #specHash(container: ContainerSpec): string {
    const running = this.#observed.containers.find(({ name }) => name === container.name)?.specHash
    const { host, objectsKnown } = this.#deps
    return computeSpecHash({ host, pod: this.#pod, container, running, objectsKnown: objectsKnown() })
  }

  #context(signal: AbortSignal): PodContext {
    const { host, images, events, clock, logger } = this.#deps
    const { ending } = this.record
    return {
      ref: this.ref,
      pod: this.classedPod,
      runtimeHandler: this.record.classes?.runtimeHandler ?? '',
      recursiveReadOnly: this.#deps.recursiveReadOnly(this.record.classes?.runtimeHandler ?? ''),
      manifestHash: podManifestHash(this.record.manifest),
      observed: this.#observed,
      host,
      images,
      events,
      clock,
      logger,
      signal,
      manifestSignal: AbortSignal.any([signal, this.#outdate.signal]),
      deadlineMs: ending === undefined ? undefined : endingDeadlineMs(ending, clock.wallMs()),
      charge: async (action) => {
        this.#memory.charge(action)
        await this.#memory.save('required')
      },
      onContainersStopped: () => {
        if (ending !== undefined && freesNameWithContainers(ending, this.#pod)) this.#freeName()
      },
      claimPreStop: (id) => this.#memory.claimPreStop(id, this.#observed),
      hold: (key, hold) => {
        this.#holds.set(key, hold)
      },
      noteFresh: (image) => {
        this.#fresh.add(image)
      },
      takeFresh: (image) => this.#fresh.delete(image),
      appliedPod: () => podAsApplied({ ...this.#restartFacts(), pod: this.classedPod }),
      noteResized: ({ container: { id, name }, to }) =>
        this.#memory.changeContainer(name, { resized: { containerId: id, resources: to } }),
      sandbox: undefined,
    }
  }

  /** What a changed manifest may have mended isn't held back, nor waited for. */
  #clearBackoff(): void {
    this.#holds.clear()
    this.#fresh.clear()
    this.#deps.images.clearBackoff(this.ref.uid)
    this.#memory.forgetBackoffs()
    this.#outdate.abort(new Interrupted())
  }

  #settle(): void {
    if (this.#settled) return
    this.#settled = true
    this.#deps.onStage(this)
  }

  #publish(): void {
    if (this.#superseded) return
    const { clock, host, publish, probes, runtimeName } = this.#deps
    const problem = this.#deps.runtimeProblem()
    const blocked = this.#whyNotStarted(problem)
    const { status, conditions } = deriveStatus({
      pod: this.#pod,
      record: this.record,
      observed: this.#observed,
      probes,
      waiting: this.#waiting,
      blocked,
      runtimeName: runtimeName(),
      hostIps: host.hostIps(),
      resize: this.#resize,
      nowMs: clock.wallMs(),
    })
    if (conditions !== this.record.conditions) this.#memory.change({ conditions })
    publish(this.ref.uid, toPodObject(this.classedPod, this.record, { status, nodeName: host.hostName }))
  }

  #whyNotStarted(problem: string | undefined): Waiting | undefined {
    const admission = this.#admission
    if (admission?.kind === 'blocked') return { reason: admission.reason, message: admission.message }
    if (problem !== undefined) return { reason: 'RuntimeNotReady', message: problem }
    return this.#lastError === undefined ? undefined : { reason: 'FailedSync', message: this.#lastError }
  }

  #setStage(stage: PodStage): void {
    if (this.#stage === stage) return
    this.#stage = stage
    this.#deps.onStage(this)
  }

  #wakeIn(delayMs: number): void {
    this.#timer?.cancel()
    this.#timer = this.#deps.clock.startTimer(delayMs, () => this.#slot.wake())
  }

  #interruptPass(): void {
    this.#interrupt.abort(new Interrupted())
  }

  #event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#deps.events.record({ pod: this.ref, type, reason, message })
  }
}
