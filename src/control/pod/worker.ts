import type { ClockReading } from '../../base/clock.ts'
import type { JsonObject } from '../../base/json.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import type { Admission } from '../../decide/admission/admit-pod.ts'
import type { EndRequest } from '../../decide/plan/ending.ts'
import type { ResizeRefusal } from '../../decide/plan/resize.ts'
import { selectRestarts } from '../../decide/plan/restart-request.ts'
import { isHostStopping } from '../../host/cgroups/systemd-bus.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { PassKind } from '../../pod/state/usage.ts'
import type { ContainerId, PodRef } from '../../pod/values/ids.ts'
import { normalizeImageName } from '../../pod/values/image-name.ts'
import { findMissingReference } from '../../translate/config-hash.ts'
import { listPodImages } from '../images/image-uses.ts'
import type { SourcedPod } from '../serving/object-store.ts'
import { PodDisplay } from './display.ts'
import { EndPass } from './end-pass.ts'
import { tell, warn } from './env.ts'
import type { PodEnv } from './env.ts'
import { execute } from './execute.ts'
import { LivePass } from './live-pass.ts'
import { errorRetryMs, OutdatedView, PassLoop } from './pass.ts'
import type { PassSignals } from './pass.ts'
import type { ProbedContainer, ProbedPod } from './prober-worker.ts'
import { linkLogs, unlinkGone } from './start.ts'
import { createPodState } from './state.ts'
import type { NewWorker, PodState, PodUpdate } from './state.ts'

/** Why the node terminates a pod, and how long it may take, in seconds. */
export type Eviction = Pick<EndRequest, 'reason' | 'message' | 'graceSeconds'>

const endingRetryMs = 2000

/**
 * One pod. What the rest of podd tells it changes its state; a pass acts on that. The passes run one after another:
 * observe, remember, decide, publish, act. A pass that fails is tried again.
 */
export class PodWorker {
  readonly state: PodState
  readonly #env: PodEnv
  readonly #onStage: (worker: PodWorker) => void
  readonly #reviewAdmission: () => void
  readonly #loop: PassLoop
  readonly #display: PodDisplay
  readonly #livePass: LivePass
  readonly #endPass: EndPass
  #nextPass: Exclude<PassKind, 'kill'>

  /**
   * The first pass follows the current task; of an adopted pod, `confirm`.
   * @param onStage the pod reached another stage, settled, or is over or no longer so
   * @param reviewAdmission decides at once on all pods that aren't admitted
   */
  constructor(
    env: PodEnv,
    input: NewWorker,
    onStage: (worker: PodWorker) => void,
    reviewAdmission: () => void,
  ) {
    this.#env = env
    this.#onStage = onStage
    this.#reviewAdmission = reviewAdmission
    this.#loop = new PassLoop(env, {
      pass: (signals) => this.#countedPass(signals),
      onDone: () => this.#noteDone(),
      look: (isActing) => this.#look(isActing),
      onError: (error) => this.#retryLater(error),
      isDone: () => this.state.stage === 'gone',
    })
    this.state = createPodState(env, input, {
      wake: () => this.#loop.wake(),
      onStage: () => this.#tellStage(),
    })
    this.#display = new PodDisplay(env, this.state)
    this.#livePass = new LivePass(env, this.state, this.#loop, this.#display, (request) => this.end(request))
    this.#endPass = new EndPass(env, this.state, this.#loop, this.#display)
    this.#nextPass = this.state.stage === 'adopted' ? 'sync' : 'create'
    if (this.state.stage !== 'adopted') this.#loop.start()
  }

  get ref(): PodRef {
    return this.state.ref
  }

  /** The pod, and the source whose objects it reads. */
  get sourcedPod(): SourcedPod {
    return { pod: this.state.classedPod, source: this.state.record.source }
  }

  /** A source has confirmed an adopted pod, or its confirmation is no longer awaited: passes begin. */
  confirm(): void {
    if (this.state.confirm()) this.#loop.start()
  }

  wake(): void {
    this.#loop.wake()
  }

  /**
   * What runs of it, or a probe's verdict, changed: a pass runs soon; while a slow action is in flight, the new status is
   * published meanwhile.
   */
  notice(): void {
    this.#loop.wake()
    this.#loop.lookSoon()
  }

  /**
   * The periodic sync, without a question to the runtime: looks at the pod's record and its cgroup, and has a pass run where
   * the pod needs something of which no event told. Never throws.
   */
  async sync(): Promise<void> {
    await this.state.memory.keep()
    const { stage, isSeen, isOver, record } = this.state
    if (stage !== 'active' || !isSeen || isOver || record.failed !== undefined) return
    await this.#lookAtCgroup()
    if (this.#livePass.hasWork) this.#loop.wake()
  }

  /** Takes what a list of the runtime found of the pod; ignored once the worker has observed it itself. */
  takeObserved(observed: ObservedPod): void {
    if (!this.state.isSeen) this.state.see(observed)
  }

  admit(admission: Admission): void {
    if (!this.state.admit(admission)) return
    if (admission.kind !== 'admitted') {
      // Somebody shuts the host down, or drains it: that is no error.
      const say = admission.reason === 'NodeShutdown' ? tell : warn
      say(this.#env, this.ref, admission.reason, admission.message)
    }
    this.#loop.wake()
  }

  /** Takes why the host has no room for a resize; undefined where it has, which admits the resize. */
  takeResizeVerdict(refusal: ResizeRefusal | undefined): void {
    if (!this.state.takeResizeVerdict(refusal)) return
    if (refusal !== undefined) warn(this.#env, this.ref, `Resize${refusal.reason}`, refusal.message)
    this.#loop.wake()
  }

  /** Takes a manifest that changes nothing, or only what may change in place. */
  update(update: PodUpdate): void {
    const change = this.state.update(update)
    if (change === 'same') return
    if (this.#nextPass === 'sync') this.#nextPass = 'update'
    // Volumes may have files with labels and annotations.
    this.#livePass.markVolumes()
    if (change === 'spec') {
      this.state.forgetFailures()
      this.#env.images.clearBackoff(this.ref.uid)
      this.#loop.endWaits()
    }
    this.#loop.wake()
  }

  /**
   * An object that the pod refers to was added, changed or removed: what waits for it is tried again.
   * @param pullSecrets one of them is for image pulls: their backoff is over
   */
  reviewReferences({ pullSecrets }: { readonly pullSecrets: boolean }): void {
    this.#livePass.markVolumes()
    this.state.retryReferences()
    if (pullSecrets) this.#retryImages()
    this.#loop.wake()
  }

  /** These images (complete names) are present now: failed fetches of them are tried again. */
  reviewImages(names: ReadonlySet<string>): void {
    const isNamed = listPodImages(this.state.pod).some((image) => names.has(normalizeImageName(image)))
    if (!isNamed) return
    this.#retryImages()
    this.#loop.wake()
  }

  #retryImages(): void {
    this.state.retryImages()
    this.#env.images.clearBackoff(this.ref.uid)
  }

  /** The wall clock may have been set. */
  reviewClock(now: ClockReading): void {
    if (!this.state.reviewClock(now)) return
    if (this.state.isSeen && this.state.stage !== 'gone') this.#display.publish()
    this.#loop.wake()
  }

  /** The pull of one of its images has made progress. */
  showPull(): void {
    if (this.state.isSeen && this.state.stage !== 'gone') this.#display.publish()
  }

  /** Ends the pod. A further call can only shorten the grace period, and never revokes a deletion. */
  end(request: EndRequest): void {
    const { ending: before } = this.state.record
    if (!this.state.requestEnd(request, this.#env.clock.wallMs())) return
    if (before === undefined) this.#tellWhyEnded(request)
    // A slow action may be in flight: publish at once that the pod is terminating.
    if (this.state.isSeen) this.#display.publish()
    this.#loop.interrupt()
  }

  /** Ends the pod within the grace period that its manifest gives it. */
  endWithOwnGrace(cause: EndRequest['cause'], message: string): void {
    const graceSeconds = this.state.pod.spec.terminationGracePeriodSeconds
    this.end({ cause, reason: 'Killing', message, graceSeconds })
  }

  /** Of a pod that is still desired (`pkg/kubelet/active_deadline.go`, `eviction_manager.go`, 1.36). */
  #tellWhyEnded({ cause, reason, message, until }: EndRequest): void {
    if (cause === 'deadline' || until === 'shutdown-ends') tell(this.#env, this.ref, reason, message)
    else if (cause === 'evicted') warn(this.#env, this.ref, reason, message)
  }

  /**
   * Evicts the pod: it fails with this reason and message, and its status stays
   * (`pkg/kubelet/eviction/eviction_manager.go`, evictPod, 1.36). False where it has ended or is ending already.
   */
  evict({ reason, message, graceSeconds }: Eviction): boolean {
    const { stage, isOver, record } = this.state
    if (stage === 'stopped' || stage === 'gone' || isOver || record.ending !== undefined) return false
    this.end({ cause: 'evicted', reason, message, graceSeconds })
    return true
  }

  /**
   * Marks these exited containers and stopped sandboxes for removal, which happens when nothing else is to be done for
   * the pod.
   */
  collect(condemned: ReadonlySet<string>): void {
    this.state.condemn(condemned)
    this.#loop.wake()
  }

  /** Adds ephemeral containers to the running pod, which go with it. Throws PoddError RECORD_WRITE. */
  async addDebuggers(added: readonly JsonObject[]): Promise<void> {
    await this.state.addDebuggers(added)
    if (this.state.isSeen) this.#display.publish()
    this.#loop.wake()
  }

  /** Recreates containers: see requestRestart. A pod that wasn't admitted is judged again instead. */
  async restart(wanted: readonly string[] | undefined): Promise<readonly string[]> {
    if (!this.state.isLive && this.#reconsider()) {
      const { initContainers, containers } = this.state.pod.spec
      return [...initContainers, ...containers].map(({ name }) => name)
    }
    const names = await requestRestart(this.state, wanted, (container) =>
      this.state.startBlock?.containers.includes(container.name) === true
        ? this.state.startBlock.message
        : findMissingReference(this.#env, this.sourcedPod, container),
    )
    this.#env.images.clearBackoff(this.ref.uid)
    this.#loop.wake()
    return names
  }

  /**
   * Decides again whether it may run, which it may now. False for a pod that is admitted. Throws PoddError
   * RESTART_REFUSED where it still may not.
   */
  #reconsider(): boolean {
    const { admission, record } = this.state
    if (admission === undefined || admission.kind === 'admitted' || record.ending !== undefined) return false
    // Where it was evicted, or exceeded its deadline, it stays failed.
    if (admission.kind === 'rejected' && record.failed !== undefined && record.failed.admission !== true)
      return false
    this.state.forgetRejection()
    this.#reviewAdmission()
    this.#loop.wake()
    const verdict = this.state.admission
    if (verdict?.kind === 'admitted') return true
    const why = verdict === undefined ? 'it is not known yet whether it may run' : verdict.message
    throw new PoddError('RESTART_REFUSED', `pod ${this.ref.name} cannot run now: ${why}`)
  }

  /**
   * Another pod has taken its name, so it is no longer shown. Its remains wait for that pod's start, for a moment at
   * most.
   */
  supersede(): void {
    this.#display.hide()
  }

  /** Of a stopped pod: its remains are removed without waiting for its successor any longer. */
  cleanUp(): void {
    this.#endPass.letRemainsGo()
  }

  /** Stops the worker and leaves the pod running; resolves when the pass in flight has stopped too. */
  async stop(): Promise<void> {
    this.state.aheadFetches.cancel()
    await this.#loop.stop()
    this.#livePass.stop()
  }

  #tellStage(): void {
    this.#loop.start()
    if (this.state.stage === 'gone') {
      this.#loop.endHooks()
      this.#livePass.stop()
    }
    this.#onStage(this)
  }

  async #countedPass(signals: PassSignals): Promise<void> {
    const { counters, clock } = this.#env
    const sinceMs = clock.monotonicMs()
    const kind = this.state.record.ending === undefined ? this.#nextPass : 'kill'
    this.#nextPass = 'sync'
    try {
      await this.#pass(signals)
    } finally {
      counters.notePass(kind, sinceMs)
    }
  }

  /** Throws what a call threw, Interrupted where the pass was interrupted, OutdatedView where it has to begin again. */
  async #pass(signals: PassSignals): Promise<void> {
    const { state } = this
    const env = this.#env
    // Every worker is woken when the runtime is available again.
    if (env.knowledge.runtimeProblem !== undefined) return this.#display.publish()
    const waitMs = this.#endPass.remainsWaitMs()
    if (waitMs !== undefined) return this.#loop.wakeIn(waitMs)

    const wasOver = state.isOver
    await this.#observe()
    if (!state.isSeen) await unlinkGone(env, state)
    await linkLogs(env, state)
    state.noteSeen()
    await state.memory.rememberEnds(state.classedPod, state.observed)
    state.forgetDoneRestarts()
    state.reviewOver(wasOver)
    this.#tellProber()

    if (state.record.ending === undefined) await this.#lookAtCgroup()
    // The disk may have answered thousands of pods at once.
    const turn = env.turns.enter()
    if (turn !== undefined) await turn
    // Read after the last wait: what was requested meanwhile counts.
    const { ending } = state.record
    if (ending !== undefined) return this.#endPass.run(ending, signals)
    if (await this.#mayRun()) await this.#livePass.run(signals)
    else if (await this.#endBlocked(signals)) return this.#loop.wakeIn(endingRetryMs)
    return this.#endPass.releaseWhereOver(signals)
  }

  async #observe(): Promise<void> {
    const { state } = this
    const { observer, turns, runtimeLosses } = this.#env
    const losses = runtimeLosses()
    // What was decided is recorded while the runtime is asked.
    const saved = state.record.ending === undefined ? undefined : state.memory.save('best-effort')
    const observed = state.isUnheardOf ? undefined : await observer.read(state.ref.uid)
    await saved
    state.see(observed ?? state.nothing, losses)
    const turn = turns.enter()
    if (turn !== undefined) await turn
    if (losses !== runtimeLosses()) throw new OutdatedView()
  }

  /**
   * Notes whether the pod's cgroup was removed; only while a container runs, for a pod that is about to start has none yet
   * (`pkg/kubelet/kubelet.go` SyncPod, 1.36).
   */
  async #lookAtCgroup(): Promise<void> {
    const { state } = this
    const { cgroups, logger } = this.#env
    const { name: pod, uid } = state.ref
    try {
      state.noteCgroup(state.hasRunning && (await cgroups.isRemoved(uid, state.classedPod)))
    } catch (error) {
      logger.debug({ pod, uid, err: error }, "cannot look at the pod's cgroup")
      state.noteCgroup(false)
    }
  }

  /**
   * Whether the pod may run. Blocked, rejected and failed pods are only shown; of a blocked one that only can't be
   * started, what the runtime has is supervised.
   */
  async #mayRun(): Promise<boolean> {
    const { state } = this
    const { admission, memory, isLive } = state
    if (admission?.kind === 'rejected' && state.record.failed === undefined) {
      const { reason, message } = admission
      state.fail({ reason, message, admission: true })
    }
    const isBlocked = admission?.kind === 'blocked'
    const isSupervised = isBlocked && admission.isForbidden !== true && isLive
    if ((admission?.kind === 'admitted' || isSupervised) && state.record.failed === undefined) {
      state.activate()
      return true
    }
    if (isBlocked && state.record.failed === undefined) state.block(admission.message)
    // A failed pod releases its space first: the disk may be full of what it has written.
    await memory.save(state.record.failed === undefined ? 'required' : 'best-effort')
    this.#display.publish()
    return false
  }

  /**
   * Ends what a blocked pod still has: what runs of one that may not do any more what it does, which starts again once it
   * may (`pkg/kubelet/kubelet.go`, SyncPod, 1.36), and the network of a sandbox that died. Whether there was anything.
   */
  async #endBlocked(signals: PassSignals): Promise<boolean> {
    const { state } = this
    const { admission, holdsResources, observed } = state
    if (admission?.kind !== 'blocked' || !holdsResources) return false
    const { reason } = admission
    await execute(this.#env, state, this.#loop, signals, [{ kind: 'stop-pod', reason }])
    state.noteBlockedStop(observed.sandboxes[0]?.id)
    return true
  }

  /** Looks at what has changed while a pass acts, which itself keeps to what it observed. */
  async #look(isActing: () => boolean): Promise<void> {
    const { state } = this
    const { name: pod, uid } = state.ref
    const { observer, turns } = this.#env
    try {
      // The timers of many pods end at once, and so do their reads.
      await turns.enter()
      const observed = await observer.read(uid)
      await turns.enter()
      if (observed === undefined || !isActing()) return
      const wasOver = state.isOver
      state.see(observed)
      this.#tellProber()
      state.reviewOver(wasOver)
      this.#display.publish()
      this.#env.changes.note()
    } catch (error) {
      this.#env.logger.debug({ pod, uid, err: error }, 'cannot publish the status of the pod')
    }
  }

  #tellProber(): void {
    this.#env.prober.setPod(probedPod(this.state, this.#env.hostIps()))
  }

  #noteDone(): void {
    this.state.noteError(undefined)
    this.#env.changes.note()
  }

  #retryLater(error: unknown): void {
    const { state } = this
    const { random, logger } = this.#env
    const isEnding = state.record.ending !== undefined
    this.#loop.wakeIn((isEnding ? endingRetryMs : errorRetryMs) * (1 + random() * 0.5))
    const { name: pod, uid } = state.ref
    const message = errorMessage(error)
    // No error of the pod: it starts after the boot.
    const isStopping = isHostStopping(error)
    if (isStopping) this.#env.shutdown.note()
    const isNews = message !== state.lastError
    if (!isStopping) state.noteError(message)
    try {
      if (isStopping) logger.info({ pod, uid, err: error }, 'the host is stopping: the pod does not start')
      else if (isNews) {
        logger.warn({ pod, uid, err: error }, 'pod sync failed')
        warn(this.#env, this.ref, isEnding ? 'FailedKillPod' : 'FailedSync', message)
      }
      this.#display.publish()
    } catch (cause) {
      logger.error({ pod, uid, err: cause }, 'cannot publish the status of the pod')
    }
    this.#env.changes.note()
  }
}

/**
 * Records that these containers are to be recreated (all except completed init containers, if none is named), at once
 * and without increasing their backoff, whatever the restart policy. Returns their names. Throws PoddError
 * RESTART_REFUSED for a pod that doesn't run, or a running container that could not be created now because a reference
 * is missing, and RECORD_WRITE if the request can't be recorded: then nothing is restarted.
 */
async function requestRestart(
  state: PodState,
  wanted: readonly string[] | undefined,
  missingFor: (container: ContainerSpec) => string | undefined,
): Promise<readonly string[]> {
  const { record, ref } = state
  const refuse = (message: string): PoddError => new PoddError('RESTART_REFUSED', message)
  if (record.ending !== undefined) throw refuse(`pod ${ref.name} is terminating`)
  if (state.hasEnded) throw refuse(`pod ${ref.name} has finished`)
  if (state.stage !== 'active') throw refuse(`pod ${ref.name} does not run yet`)
  const choice = selectRestarts(state.restartFacts, wanted)
  if ('refused' in choice) {
    throw refuse(
      choice.why === 'runs-once'
        ? `container ${choice.refused} of pod ${ref.name} is an init container, which runs once`
        : `container ${choice.refused} is not valid for pod ${ref.name}`,
    )
  }
  for (const spec of [...state.pod.spec.initContainers, ...state.pod.spec.containers]) {
    const runs = state.observed.containers.some(
      (container) => container.name === spec.name && container.state === 'running',
    )
    const missing = runs && choice.names.includes(spec.name) ? missingFor(spec) : undefined
    if (missing !== undefined)
      throw refuse(`container ${spec.name} of pod ${ref.name} keeps running: ${missing}`)
  }
  await state.requestRestarts(choice.names, choice.ids)
  return choice.names
}

/** What the prober needs to know of a pod: its running containers, each once its postStart hook is done. */
function probedPod(state: Readonly<PodState>, hostIps: readonly string[]): ProbedPod {
  const { observed, pod, ref, record, postStarts } = state
  const specs = [...pod.spec.initContainers, ...pod.spec.containers]
  const containers = specs.flatMap((spec): ProbedContainer[] => {
    const running = observed.containers.find(
      ({ id, name, state }) => name === spec.name && state === 'running' && !postStarts.has(id),
    )
    if (running === undefined) return []
    const startedAtMs = running.startedAtMs ?? running.createdAtMs
    const adopted = wasFound(record, { name: spec.name, id: running.id, startedAtMs })
    return [{ name: spec.name, containerId: running.id, startedAtMs, spec, adopted }]
  })
  const podIps = pod.spec.hostNetwork ? hostIps : (observed.sandboxes[0]?.ips ?? [])
  return { pod: ref, podIps, ending: state.stage === 'ending', containers }
}

/**
 * How a container was when podd last looked, maybe before podd was restarted: it stays so until a probe
 * says otherwise. A pod whose containers were all ready had started up, and so had each of them, which records of older
 * podds tell in no other way.
 */
function wasFound(
  record: PodRecord,
  running: { readonly name: string; readonly id: ContainerId; readonly startedAtMs: number },
): NonNullable<ProbedContainer['adopted']> {
  const containersReady = record.conditions['ContainersReady']
  const allReady = containersReady?.status === 'True' && running.startedAtMs <= containersReady.atMs
  const { startedUp, ready } = record.containers[running.name] ?? {}
  return {
    started: startedUp === undefined ? allReady : startedUp === running.id,
    ready: ready === running.id || allReady,
  }
}
