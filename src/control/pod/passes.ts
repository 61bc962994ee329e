import type { Clock, SharedTurns, Timer } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import type { RandomSource } from '../../base/random.ts'
import { WakeSlot } from '../../base/waits.ts'
import type { Changes } from '../../base/waits.ts'
import { withoutContainer } from '../../decide/plan/backoff.ts'
import type { EndRequest } from '../../decide/plan/ending.ts'
import { blockedWaiting } from '../../decide/plan/pod-action.ts'
import { awaitRuntime } from '../../decide/plan/progress.ts'
import { selectOpenRestarts, selectRestarts } from '../../decide/plan/restart-request.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { Interrupted, OutdatedView } from './context.ts'
import type { PassSignals } from './context.ts'
import { PodDisplay } from './display.ts'
import type { PodDisplayDeps } from './display.ts'
import { EndPass } from './end-pass.ts'
import { PodExecutor } from './execute.ts'
import type { PodExecutorDeps } from './execute.ts'
import type { PodHost } from './host.ts'
import { LivePass, VolumeRefresh } from './live-pass.ts'
import { countOomKills, PodMemory, readEndMessage } from './memory.ts'
import type { PodMemoryDeps } from './memory.ts'
import { linkLogs, unlinkGone } from './start.ts'
import { AheadFetches, PodState } from './state.ts'
import type { NewWorker, PodStage } from './state.ts'

export interface PodPassesDeps extends PodExecutorDeps, PodDisplayDeps {
  readonly host: PodHost
  readonly records: PodMemoryDeps['records']
  readonly random: RandomSource
  /** Noted after each pass, and after each observation that is made between: others wait for what pods do. */
  readonly changes: Pick<Changes, 'note'>
}

/** What the passes of a pod tell its worker. */
export interface PodPassesHooks {
  /** The facts behind the probes: called whenever what is to be probed may have changed. */
  readonly onObserved: () => void
  /** The pod reached another stage, or finished. */
  readonly onStage: () => void
  /** The pod has exceeded its active deadline. */
  readonly end: (request: EndRequest) => void
}

const errorRetryMs = 10_000
const endingRetryMs = 2000

/**
 * The passes of one pod, one after another: observe, remember, decide, publish, act. A pass that fails is tried again.
 * Constructs what the passes are made of, and holds the pod's state.
 */
export class PodPasses {
  readonly state: PodState
  /** Ends waits that a changed manifest may have made pointless. */
  #outdate = new AbortController()
  /** Ends hooks, when podd stops or the pod is gone. */
  readonly #life = new AbortController()
  readonly #deps: PodPassesDeps
  readonly #hooks: PodPassesHooks
  readonly #display: PodDisplay
  readonly #loop: PassLoop
  readonly #executor: PodExecutor
  readonly #livePass: LivePass
  readonly #endPass: EndPass
  readonly #volumeRefresh: VolumeRefresh

  /** No pass runs before `begin`. */
  constructor(deps: PodPassesDeps, hooks: PodPassesHooks, input: NewWorker) {
    this.#deps = deps
    this.#hooks = hooks
    const memory = new PodMemory(
      {
        records: deps.records,
        bootId: deps.host.bootId,
        readEndMessage: (container) => readEndMessage(deps, this.state.ref, container),
        countOomKills: (observed) => countOomKills(deps, this.state.classedPod, observed),
        onUnwritten: (message) => this.warn('FailedSync', message),
      },
      input,
    )
    const aheadFetches = new AheadFetches(() => this.wake())
    this.state = new PodState(memory, aheadFetches, input)
    this.#display = new PodDisplay(deps, this.state)
    const begins = this.state.isUnheardOf ? 'no' : 'refresh'
    this.#volumeRefresh = new VolumeRefresh(deps.clock, () => this.wake(), begins)
    this.#loop = new PassLoop({
      clock: deps.clock,
      turns: deps.turns,
      pass: (signal) => this.#pass(signal),
      onError: (error) => this.#retryLater(error),
      isDone: () => this.state.stage === 'gone',
    })
    this.#executor = new PodExecutor(
      deps,
      this.state,
      (news) => this.#showNews(news),
      () => this.wake(),
    )
    const common = {
      ...deps,
      ...hooks,
      executor: this.#executor,
      publishStatus: () => this.publish(),
      setStage: (stage: PodStage) => this.setStage(stage),
      warn: this.warn,
      wake: () => this.#loop.wake(),
      wakeIn: (delayMs: number) => this.#loop.wakeIn(delayMs),
    }
    this.#endPass = new EndPass({ ...common, hide: () => this.#display.hide() }, this.state)
    this.#livePass = new LivePass(
      {
        ...common,
        display: this.#display,
        volumeRefresh: this.#volumeRefresh,
        settle: () => this.#settle(),
      },
      this.state,
    )
  }

  /** Records a warning event of the pod. */
  readonly warn = (reason: string, message: string): void =>
    this.#deps.events.record({ pod: this.state.ref, type: 'Warning', reason, message })

  /** The first pass runs as soon as it can. */
  begin(): void {
    this.#loop.start()
  }

  /** There may be something to do: a pass runs soon. */
  wake(): void {
    this.#loop.wake()
  }

  /** As `wake`; while a slow action is in flight, the new status is published meanwhile. */
  notice(): void {
    this.#loop.wake()
    this.#executor.notice()
  }

  /**
   * The periodic sync, without a question to the runtime: looks at the pod's record and its cgroup, and has a pass run where
   * the pod needs something of which no event told. Never throws.
   */
  async look(): Promise<void> {
    await this.state.memory.keep()
    const { stage, isSeen, isOver, record } = this.state
    if (stage !== 'active' || !isSeen || isOver || record.failed !== undefined) return
    await this.#lookAtCgroup()
    if (this.#livePass.hasWork) this.#loop.wake()
  }

  /** The pass in flight ends as soon as it can, and another one begins. */
  interrupt(): void {
    this.#loop.interrupt()
  }

  /** Ends the waits of the pass in flight: the manifest has changed. */
  endWaits(): void {
    this.#outdate.abort(new Interrupted())
  }

  /** Labels, annotations or objects that volumes show have changed. */
  markVolumes(): void {
    this.#volumeRefresh.mark()
  }

  /** Shows the pod's current status once the record behind it is on disk. */
  publish(): void {
    this.#display.publish()
  }

  /** The pod is shown no more. */
  hide(): void {
    this.#display.hide()
  }

  /** Of a stopped pod: its remains are removed without waiting for its successor any longer. */
  letRemainsGo(): void {
    this.#endPass.letRemainsGo()
  }

  setStage(stage: PodStage): void {
    if (this.state.stage === stage) return
    this.state.stage = stage
    this.#loop.start()
    if (stage === 'gone') {
      this.#life.abort(new Interrupted())
      this.#volumeRefresh.stop()
    }
    this.#hooks.onStage()
  }

  /** Leaves the pod running; resolves when the pass in flight has stopped too. */
  async stop(): Promise<void> {
    this.#life.abort(new Interrupted())
    this.state.aheadFetches.cancel()
    await this.#loop.stop()
    this.#volumeRefresh.stop()
  }

  #retryLater(error: unknown): void {
    const isEnding = this.state.record.ending !== undefined
    this.#loop.wakeIn((isEnding ? endingRetryMs : errorRetryMs) * (1 + this.#deps.random() * 0.5))
    const message = errorMessage(error)
    const isNews = message !== this.state.lastError
    this.state.lastError = message
    const { name: pod, uid } = this.state.ref
    try {
      if (isNews) {
        this.#deps.logger.warn({ pod, uid, err: error }, 'pod sync failed')
        this.warn(isEnding ? 'FailedKillPod' : 'FailedSync', message)
      }
      this.publish()
    } catch (cause) {
      this.#deps.logger.error({ pod, uid, err: cause }, 'cannot publish the status of the pod')
    }
    this.#deps.changes.note()
  }

  async #pass(signal: AbortSignal): Promise<void> {
    this.#outdate = new AbortController()
    const manifest = AbortSignal.any([signal, this.#outdate.signal])
    await this.#run({ pass: signal, manifest, life: this.#life.signal })
    this.state.lastError = undefined
    this.#deps.changes.note()
  }

  /** Throws what a call threw, Interrupted where the pass was interrupted, OutdatedView where it has to begin again. */
  async #run(signals: PassSignals): Promise<void> {
    const { runtimeProblem, runtimeLosses } = this.#deps
    const { state } = this
    // Every worker is woken when the runtime is available again.
    if (runtimeProblem() !== undefined) return this.publish()
    const waitMs = this.#endPass.remainsWaitMs()
    if (waitMs !== undefined) return this.#loop.wakeIn(waitMs)
    const wasOver = state.isOver
    const losses = runtimeLosses()
    await this.#observe()
    const turn = this.#deps.turns.enter()
    if (turn !== undefined) await turn
    state.lossesWhenSeen = losses
    if (losses !== runtimeLosses()) throw new OutdatedView()
    if (!state.isSeen) await unlinkGone(this.#deps, state.observed)
    await linkLogs(this.#deps, state.observed, state.linkedLogs)
    state.isSeen = true
    await state.memory.rememberEnds(state.observed)
    forgetDoneRestarts(state)
    if (state.isOver !== wasOver) this.#hooks.onStage()
    this.#hooks.onObserved()
    const { ending } = state.record
    if (ending !== undefined) return this.#endPass.run(ending, signals)
    await this.#lookAtCgroup()
    if (await this.#mayRun()) await this.#livePass.run(signals)
    else if (await this.#endBlocked(signals)) return this.#loop.wakeIn(endingRetryMs)
    return this.#endPass.release(signals)
  }

  /** Of a pod that runs: one that is about to start has none yet (`pkg/kubelet/kubelet.go` SyncPod, 1.36). */
  async #lookAtCgroup(): Promise<void> {
    const { state } = this
    const { name: pod, uid } = state.ref
    try {
      state.isCgroupRemoved =
        state.hasRunning && (await this.#deps.host.cgroups.isRemoved(uid, state.classedPod))
    } catch (error) {
      this.#deps.logger.debug({ pod, uid, err: error }, "cannot look at the pod's cgroup")
      state.isCgroupRemoved = false
    }
  }

  async #observe(): Promise<void> {
    const { state } = this
    const { isUnheardOf } = state
    state.isUnheardOf = false
    // What was decided is recorded while the runtime is asked.
    const saved = state.record.ending === undefined ? undefined : state.memory.save('best-effort')
    const observed = isUnheardOf ? undefined : await this.#deps.observe(state.ref.uid)
    await saved
    state.observed = observed ?? state.nothing
  }

  /**
   * Whether the pod may run. Blocked, rejected and failed pods are only shown; of a blocked one that only can't be
   * started, what the runtime has is supervised.
   */
  async #mayRun(): Promise<boolean> {
    const { admission, memory, record, pod, observed, isLive } = this.state
    if (admission?.kind === 'rejected' && record.failed === undefined) {
      const { reason, message } = admission
      memory.change({ failed: { reason, message, admission: true } })
    }
    const isBlocked = admission?.kind === 'blocked'
    const isSupervised = isBlocked && admission.isForbidden !== true && isLive
    if ((admission?.kind === 'admitted' || isSupervised) && record.failed === undefined) {
      this.setStage('active')
      return true
    }
    if (isBlocked && record.failed === undefined)
      this.state.waiting = awaitRuntime({ pod, record, observed }, blockedWaiting(admission.message))
    // A failed pod releases its space first: the disk may be full of what it has written.
    await memory.save(memory.record.failed === undefined ? 'required' : 'best-effort')
    this.publish()
    return false
  }

  /**
   * Ends what a blocked pod still has: what runs of one that may not do any more what it does, which starts again once it
   * may (`pkg/kubelet/kubelet.go`, SyncPod, 1.36), and the network of a sandbox that died. Whether there was anything.
   */
  async #endBlocked(signals: PassSignals): Promise<boolean> {
    const { admission, holdsResources, observed } = this.state
    if (admission?.kind !== 'blocked' || !holdsResources) return false
    await this.#executor.run([{ kind: 'stop-pod', reason: admission.reason }], signals)
    this.state.stoppedSandbox = observed.sandboxes[0]?.id
    this.#hooks.onStage()
    return true
  }

  /** Takes an observation made while actions are in flight. */
  #showNews(observed: ObservedPod): void {
    const wasOver = this.state.isOver
    this.state.observed = observed
    this.#hooks.onObserved()
    if (this.state.isOver !== wasOver) this.#hooks.onStage()
    this.publish()
    this.#deps.changes.note()
  }

  #settle(): void {
    if (this.state.isSettled) return
    this.state.isSettled = true
    this.#hooks.onStage()
  }
}

export interface PassLoopDeps {
  readonly clock: Clock
  /** Those of all pods. */
  readonly turns: SharedTurns
  /** `signal` ends its waits. What it throws goes to `onError`, except Interrupted. */
  readonly pass: (signal: AbortSignal) => Promise<void>
  /** Never throws. */
  readonly onError: (error: unknown) => void
  /** No further pass is needed. */
  readonly isDone: () => boolean
}

const windowMs = 1000
const passesPerWindow = 30

/**
 * Limits the rate of passes: a runtime that reports a container as stopped and then lists it as running must not make
 * podd spin. A pod normally needs only a few passes at once.
 */
class PassPace {
  #fromMs = -Infinity
  #passes = 0

  /** For how many milliseconds a pass that is due at `nowMs` (monotonic) has to wait; 0 for none. */
  delayMs(nowMs: number): number {
    if (nowMs - this.#fromMs >= windowMs) {
      this.#fromMs = nowMs
      this.#passes = 0
    }
    this.#passes += 1
    return this.#passes <= passesPerWindow ? 0 : this.#fromMs + windowMs - nowMs
  }
}

/** Runs one pass after another, each when it is woken or due; never two at a time. */
class PassLoop {
  readonly #deps: PassLoopDeps
  readonly #slot = new WakeSlot()
  readonly #pace = new PassPace()
  #interrupt = new AbortController()
  #timer: Timer | undefined
  #stopping = false
  #running: Promise<void> | undefined

  constructor(deps: PassLoopDeps) {
    this.#deps = deps
  }

  /** The signal of the newest pass. */
  get signal(): AbortSignal {
    return this.#interrupt.signal
  }

  /** Begins; once. */
  start(): void {
    if (this.#running !== undefined) return
    this.#running = this.#run()
    this.#slot.wake()
  }

  wake(): void {
    this.#slot.wake()
  }

  /** Replaces an earlier `wakeIn`. */
  wakeIn(delayMs: number): void {
    this.#timer?.cancel()
    this.#timer = this.#deps.clock.startTimer(delayMs, () => this.#slot.wake())
  }

  /** Interrupts the pass in flight, and starts another. */
  interrupt(): void {
    this.#interrupt.abort(new Interrupted())
    this.#slot.wake()
  }

  /** Resolves when the pass in flight has stopped; none follows it. */
  async stop(): Promise<void> {
    this.#stopping = true
    this.interrupt()
    await this.#running
  }

  /** Returns only when stopped or done; never rejects. */
  async #run(): Promise<void> {
    while (!this.#stopping && !this.#deps.isDone()) {
      await this.#slot.wait()
      if (this.#stopping) break
      this.#timer?.cancel()
      const paceMs = this.#pace.delayMs(this.#deps.clock.monotonicMs())
      if (paceMs > 0) {
        this.wakeIn(paceMs)
        continue
      }
      const turn = this.#deps.turns.enter()
      if (turn !== undefined) await turn
      if (this.#stopping) break
      this.#interrupt = new AbortController()
      try {
        await this.#deps.pass(this.#interrupt.signal)
      } catch (error) {
        if (error instanceof OutdatedView) this.#slot.wake()
        else if (!(error instanceof Interrupted)) this.#deps.onError(error)
      }
    }
    this.#timer?.cancel()
  }
}

/**
 * Records that these containers are to be recreated (all except completed init containers, if none is named), at once
 * and without increasing their backoff, whatever the restart policy. Returns their names. Throws PoddError
 * RESTART_REFUSED for a pod that doesn't run, or a running container that could not be created now because a reference
 * is missing, and RECORD_WRITE if the request can't be recorded: then nothing is restarted.
 */
export async function requestRestart(
  state: PodState,
  wanted: readonly string[] | undefined,
  missingFor: (container: ContainerSpec) => string | undefined,
): Promise<readonly string[]> {
  const { memory, ref } = state
  const refuse = (message: string): PoddError => new PoddError('RESTART_REFUSED', message)
  if (memory.record.ending !== undefined) throw refuse(`pod ${ref.name} is terminating`)
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
  // A request that was refused must not be carried out later.
  await memory.commit(({ restartRequested = [] }) => ({
    restartRequested: [...new Set([...restartRequested, ...choice.ids])],
  }))
  for (const container of choice.names) state.backoffs = withoutContainer(state.backoffs, container)
  return choice.names
}

/** A restart is done when the container has a successor. */
function forgetDoneRestarts({ memory, restartFacts }: PodState): void {
  for (const key of ['restartRequested', 'restartsDue', 'restartAll'] as const) {
    const wanted = memory.record[key]
    if (wanted === undefined) continue
    const open = selectOpenRestarts(restartFacts, wanted)
    if (open.length === wanted.length) continue
    memory.change({ [key]: open.length === 0 ? undefined : open })
  }
}
