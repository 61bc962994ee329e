import type { Clock, Timer } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { trace } from '../../base/trace.ts'
import { computePodActions } from '../../decide/plan/compute-pod-actions.ts'
import type { EndRequest } from '../../decide/plan/ending.ts'
import { factsToJson, planToJson } from '../../decide/plan/facts-json.ts'
import type { PodAction, PodPlan, Waiting } from '../../decide/plan/pod-action.ts'
import { clockSetMs } from '../../decide/plan/pod-facts.ts'
import type { ClockReading, ContainerFacts, PodFacts } from '../../decide/plan/pod-facts.ts'
import { reviewSparedRestarts } from '../../decide/plan/restart-request.ts'
import type { SparedRestarts } from '../../decide/plan/restart-request.ts'
import { selectAwaitedImages, selectRecreations } from '../../decide/plan/start-order.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import { computeSpecHash, findMissingReference } from '../../translate/config-hash.ts'
import type { PassSignals } from './context.ts'
import type { PodDisplay } from './display.ts'
import type { PassDeps, PodExecutor, RunOptions } from './execute.ts'
import type { PodState } from './state.ts'

/** What this pass needs of the pod's worker. */
export interface LivePassDeps extends PassDeps {
  readonly executor: PodExecutor
  readonly display: Pick<PodDisplay, 'derive' | 'showRecorded'>
  readonly volumeRefresh: VolumeRefresh
  readonly warn: (reason: string, message: string) => void
  readonly end: (request: EndRequest) => void
  /** The pod has settled: its containers were started, or wait for something. */
  readonly settle: () => void
  readonly wake: () => void
  readonly wakeIn: (delayMs: number) => void
}

const nothingBlocked: ReadonlyMap<string, string> = new Map()

/** The delay before a failed write is tried again. */
const saveAgainMs = 10_000

/** A pass of a pod that shall run: decides what it needs now, records and shows it, and carries it out. */
export class LivePass {
  readonly #deps: LivePassDeps
  readonly #state: PodState
  #sparedSinceMs: SparedRestarts['sinceMs'] = new Map()
  /** The clocks at the last pass. */
  #looked: ClockReading

  constructor(deps: LivePassDeps, state: PodState) {
    this.#deps = deps
    this.#state = state
    this.#looked = { wallMs: deps.clock.wallMs(), monotonicMs: deps.clock.monotonicMs() }
  }

  async run(signals: PassSignals): Promise<void> {
    const { clock, display, objectsKnown, probes } = this.#deps
    const { memory, record, observed } = this.#state
    if (record.startedAtMs === undefined) memory.change({ startedAtMs: clock.wallMs() })
    this.#followClock()
    memory.rememberProbes(observed, probes())
    const overdueMs = this.#state.activeDeadlineMs
    if (overdueMs !== undefined && clock.wallMs() >= overdueMs) return this.#exceedDeadline()
    const hasVolumes = observed.sandboxes.length > 0 && !this.#state.isOver
    if (hasVolumes && objectsKnown()) await this.#refreshVolumes()
    const plan = this.#decide()
    trace?.('decided', `${this.#state.ref.name}: ${plan.actions.map(({ kind }) => kind).join(' ')}`)
    if (plan.isLost === true) return this.#failLost()
    this.#tellOfBackoff(plan.waiting)
    if (plan.restartAll !== undefined) memory.change({ restartAll: [...plan.restartAll] })
    this.#state.waiting = plan.waiting
    this.#state.resize = plan.resize
    this.#tellOfBlocked(plan.blockedRestarts ?? nothingBlocked)
    const sparedInMs = this.#forgetSpared(plan.restartsDue ?? [])
    const show = display.derive()
    if (plan.actions.length === 0) {
      const saved = memory.save('best-effort')
      await display.showRecorded(show, saved)
      await saved
      return this.#rest(plan.wakeAtMs, overdueMs, sparedInMs)
    }
    this.#chargeRestarts(plan.actions)
    this.#noteAwaited(plan.actions)
    const actions = this.#numberSandbox(plan.actions)
    const recorded = memory.save('required')
    void display.showRecorded(show, recorded)
    await this.#actUntil(overdueMs, { actions, recorded, restartsDue: plan.restartsDue }, signals)
    this.#deps.settle()
    return this.#deps.wake()
  }

  /** Whether a pass would do anything, by what was observed last. */
  get hasWork(): boolean {
    const { actions, isLost, wakeAtMs } = computePodActions(gatherFacts(this.#deps, this.#state))
    return actions.length > 0 || isLost === true || (wakeAtMs ?? Infinity) <= this.#deps.clock.wallMs()
  }

  /** With log level `debug` the facts and the plan are logged: the plan can be computed again from that line. */
  #decide(): PodPlan {
    const facts = gatherFacts(this.#deps, this.#state)
    const plan = computePodActions(facts)
    const { name: pod, uid } = this.#state.ref
    const logged = {
      facts: { toJSON: () => factsToJson(facts) },
      plan: { toJSON: () => planToJson(plan) },
    }
    this.#deps.logger.debug({ pod, uid, ...logged }, 'computed what the pod needs')
    return plan
  }

  /** Returns after how many milliseconds to look again. */
  #forgetSpared(planned: readonly ContainerId[]): number | undefined {
    const { memory, observed, pod } = this.#state
    const { restartsDue } = memory.record
    if (restartsDue === undefined) return undefined
    const facts = { pod, observed, restartsDue }
    const nowMs = this.#deps.clock.monotonicMs()
    const { due, sinceMs, nextInMs } = reviewSparedRestarts(facts, this.#sparedSinceMs, planned, nowMs)
    this.#sparedSinceMs = sinceMs
    if (due.length < restartsDue.length) memory.change({ restartsDue: due.length === 0 ? undefined : due })
    return nextInMs
  }

  /** Nothing is to be done until then. */
  #rest(wakeAtMs: number | undefined, overdueMs: number | undefined, sparedInMs: number | undefined): void {
    const { memory } = this.#state
    this.#deps.settle()
    const nowMs = this.#deps.clock.wallMs()
    const delayMs = Math.min(
      (wakeAtMs ?? Infinity) - nowMs,
      (overdueMs ?? Infinity) - nowMs,
      sparedInMs ?? Infinity,
      memory.isSaved ? Infinity : saveAgainMs,
    )
    if (delayMs !== Infinity) this.#deps.wakeIn(delayMs)
  }

  /** Updates the files of volumes. A failure becomes an event, and is tried again with the next change. */
  async #refreshVolumes(): Promise<void> {
    const { host, volumeRefresh, warn } = this.#deps
    try {
      const { ref, allocatedPod: pod, record } = this.#state
      const volumes = { uid: ref.uid, pod, source: record.source }
      await volumeRefresh.run(() => host.volumes.prepare(volumes))
    } catch (error) {
      warn('FailedMount', errorMessage(error))
    }
  }

  /**
   * Records the backoff of the restarts in this plan, with one write for all. If a sandbox has to be created first, or
   * an image differs from the one that the container had, a restart may never happen: then its backoff is recorded when
   * the container is about to start.
   */
  #chargeRestarts(actions: readonly PodAction[]): void {
    if (actions.some(({ kind }) => kind === 'stop-pod' || kind === 'create-sandbox')) return
    const { memory, record } = this.#state
    for (const action of actions) {
      if (action.kind !== 'start-container' || action.awaitedImage !== undefined) continue
      const { name, image } = action.spec
      if (record.containers[name]?.ended?.image === image) memory.charge(action)
    }
  }

  #numberSandbox(actions: readonly PodAction[]): readonly PodAction[] {
    return actions.map((action) =>
      action.kind === 'create-sandbox'
        ? { ...action, attempt: this.#state.memory.takeSandboxAttempt(action.attempt) }
        : action,
    )
  }

  /** Records which containers run without the image that their manifest names, for the next podd. */
  #noteAwaited(actions: readonly PodAction[]): void {
    const { memory, observed } = this.#state
    for (const [name, awaitedImage] of selectAwaitedImages(actions, observed)) {
      if (memory.record.containers[name]?.awaitedImage !== awaitedImage)
        memory.changeContainer(name, { awaitedImage })
    }
  }

  #tellOfBackoff(waiting: ReadonlyMap<string, Waiting>): void {
    const { ref } = this.#state
    for (const [container, { reason }] of waiting) {
      if (reason !== 'CrashLoopBackOff' || this.#state.waiting.get(container)?.reason === reason) continue
      const message = `Back-off restarting failed container ${container} in pod ${ref.name}_${ref.namespace}(${ref.uid})`
      this.#deps.events.record({ pod: ref, container, type: 'Warning', reason: 'BackOff', message })
    }
  }

  #tellOfBlocked(blocked: ReadonlyMap<string, string>): void {
    const before = this.#state.blockedRestarts
    this.#state.blockedRestarts = blocked
    for (const [container, missing] of blocked) {
      if (before.get(container) === missing) continue
      const message = `Error: ${missing}; the container keeps running, and is recreated when that is available`
      this.#deps.events.record({
        pod: this.#state.ref,
        container,
        type: 'Warning',
        reason: 'Failed',
        message,
      })
    }
  }

  async #failLost(): Promise<void> {
    const { memory, pod } = this.#state
    const reason = 'SandboxLost'
    const message = `The pod's sandbox was lost before its containers ran, and its restart policy ${pod.spec.restartPolicy} does not allow a new one`
    memory.change({ failed: { reason, message } })
    this.#deps.warn(reason, message)
    await memory.save('required')
    this.#deps.wake()
  }

  /** When the wall clock was set, the pod's start time and its deadline move with it: its age stays the same. */
  #followClock(): void {
    const { clock } = this.#deps
    const { memory } = this.#state
    const now = { wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() }
    const setMs = clockSetMs(this.#looked, now)
    this.#looked = now
    const { startedAtMs } = memory.record
    if (setMs !== 0 && startedAtMs !== undefined) memory.change({ startedAtMs: startedAtMs + setMs })
  }

  /** Wakes the pod at its active deadline, also while an action is in flight. */
  async #actUntil(
    overdueMs: number | undefined,
    { actions, ...options }: RunOptions & Pick<PodPlan, 'actions'>,
    signals: PassSignals,
  ): Promise<void> {
    const { clock, executor } = this.#deps
    const timer =
      overdueMs === undefined
        ? undefined
        : clock.startTimer(overdueMs - clock.wallMs(), () => {
            // A changed manifest may have moved it.
            const { activeDeadlineMs } = this.#state
            if (activeDeadlineMs !== undefined && clock.wallMs() >= activeDeadlineMs) this.#exceedDeadline()
          })
    try {
      await executor.run(actions, signals, options)
    } finally {
      timer?.cancel()
    }
  }

  #exceedDeadline(): void {
    this.#deps.end({
      cause: 'deadline',
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
      graceSeconds: this.#state.pod.spec.terminationGracePeriodSeconds,
    })
  }
}

type FactsDeps = Pick<PassDeps, 'host' | 'objectsKnown' | 'probes' | 'limits' | 'containerPolicy' | 'clock'>

/** All facts that a pass of a live pod decides by. */
function gatherFacts(deps: FactsDeps, state: Readonly<PodState>): PodFacts {
  const { host, probes, limits, clock } = deps
  const pod = state.allocatedPod
  const { backoffs, resizeRefusal } = state
  const facts = { ...state.restartFacts, pod }
  const { initContainers, containers, ephemeralContainers } = pod.spec
  const specs = [...initContainers, ...containers, ...ephemeralContainers]
  const hashes = new Map(specs.map((spec) => [spec.name, specHashOf(deps, state, spec)]))
  const recreations = selectRecreations(facts, (name) => hashes.get(name))
  const blocked = state.startBlock
  const missingOf = (spec: ContainerSpec): string | undefined =>
    blocked?.containers.includes(spec.name) === true
      ? blocked.message
      : findMissingReference(host, { pod, source: state.record.source }, spec)
  const row = (spec: ContainerSpec): ContainerFacts => ({
    specHash: hashes.get(spec.name),
    imageReady: state.fresh.has(spec.image),
    isFetching: state.aheadFetches.has(spec.name),
    missing: recreations.has(spec.name) ? missingOf(spec) : undefined,
  })
  return {
    ...facts,
    probes: probes(),
    containerFacts: Object.fromEntries(specs.map((spec) => [spec.name, row(spec)])),
    backoffs,
    ...(blocked === undefined ? {} : { blocked }),
    ...(state.isCgroupRemoved ? { isCgroupRemoved: true } : {}),
    resizeRefusal,
    containerPolicy: deps.containerPolicy,
    ...(state.condemned.size === 0 ? {} : { condemned: [...state.condemned] }),
    nowMs: clock.wallMs(),
    bootId: host.bootId,
    limits,
  }
}

/** The hash that a container created now would get; undefined where there is no running one to compare it with. */
function specHashOf(
  { host, objectsKnown }: FactsDeps,
  { allocatedPod: pod, record: { source }, observed }: Readonly<PodState>,
  container: ContainerSpec,
): string | undefined {
  const running = observed.containers.filter(({ name }) => name === container.name)
  const [newest] = running
  if (newest === undefined || !running.some(({ state }) => state === 'running')) return undefined
  return computeSpecHash({
    host,
    pod,
    source,
    container,
    running: newest.specHash,
    objectsKnown: objectsKnown(),
  })
}

/** Old files of volumes are removed after this, so that readers can finish. */
const tidyAfterMs = 2000
/** The first delay before a failed update is tried again; it doubles each time. A full disk may have room again. */
const firstRetryMs = 10_000
const longestRetryMs = 120_000

/**
 * Keeps the files of one pod's volumes up to date: once marked, the next pass writes them again where they differ, and
 * a later one removes the old files.
 */
export class VolumeRefresh {
  readonly #clock: Clock
  readonly #wake: () => void
  #due: 'no' | 'refresh' | 'tidy'
  #timer: Timer | undefined
  #retryMs = firstRetryMs

  /**
   * @param begins `refresh` where files of an earlier podd may be out of date; `no` for a new pod, whose files its start
   * writes
   */
  constructor(clock: Clock, wake: () => void, begins: 'no' | 'refresh') {
    this.#clock = clock
    this.#wake = wake
    this.#due = begins
  }

  mark(): void {
    this.#due = 'refresh'
  }

  /** Does what is due. Throws what `prepare` throws; that is tried again after a while, or with the next mark. */
  async run(prepare: () => Promise<unknown>): Promise<void> {
    const due = this.#due
    if (due === 'no') return
    this.#due = 'no'
    try {
      await prepare()
    } catch (error) {
      this.#wakeIn(this.#retryMs, due)
      this.#retryMs = Math.min(this.#retryMs * 2, longestRetryMs)
      throw error
    }
    this.#retryMs = firstRetryMs
    if (due === 'refresh') this.#wakeIn(tidyAfterMs, 'tidy')
  }

  stop(): void {
    this.#timer?.cancel()
  }

  #wakeIn(delayMs: number, due: 'refresh' | 'tidy'): void {
    this.#timer?.cancel()
    this.#timer = this.#clock.startTimer(delayMs, () => {
      if (this.#due === 'no') this.#due = due
      this.#wake()
    })
  }
}
