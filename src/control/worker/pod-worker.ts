import { errorMessage } from '../../base/errors.ts'
import type { RandomSource } from '../../base/random.ts'
import type { Admission } from '../../decide/admission/admit-pod.ts'
import { computeEnding } from '../../decide/plan/pod-ending.ts'
import type { EndRequest } from '../../decide/plan/pod-ending.ts'
import { noHolds, withoutReasons, withoutReferenceHolds } from '../../decide/plan/hold.ts'
import type { ResizeRefusal } from '../../decide/plan/resize.ts'
import type { PodRef } from '../../pod/values/ids.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { AheadFetches } from './ahead-fetches.ts'
import { EndPass } from './end-pass.ts'
import { isImageReason } from '../images/image-error.ts'
import { listPodImages } from '../images/named-images.ts'
import { LivePass } from './live-pass.ts'
import { Interrupted } from '../actions/interrupted.ts'
import { PassLoop } from './pass-loop.ts'
import { PodDisplay } from './pod-display.ts'
import type { PodDisplayDeps } from './pod-display.ts'
import { PodExecutor } from './pod-executor.ts'
import type { PodExecutorDeps } from './pod-executor.ts'
import { PodPass } from './pod-pass.ts'
import type { PodHost } from '../actions/pod-host.ts'
import { takeAdmission, takeResizeVerdict, takeUpdate } from './pod-intake.ts'
import type { PodUpdate } from './pod-intake.ts'
import { PodMemory } from './pod-memory.ts'
import type { PodMemoryDeps } from './pod-memory.ts'
import { PodState } from './pod-state.ts'
import type { NewWorker, PodStage } from './pod-state.ts'
import { requestRestart } from './request-restart.ts'
import type { SourcedPod } from '../objects/object-store.ts'
import { findMissingReference } from '../../translate/find-missing-reference.ts'
import { countOomKills, readEndMessage } from './read-end.ts'
import { VolumeRefresh } from './volume-refresh.ts'

export interface PodWorkerDeps extends PodExecutorDeps, PodDisplayDeps {
  readonly host: PodHost
  readonly records: PodMemoryDeps['records']
  /** The facts behind the probes: called whenever what is to be probed may have changed. */
  readonly onObserved: (worker: PodWorker) => void
  /** The pod reached another stage, or finished. */
  readonly onStage: (worker: PodWorker) => void
  readonly random: RandomSource
}

/** Why the node terminates a pod, and how long it may take, in seconds. */
export type Eviction = Pick<EndRequest, 'reason' | 'message' | 'graceSeconds'>

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
  readonly #executor: PodExecutor
  readonly #podPass: PodPass
  readonly #endPass: EndPass
  /** Ends only waits for what a changed manifest may not want any more. */
  #outdate = new AbortController()
  /** Ends hooks, when podd stops or the pod is gone. */
  readonly #life = new AbortController()
  readonly #volumeRefresh: VolumeRefresh
  readonly #warn = (reason: string, message: string): void =>
    this.#deps.events.record({ pod: this.ref, type: 'Warning', reason, message })

  constructor(deps: PodWorkerDeps, input: NewWorker) {
    this.#deps = deps
    const memory = new PodMemory(
      {
        records: deps.records,
        bootId: deps.host.bootId,
        readEndMessage: (container) => readEndMessage(deps, this.ref, container),
        countOomKills: (observed) => countOomKills(deps, this.#state.classedPod, observed),
        onUnwritten: (message) => this.#warn('FailedSync', message),
      },
      input,
    )
    const aheadFetches = new AheadFetches(() => this.wake())
    this.#state = new PodState(memory, aheadFetches, input)
    this.#display = new PodDisplay(deps, this.#state)
    this.#volumeRefresh = new VolumeRefresh(deps.clock, () => this.wake())
    this.#loop = new PassLoop({
      clock: deps.clock,
      pass: (signal) => this.#pass(signal),
      onError: (error) => this.#retryLater(error),
      isDone: () => this.#state.stage === 'gone',
    })
    this.#executor = new PodExecutor(deps, this.#state, (news) => this.#showNews(news))
    const common = {
      ...deps,
      executor: this.#executor,
      publishStatus: () => this.#publish(),
      setStage: (stage: PodStage) => this.#setStage(stage),
      warn: this.#warn,
      wake: () => this.#loop.wake(),
      wakeIn: (delayMs: number) => this.#loop.wakeIn(delayMs),
    }
    this.#endPass = new EndPass({ ...common, hide: () => this.#display.hide() }, this.#state)
    const livePass = new LivePass(
      {
        ...common,
        deriveStatus: () => this.#deriveStatus(),
        volumeRefresh: this.#volumeRefresh,
        end: (request) => this.end(request),
        settle: () => this.#settle(),
      },
      this.#state,
    )
    this.#podPass = new PodPass(
      {
        ...common,
        livePass,
        endPass: this.#endPass,
        onStage: () => deps.onStage(this),
        onObserved: () => deps.onObserved(this),
      },
      this.#state,
    )
    if (this.#state.stage !== 'adopted') this.#loop.start()
  }

  get ref(): PodRef {
    return this.#state.ref
  }

  /** What it knows of the pod. */
  get state(): Readonly<PodState> {
    return this.#state
  }

  /** A source confirms a pod of an earlier podd, or that is not waited for: passes begin. */
  confirm(): void {
    if (this.#state.stage !== 'adopted') return
    this.#state.stage = 'waiting'
    this.#loop.start()
  }

  wake(): void {
    this.#loop.wake()
  }

  /** Its containers changed: it syncs soon; while a slow action is in flight, the new status is published meanwhile. */
  notice(): void {
    this.#loop.wake()
    this.#executor.notice()
  }

  /** What a list of the runtime found of it; a look of its own tells more. */
  takeObserved(observed: ObservedPod): void {
    if (!this.#state.isSeen) this.#state.observed = observed
  }

  /** The host has room for it, or not. */
  admit(admission: Admission): void {
    if (takeAdmission(this.#state, admission, this.#warn)) this.#loop.wake()
  }

  /** Why the host has no room for what it asks for more; undefined where it has, which lets it in. */
  judgeResize(refusal: ResizeRefusal | undefined): void {
    if (takeResizeVerdict(this.#state, refusal, this.#warn)) this.#loop.wake()
  }

  /** Takes a manifest that changes nothing, or only what may change in place. */
  update(update: PodUpdate): void {
    const change = takeUpdate(this.#state, update)
    if (change === 'same') return
    // Labels and annotations may stand in files.
    this.#volumeRefresh.mark()
    if (change === 'spec') this.#clearBackoff()
    this.#loop.wake()
  }

  /**
   * Something that the pod refers to came, changed or went: what waits for it is tried again.
   * @param pullSecrets one of them is for image pulls: their backoff is over
   */
  reviewReferences({ pullSecrets }: { readonly pullSecrets: boolean }): void {
    this.#volumeRefresh.mark()
    this.#state.holds = withoutReferenceHolds(this.#state.holds)
    if (pullSecrets) this.#endImageBackoff()
    this.#loop.wake()
  }

  /** These images (complete names) are there now: what could not be had is tried again. */
  reviewImages(names: ReadonlySet<string>): void {
    const isNamed = listPodImages(this.#state.pod).some((image) => names.has(normalizeImageName(image)))
    if (!isNamed) return
    this.#endImageBackoff()
    this.#loop.wake()
  }

  #endImageBackoff(): void {
    this.#state.holds = withoutReasons(this.#state.holds, isImageReason)
    this.#deps.images.clearBackoff(this.ref.uid)
  }

  /** Ends the pod. Told again, the grace can only shrink, and what goes away stays on its way. */
  end(request: EndRequest): void {
    if (this.#state.stage === 'stopped' || this.#state.stage === 'gone') return
    this.#state.aheadFetches.cancel()
    const before = this.#state.record.ending
    const ending = computeEnding(before, request, this.#deps.clock.wallMs())
    if (ending === before) return
    this.#state.memory.change({ ending })
    this.#setStage('ending')
    if (before === undefined) this.#tellWhy(request)
    // A slow action may be in flight: publish at once that the pod is terminating.
    if (this.#state.isSeen) this.#publish()
    this.#loop.interrupt()
  }

  /** The pull of one of its images goes on. */
  showPull(): void {
    if (this.#state.isSeen && this.#state.stage !== 'gone') this.#publish()
  }

  /**
   * Terminates the pod for the sake of the node: it fails with this reason and message, its status stays
   * (`pkg/kubelet/eviction/eviction_manager.go`, evictPod, 1.36). False where it has ended or is ending already.
   */
  evict({ reason, message, graceSeconds }: Eviction): boolean {
    const { stage, isOver, record } = this.#state
    if (stage === 'stopped' || stage === 'gone' || isOver || record.ending !== undefined) return false
    this.end({ cause: 'evicted', reason, message, graceSeconds })
    return true
  }

  /** Has these exited containers and stopped sandboxes removed, as soon as nothing else is to be done for the pod. */
  collect(condemned: ReadonlySet<string>): void {
    this.#state.condemned = condemned
    this.#loop.wake()
  }

  /** Why a pod is terminated that is still desired (`pkg/kubelet/active_deadline.go`, `eviction_manager.go`, 1.36). */
  #tellWhy({ cause, reason, message }: EndRequest): void {
    const { events } = this.#deps
    if (cause === 'deadline') events.record({ pod: this.ref, type: 'Normal', reason, message })
    if (cause === 'evicted') this.#warn(reason, message)
  }

  /** The pod, and the source whose objects it reads. */
  get sourcedPod(): SourcedPod {
    return { pod: this.#state.classedPod, source: this.#state.record.source }
  }

  /** Recreates containers: see requestRestart. */
  async restart(wanted: readonly string[] | undefined): Promise<readonly string[]> {
    const names = await requestRestart(this.#state, wanted, (container) =>
      findMissingReference(this.#deps.host, this.sourcedPod, container),
    )
    this.#deps.images.clearBackoff(this.ref.uid)
    this.#loop.wake()
    return names
  }

  /** Another pod took its name: the remains of this one wait until that one runs, for a moment at most. */
  supersede(): void {
    this.#display.hide()
  }

  /** Of a stopped pod: its remains no longer block another pod, or that no longer matters. */
  cleanUp(): void {
    this.#endPass.letRemainsGo()
  }

  /** Stops the worker and leaves the pod running; resolves when the pass in flight has stopped too. */
  async stop(): Promise<void> {
    this.#life.abort(new Interrupted())
    this.#state.aheadFetches.cancel()
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
        this.#deps.logger.warn({ pod, uid, err: error }, 'pod sync failed')
        this.#warn(isEnding ? 'FailedKillPod' : 'FailedSync', message)
      }
      this.#publish()
    } catch (cause) {
      this.#deps.logger.error({ pod, uid, err: cause }, 'cannot publish the status of the pod')
    }
  }

  async #pass(signal: AbortSignal): Promise<void> {
    this.#outdate = new AbortController()
    const manifestSignal = AbortSignal.any([signal, this.#outdate.signal])
    await this.#podPass.run({ pass: signal, manifest: manifestSignal, life: this.#life.signal })
    this.#state.lastError = undefined
  }

  /** Of what changed while actions are carried out. */
  #showNews(observed: ObservedPod): void {
    const wasOver = this.#state.isOver
    this.#state.observed = observed
    this.#deps.onObserved(this)
    if (this.#state.isOver !== wasOver) this.#deps.onStage(this)
    this.#publish()
  }

  /** What a changed manifest may have mended isn't held back, nor waited for. */
  #clearBackoff(): void {
    this.#state.holds = noHolds
    this.#state.fresh.clear()
    this.#state.aheadFetches.cancel()
    this.#deps.images.clearBackoff(this.ref.uid)
    this.#state.memory.forgetAttempts()
    this.#outdate.abort(new Interrupted())
  }

  #publish(): void {
    this.#deriveStatus()()
  }

  /** Gives what publishes the pod's status as it is now. What the next status depends on goes into the record. */
  #deriveStatus(): () => void {
    const view = this.#display.derive()
    if (view === undefined) return () => undefined
    if (view.recordChange !== undefined) this.#state.memory.change(view.recordChange)
    return () => {
      try {
        this.#display.show(view)
      } catch (error) {
        const { name: pod, uid } = this.ref
        this.#deps.logger.error({ pod, uid, err: error }, 'cannot publish the status of the pod')
      }
    }
  }

  #settle(): void {
    if (this.#state.isSettled) return
    this.#state.isSettled = true
    this.#deps.onStage(this)
  }

  #setStage(stage: PodStage): void {
    if (this.#state.stage === stage) return
    this.#state.stage = stage
    this.#loop.start()
    if (stage === 'gone') {
      this.#life.abort(new Interrupted())
      this.#volumeRefresh.stop()
    }
    this.#deps.onStage(this)
  }
}
