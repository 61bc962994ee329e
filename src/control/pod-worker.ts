import type { Timer } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import { sameData } from '../base/json.ts'
import type { RandomSource } from '../base/random.ts'
import type { Admission } from '../decide/admit-pod.ts'
import { computeEndingActions } from '../decide/compute-ending-actions.ts'
import { computePodActions } from '../decide/compute-pod-actions.ts'
import type { PodAction, Waiting } from '../decide/pod-action.ts'
import { computeEnding, freesNameWithContainers, goesAwayAfter } from '../decide/pod-ending.ts'
import type { EndRequest } from '../decide/pod-ending.ts'
import { sandboxHold } from '../decide/pod-facts.ts'
import { computeHeldBack } from '../decide/resize.ts'
import type { ResizeRefusal } from '../decide/resize.ts'
import { selectOpenRestarts } from '../decide/restart-request.ts'
import type { PodRef, PodUid } from '../pod/ids.ts'
import type { ObservedPod } from '../pod/observed.ts'
import type { PodRecord } from '../pod/pod-record.ts'
import type { Pod } from '../pod/schema/pod-schema.ts'
import { executeActions } from './execute-actions.ts'
import { Interrupted, PassLoop } from './pass-loop.ts'
import type { PodContext } from './pod-context.ts'
import { PodDisplay } from './pod-display.ts'
import type { PodDisplayDeps } from './pod-display.ts'
import type { PodHost } from './pod-host.ts'
import { PodMemory } from './pod-memory.ts'
import type { PodMemoryDeps } from './pod-memory.ts'
import { gatherPodFacts, makePodContext } from './pod-pass.ts'
import type { PodPassDeps } from './pod-pass.ts'
import { PodState } from './pod-state.ts'
import type { NewWorker, PodStage } from './pod-state.ts'
import { requestRestart } from './request-restart.ts'
import { readEndMessage } from './termination-message.ts'
import { VolumeRefresh } from './volume-refresh.ts'

export interface PodWorkerDeps extends PodPassDeps, PodDisplayDeps {
  readonly host: PodHost
  readonly records: PodMemoryDeps['records']
  readonly observe: (uid: PodUid) => Promise<ObservedPod | undefined>
  /** The facts behind the probes: called whenever what is to be probed may have changed. */
  readonly onObserved: (worker: PodWorker) => void
  /** The pod reached another stage, or finished. */
  readonly onStage: (worker: PodWorker) => void
  readonly random: RandomSource
}

/** How long what is left of a pod may wait for its successor's start, which it would only hinder. */
const remainsWaitMs = 2000
/** A pass that is done sooner shows the news itself. */
const newsDelayMs = 1000
const errorRetryMs = 10_000
const endingRetryMs = 2000

/**
 * One pod's life, one pass after another: observe, remember, decide, publish, act. It alone writes the
 * pod's record. Whoever wakes it says no more than "look": there is no queue, the newest facts win.
 */
export class PodWorker {
  readonly #deps: PodWorkerDeps
  readonly #state: PodState
  readonly #display: PodDisplay
  readonly #loop: PassLoop
  /** Ends only waits for what a changed manifest may not want any more. */
  #outdate = new AbortController()
  /** Actions are being carried out. */
  #acting = false
  #newsTimer: Timer | undefined
  #passes = 0
  /** All its sandboxes were stopped in this ending: ports and addresses are free. */
  #stoppedInFull = false
  /** Nothing of it can be in the runtime: its UID is new. */
  #unheardOf: boolean
  /** When its remains may go at the latest, on the monotonic clock; undefined once they may. */
  #remainsUntilMs: number | undefined
  readonly #volumeRefresh: VolumeRefresh
  /** It is over, and its volumes and its cgroup are gone. */
  #released = false
  /** It was looked at since this podd began. */
  #seen = false

  constructor(deps: PodWorkerDeps, input: NewWorker) {
    this.#deps = deps
    const memory = new PodMemory(
      {
        records: deps.records,
        readEndMessage: (container) => readEndMessage(deps, this.ref, container),
        onUnwritten: (message) => this.#event('Warning', 'FailedSync', message),
      },
      input,
    )
    this.#state = new PodState(memory, input)
    this.#display = new PodDisplay(deps, this.#state)
    this.#unheardOf = !input.saved && input.observed === undefined
    this.#volumeRefresh = new VolumeRefresh(deps.clock, () => this.wake())
    this.#loop = new PassLoop({
      clock: deps.clock,
      pass: (signal) => this.#pass(signal),
      onError: (error) => this.#retryLater(error),
      isDone: () => this.#state.stage === 'gone',
    })
  }

  get ref(): PodRef {
    return this.#state.ref
  }

  /** What it knows of the pod. */
  get state(): Readonly<PodState> {
    return this.#state
  }

  /** Begins its work; once. */
  start(): void {
    this.#loop.start()
  }

  wake(): void {
    this.#loop.wake()
  }

  /** There is news of its containers: it looks soon, and if something that takes its time is under way, the news are shown meanwhile. */
  notice(): void {
    this.#loop.wake()
    if (this.#acting)
      this.#newsTimer ??= this.#deps.clock.startTimer(newsDelayMs, () => void this.#showNews())
  }

  /** What a list of the runtime found of it; a look of its own tells more. */
  takeObserved(observed: ObservedPod): void {
    if (!this.#seen) this.#state.observed = observed
  }

  /** The host has room for it, or not. */
  admit(admission: Admission): void {
    if (sameData(this.#state.admission, admission)) return
    this.#state.admission = admission
    // What is known already needs no write.
    const classes = admission.kind === 'admitted' ? admission.classes : undefined
    if (classes !== undefined && !sameData(classes, this.#state.record.classes))
      this.#state.memory.change({ classes })
    if (admission.kind !== 'admitted') {
      const { reason, message } = admission
      this.#event('Warning', reason, message)
    }
    this.#loop.wake()
  }

  /** Why the host has no room for what it asks for more; undefined where it has, which lets it in. */
  judgeResize(refusal: ResizeRefusal | undefined): void {
    if (refusal === undefined) this.#state.memory.change({ allocated: undefined })
    else if (sameData(this.#state.resizeRefusal, refusal)) return
    this.#state.resizeRefusal = refusal
    if (refusal !== undefined) this.#event('Warning', `Resize${refusal.reason}`, refusal.message)
    this.#loop.wake()
  }

  /** Takes a manifest that changes nothing, or only what may change in place. */
  update(input: {
    readonly pod: Pod
    readonly manifest: JsonObject
    readonly place: Pick<PodRecord, 'source' | 'path'>
  }): void {
    const { source, path, manifest } = this.#state.record
    const isKnown = sameData({ source, path, manifest }, { ...input.place, manifest: input.manifest })
    if (isKnown && sameData(this.#state.pod, input.pod)) return
    const specChanged = !sameData(this.#state.pod.spec, input.pod.spec)
    const allocated =
      this.#state.admission?.kind === 'admitted'
        ? computeHeldBack(this.#state.pod.spec, input.pod.spec, this.#state.record.allocated)
        : undefined
    if (allocated === undefined) this.#state.resizeRefusal = undefined
    // Labels and annotations may stand in files.
    this.#volumeRefresh.mark()
    this.#state.pod = input.pod
    this.#state.memory.change({ ...input.place, manifest: input.manifest, allocated })
    if (specChanged) this.#clearBackoff()
    this.#loop.wake()
  }

  /** Something that the pod refers to came, changed or went: what waits for it is tried again. */
  reviewReferences(): void {
    this.#volumeRefresh.mark()
    for (const [key, { waiting }] of this.#state.holds) {
      if (key === sandboxHold || waiting.reason === 'CreateContainerConfigError')
        this.#state.holds.delete(key)
    }
    this.#loop.wake()
  }

  /** Ends the pod. Told again, the grace can only shrink, and what goes away stays on its way. */
  end(request: EndRequest): void {
    if (this.#state.stage === 'stopped' || this.#state.stage === 'gone') return
    const before = this.#state.record.ending
    const ending = computeEnding(before, request, this.#deps.clock.wallMs())
    if (ending === before) return
    this.#state.memory.change({ ending })
    this.#setStage('ending')
    // Something that takes its time may be under way: that the pod ends is shown at once.
    if (this.#seen) this.#display.publish()
    this.#loop.interrupt()
  }

  /** Makes containers anew: see requestRestart. Throws PoddError RESTART_REFUSED. */
  restart(wanted: readonly string[] | undefined): readonly string[] {
    const names = requestRestart(this.#state, wanted)
    this.#deps.images.clearBackoff(this.ref.uid)
    this.#loop.wake()
    return names
  }

  /** Another pod took its name: the remains of this one wait until that one runs, for a moment at most. */
  supersede(): void {
    this.#display.hide()
  }

  /** Of a stopped pod: its remains are in nobody's way, or that doesn't matter any more. */
  cleanUp(): void {
    if (this.#remainsUntilMs === undefined) return
    this.#remainsUntilMs = undefined
    this.#loop.wake()
  }

  /** Lets go of the pod and leaves it running; resolves when the pass under way has let go too. */
  async stop(): Promise<void> {
    await this.#loop.stop()
    this.#volumeRefresh.stop()
  }

  #retryLater(error: unknown): void {
    const isEnding = this.#state.record.ending !== undefined
    this.#loop.wakeIn((isEnding ? endingRetryMs : errorRetryMs) * (1 + this.#deps.random() * 0.5))
    const message = errorMessage(error)
    const isNews = message !== this.#state.lastError
    this.#state.lastError = message
    const { name: pod, uid } = this.ref
    try {
      if (isNews) {
        this.#deps.logger.warn({ pod, uid, err: error }, 'pod pass failed')
        this.#event('Warning', isEnding ? 'FailedKillPod' : 'FailedSync', message)
      }
      this.#display.publish()
    } catch (cause) {
      this.#deps.logger.error({ pod, uid, err: cause }, 'the pod cannot be shown')
    }
  }

  async #pass(signal: AbortSignal): Promise<void> {
    this.#outdate = new AbortController()
    this.#passes += 1
    await this.#passOnce(signal)
    this.#state.lastError = undefined
  }

  async #passOnce(signal: AbortSignal): Promise<void> {
    const problem = this.#deps.runtimeProblem()
    // The runtime's return wakes every worker.
    if (problem !== undefined) return this.#display.publish()
    if (this.#remainsUntilMs !== undefined) {
      const leftMs = this.#remainsUntilMs - this.#deps.clock.monotonicMs()
      if (leftMs > 0) return this.#loop.wakeIn(leftMs)
      this.#remainsUntilMs = undefined
    }
    const wasOver = this.#state.isOver
    await this.#observe()
    this.#seen = true
    await this.#state.memory.rememberEnds(this.#state.observed)
    this.#forgetRestarts()
    if (this.#state.isOver !== wasOver) this.#deps.onStage(this)
    this.#deps.onObserved(this)
    if (this.#state.record.ending !== undefined) return this.#endPass(signal)
    if (await this.#mayRun()) await this.#livePass(signal)
    await this.#release()
  }

  /**
   * What is over gives back its volumes and its cgroup; its status, containers and logs stay (`pkg/kubelet/kubelet.go`
   * SyncTerminatedPod, Kubernetes 1.36). Should it be restarted, they are made anew with its sandbox.
   */
  async #release(): Promise<void> {
    if (!this.#state.isOver || this.#state.record.ending !== undefined) {
      this.#released = false
      return
    }
    if (this.#released || this.#state.record.startedAtMs === undefined) return
    await this.#deps.host.volumes.teardown(this.ref.uid)
    await this.#deps.host.cgroups.remove(this.ref.uid)
    this.#released = true
  }

  async #observe(): Promise<void> {
    const isNew = this.#unheardOf
    this.#unheardOf = false
    // What was decided is written down while the runtime is asked.
    const saved = this.#state.record.ending === undefined ? undefined : this.#state.memory.save('best-effort')
    const observed = isNew ? undefined : await this.#deps.observe(this.ref.uid)
    await saved
    this.#state.observed = observed ?? this.#state.nothing
  }

  /** Blocked, rejected and failed pods are shown and not run. */
  async #mayRun(): Promise<boolean> {
    const admission = this.#state.admission
    if (admission?.kind === 'rejected' && this.#state.record.failed === undefined) {
      const { reason, message } = admission
      this.#state.memory.change({ failed: { reason, message, admission: true } })
    }
    if (admission?.kind === 'admitted' && this.#state.record.failed === undefined) {
      this.#setStage('active')
      return true
    }
    await this.#state.memory.save('required')
    this.#display.publish()
    return false
  }

  async #livePass(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    if (this.#state.record.startedAtMs === undefined)
      this.#state.memory.change({ startedAtMs: clock.wallMs() })
    this.#state.memory.rememberStartups(this.#state.observed, this.#deps.probes)
    const overdueMs = this.#state.activeDeadlineMs
    if (overdueMs !== undefined && clock.wallMs() >= overdueMs) return this.#exceedDeadline()
    const hasVolumes = this.#state.observed.sandboxes.length > 0 && !this.#state.isOver
    if (hasVolumes && this.#deps.objectsKnown()) await this.#refreshVolumes()
    const plan = computePodActions(gatherPodFacts(this.#deps, this.#state))
    if (plan.isLost === true) return this.#failLost()
    this.#tellOfBackoff(plan.waiting)
    if (plan.restartAll !== undefined) this.#state.memory.change({ restartAll: [...plan.restartAll] })
    this.#state.waiting = plan.waiting
    this.#state.resize = plan.resize
    this.#display.publish()
    if (plan.actions.length > 0) {
      this.#chargeRestarts(plan.actions)
      await this.#state.memory.save('required')
      await this.#actUntil(overdueMs, plan.actions, signal)
      this.#settle()
      this.#loop.wake()
      return
    }
    await this.#state.memory.save('best-effort')
    this.#settle()
    const nowMs = clock.wallMs()
    const saveAgainMs = this.#state.memory.isSaved ? Infinity : errorRetryMs
    const delayMs = Math.min(
      (plan.wakeAtMs ?? Infinity) - nowMs,
      (overdueMs ?? Infinity) - nowMs,
      saveAgainMs,
    )
    if (delayMs !== Infinity) this.#loop.wakeIn(delayMs)
  }

  /** Brings the files of volumes up to date; what can't be is told and tried again with the next change. */
  async #refreshVolumes(): Promise<void> {
    try {
      await this.#volumeRefresh.run(() => this.#deps.host.volumes.prepare(this.ref.uid, this.#state.pod))
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
    for (const action of actions) if (action.kind === 'start-container') this.#state.memory.charge(action)
  }

  #tellOfBackoff(waiting: ReadonlyMap<string, Waiting>): void {
    for (const [container, { reason }] of waiting) {
      if (reason !== 'CrashLoopBackOff' || this.#state.waiting.get(container)?.reason === reason) continue
      const { name, namespace, uid } = this.ref
      const message = `Back-off restarting failed container ${container} in pod ${name}_${namespace}(${uid})`
      this.#deps.events.record({ pod: this.ref, container, type: 'Warning', reason: 'BackOff', message })
    }
  }

  async #failLost(): Promise<void> {
    const { restartPolicy } = this.#state.pod.spec
    const reason = 'SandboxLost'
    const message = `The pod's sandbox is gone before its containers ran, and its restart policy ${restartPolicy} makes no new one`
    this.#state.memory.change({ failed: { reason, message } })
    this.#event('Warning', reason, message)
    await this.#state.memory.save('required')
    this.#loop.wake()
  }

  #exceedDeadline(): void {
    this.end({
      cause: 'deadline',
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
      graceSeconds: this.#state.pod.spec.terminationGracePeriodSeconds,
    })
  }

  async #endPass(signal: AbortSignal): Promise<void> {
    const { ending } = this.#state.record
    if (ending === undefined) return
    await this.#state.memory.save('best-effort')
    this.#display.publish()
    const plan = computeEndingActions(this.#state.observed, { stoppedBefore: this.#stoppedInFull })
    if (plan.kind === 'stop') {
      await this.#act(plan.actions, signal)
      this.#stoppedInFull = true
      // The runtime says that all has ended: whoever waits for that need not wait until it is read back.
      if (goesAwayAfter(ending)) this.#freeName()
      this.#loop.wake()
      return
    }
    if (!goesAwayAfter(ending)) {
      this.#state.memory.change({
        ending: undefined,
        failed: { reason: ending.reason, message: ending.message },
      })
      await this.#state.memory.save('required')
      this.#setStage('active')
      this.#loop.wake()
      return
    }
    this.#setStage('stopped')
    await this.#act(plan.actions, signal)
    await this.#cleanUp()
  }

  /** Its successor may start; what is left of this one is cleared away after that. */
  #freeName(): void {
    if (this.#state.stage === 'stopped') return
    this.#remainsUntilMs = this.#deps.clock.monotonicMs() + remainsWaitMs
    this.#setStage('stopped')
  }

  /** A pod's deadline ends it in the middle of what takes long, too. */
  async #actUntil(
    overdueMs: number | undefined,
    actions: readonly PodAction[],
    signal: AbortSignal,
  ): Promise<void> {
    const { clock } = this.#deps
    const timer =
      overdueMs === undefined
        ? undefined
        : clock.startTimer(overdueMs - clock.wallMs(), () => {
            // It may be another one by now.
            const { activeDeadlineMs } = this.#state
            if (activeDeadlineMs !== undefined && clock.wallMs() >= activeDeadlineMs) this.#exceedDeadline()
          })
    try {
      await this.#act(actions, signal)
    } finally {
      timer?.cancel()
    }
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
    const { signal } = this.#loop
    const passes = this.#passes
    try {
      const observed = await this.#deps.observe(this.ref.uid)
      if (observed === undefined || signal.aborted || !this.#acting || passes !== this.#passes) return
      const wasOver = this.#state.isOver
      this.#state.observed = observed
      this.#deps.onObserved(this)
      if (this.#state.isOver !== wasOver) this.#deps.onStage(this)
      this.#display.publish()
    } catch (error) {
      const { name: pod, uid } = this.ref
      this.#deps.logger.debug({ pod, uid, err: error }, 'news of the pod cannot be shown')
    }
  }

  /** Leaves nothing behind. The record goes last: a podd that is killed here finishes the work later. */
  async #cleanUp(): Promise<void> {
    const { host, images } = this.#deps
    await host.volumes.teardown(this.ref.uid)
    await host.cgroups.remove(this.ref.uid)
    await host.logs.removeAll(this.ref)
    await this.#state.memory.remove()
    images.clearBackoff(this.ref.uid)
    this.#display.hide()
    this.#volumeRefresh.stop()
    this.#setStage('gone')
  }

  /** A restart is done when the container has a successor. */
  #forgetRestarts(): void {
    for (const key of ['restartRequested', 'restartAll'] as const) {
      const wanted = this.#state.record[key]
      if (wanted === undefined) continue
      const open = selectOpenRestarts(this.#state.restartFacts, wanted)
      if (open.length === wanted.length) continue
      this.#state.memory.change({ [key]: open.length === 0 ? undefined : open })
    }
  }

  #context(signal: AbortSignal): PodContext {
    const { ending } = this.#state.record
    return makePodContext(this.#deps, this.#state, {
      signal,
      manifestSignal: AbortSignal.any([signal, this.#outdate.signal]),
      onContainersStopped: () => {
        if (ending !== undefined && freesNameWithContainers(ending, this.#state.pod)) this.#freeName()
      },
    })
  }

  /** What a changed manifest may have mended isn't held back, nor waited for. */
  #clearBackoff(): void {
    this.#state.holds.clear()
    this.#state.fresh.clear()
    this.#deps.images.clearBackoff(this.ref.uid)
    this.#state.memory.forgetBackoffs()
    this.#outdate.abort(new Interrupted())
  }

  #settle(): void {
    if (this.#state.isSettled) return
    this.#state.isSettled = true
    this.#deps.onStage(this)
  }

  #setStage(stage: PodStage): void {
    if (this.#state.stage === stage) return
    this.#state.stage = stage
    this.#deps.onStage(this)
  }

  #event(type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#deps.events.record({ pod: this.ref, type, reason, message })
  }
}
