import { readClocks } from '../../base/clock.ts'
import type { Clock, Timer } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import { trace } from '../../base/trace.ts'
import { untilAborted } from '../../base/waits.ts'
import { isOutdated } from '../../decide/plan/container-view.ts'
import { computePodActions } from '../../decide/plan/compute-pod-actions.ts'
import type { EndRequest } from '../../decide/plan/ending.ts'
import { factsToJson, planToJson } from '../../decide/plan/facts-json.ts'
import type { PodAction, PodPlan } from '../../decide/plan/pod-action.ts'
import type { ContainerFacts, PodFacts } from '../../decide/plan/pod-facts.ts'
import { reviewSparedRestarts } from '../../decide/plan/restart-request.ts'
import type { SparedRestarts } from '../../decide/plan/restart-request.ts'
import { selectAwaitedImages, selectRecreations } from '../../decide/plan/start-order.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { allContainers } from '../../pod/schema/pod-resources.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import { computeSpecHash, findMissingReference } from '../../translate/config-hash.ts'
import type { PodDisplay } from './display.ts'
import { warn } from './env.ts'
import type { PodEnv } from './env.ts'
import { execute } from './execute.ts'
import { errorRetryMs } from './pass.ts'
import type { PassLoop, PassSignals } from './pass.ts'
import type { PodState } from './state.ts'

/** A pass of a pod that shall run: decides what it needs now, records and shows it, and carries it out. */
export class LivePass {
  readonly #env: PodEnv
  readonly #state: PodState
  readonly #loop: PassLoop
  readonly #display: PodDisplay
  readonly #volumeRefresh: VolumeRefresh
  readonly #end: (request: EndRequest) => void
  #sparedSinceMs: SparedRestarts['sinceMs'] = new Map()

  /** @param end ends the pod, which has exceeded its active deadline */
  constructor(
    env: PodEnv,
    state: PodState,
    loop: PassLoop,
    display: PodDisplay,
    end: (request: EndRequest) => void,
  ) {
    this.#env = env
    this.#state = state
    this.#loop = loop
    this.#display = display
    this.#volumeRefresh = new VolumeRefresh(
      env.clock,
      () => loop.wake(),
      state.isUnheardOf ? 'no' : 'refresh',
    )
    this.#end = end
  }

  async run(signals: PassSignals): Promise<void> {
    const { clock, prober, shutdown, system } = this.#env
    const state = this.#state
    const { memory, observed, ref } = state
    state.beginPass(readClocks(clock))
    memory.rememberProbes(observed, prober.verdicts(ref.uid))
    const overdueMs = state.activeDeadlineMs
    if (overdueMs !== undefined && clock.wallMs() >= overdueMs) return this.#exceedDeadline()
    const hasVolumes = observed.sandboxes.length > 0 && !state.isOver
    if (hasVolumes && system.objectsKnown) await this.#refreshVolumes()

    if (shutdown.isStopping) return this.#waitForHost()
    let plan = this.#decide()
    const asked = touchesContainers(plan) ? shutdown.look() : undefined
    if (asked !== undefined) {
      // systemd may be busy for seconds: a pod that is to end doesn't wait for that.
      if (await untilAborted(asked, signals.pass)) return this.#waitForHost()
      plan = this.#decide()
    }
    if (plan.isLost === true) return this.#failLost()
    this.#tellNews(plan)
    state.takePlan(plan)
    const sparedInMs = this.#forgetSpared(plan.restartsDue ?? [])
    const show = this.#display.prepare()
    if (plan.actions.length === 0) {
      const saved = memory.save('best-effort')
      await this.#display.showRecorded(show, saved)
      await saved
      return this.#rest(plan.wakeAtMs, overdueMs, sparedInMs)
    }

    chargeRestarts(state, plan.actions)
    // For the next podd: which containers run without the image that their manifest names.
    for (const [name, image] of selectAwaitedImages(plan.actions, observed)) state.awaitImage(name, image)
    const actions = numberSandbox(state, plan.actions)
    const recorded = memory.save('required')
    void this.#display.showRecorded(show, recorded)
    const deadline = this.#watchDeadline(overdueMs)
    try {
      const notes = { recorded, restartsDue: plan.restartsDue }
      await execute(this.#env, state, this.#loop, signals, actions, notes)
    } finally {
      deadline?.cancel()
    }
    state.settle()
    this.#loop.wake()
  }

  /**
   * The host is going down: what ends is shown, and nothing is started, or stopped to be started again. If that is called off,
   * the pod is woken.
   */
  async #waitForHost(): Promise<void> {
    const show = this.#display.prepare()
    const saved = this.#state.memory.save('best-effort')
    await this.#display.showRecorded(show, saved)
    await saved
    this.#state.settle()
  }

  /** Whether a pass would do anything, by what was observed last. */
  get hasWork(): boolean {
    const { actions, isLost, wakeAtMs } = computePodActions(gatherFacts(this.#env, this.#state))
    return actions.length > 0 || isLost === true || (wakeAtMs ?? Infinity) <= this.#env.clock.wallMs()
  }

  /** Labels, annotations or objects that volumes show have changed. */
  markVolumes(): void {
    this.#volumeRefresh.mark()
  }

  /** Leaves the files of its volumes as they are. */
  stop(): void {
    this.#volumeRefresh.stop()
  }

  /** With log level `debug` the facts and the plan are logged: the plan can be computed again from that line. */
  #decide(): PodPlan {
    const facts = gatherFacts(this.#env, this.#state)
    const plan = computePodActions(facts)
    const { name: pod, uid } = this.#state.ref
    const logged = {
      facts: { toJSON: () => factsToJson(facts) },
      plan: { toJSON: () => planToJson(plan) },
    }
    this.#env.logger.debug({ pod, uid, ...logged }, 'computed what the pod needs')
    trace?.('decided', `${pod}: ${plan.actions.map(({ kind }) => kind).join(' ')}`)
    return plan
  }

  /**
   * Drops restarts that were due of containers that go on running after all. Returns after how many milliseconds to look
   * again.
   */
  #forgetSpared(planned: readonly ContainerId[]): number | undefined {
    const { record, observed, pod } = this.#state
    const { restartsDue } = record
    if (restartsDue === undefined) return undefined
    const facts = { pod, observed, restartsDue }
    const nowMs = this.#env.clock.monotonicMs()
    const { due, sinceMs, nextInMs } = reviewSparedRestarts(facts, this.#sparedSinceMs, planned, nowMs)
    this.#sparedSinceMs = sinceMs
    if (due.length < restartsDue.length) this.#state.keepRestarts(due)
    return nextInMs
  }

  /** Nothing is to be done until then. */
  #rest(wakeAtMs: number | undefined, overdueMs: number | undefined, sparedInMs: number | undefined): void {
    this.#state.settle()
    const nowMs = this.#env.clock.wallMs()
    const delayMs = Math.min(
      (wakeAtMs ?? Infinity) - nowMs,
      (overdueMs ?? Infinity) - nowMs,
      sparedInMs ?? Infinity,
      this.#state.memory.isSaved ? Infinity : errorRetryMs,
    )
    if (delayMs !== Infinity) this.#loop.wakeIn(delayMs)
  }

  /** Updates the files of volumes. A failure becomes an event, and is tried again with the next change. */
  async #refreshVolumes(): Promise<void> {
    const { ref, allocatedPod: pod, record } = this.#state
    try {
      const volumes = { uid: ref.uid, pod, source: record.source }
      await this.#volumeRefresh.run(() => this.#env.volumes.prepare(volumes))
    } catch (error) {
      warn(this.#env, ref, 'FailedMount', errorMessage(error))
    }
  }

  /** Records what a plan has new: containers in backoff, and those that can't be recreated. */
  #tellNews({ waiting, blockedRestarts = new Map() }: PodPlan): void {
    const { ref, waiting: waitingBefore, blockedRestarts: blockedBefore } = this.#state
    for (const [container, { reason }] of waiting) {
      if (reason !== 'CrashLoopBackOff' || waitingBefore.get(container)?.reason === reason) continue
      const message = `Back-off restarting failed container ${container} in pod ${ref.name}_${ref.namespace}(${ref.uid})`
      warn(this.#env, ref, 'BackOff', message, container)
    }
    for (const [container, missing] of blockedRestarts) {
      if (blockedBefore.get(container) === missing) continue
      const message = `Error: ${missing}; the container keeps running, and is recreated when that is available`
      warn(this.#env, ref, 'Failed', message, container)
    }
  }

  async #failLost(): Promise<void> {
    const { memory, pod, ref } = this.#state
    const reason = 'SandboxLost'
    const message = `The pod's sandbox was lost before its containers ran, and its restart policy ${pod.spec.restartPolicy} does not allow a new one`
    this.#state.fail({ reason, message })
    warn(this.#env, ref, reason, message)
    await memory.save('required')
    this.#loop.wake()
  }

  /** Ends the pod at its active deadline, also while an action is in flight. */
  #watchDeadline(overdueMs: number | undefined): Timer | undefined {
    if (overdueMs === undefined) return undefined
    const { clock } = this.#env
    const startTimer = (dueMs: number): Timer =>
      clock.startTimer(dueMs - clock.wallMs(), () => {
        const { activeDeadlineMs } = this.#state
        if (activeDeadlineMs === undefined) return
        // A changed manifest, or a wall clock that was set, may have moved it; a timer may fire a little early.
        if (clock.wallMs() < activeDeadlineMs) timer = startTimer(activeDeadlineMs)
        else this.#exceedDeadline()
      })
    let timer = startTimer(overdueMs)
    return { cancel: () => timer.cancel() }
  }

  #exceedDeadline(): void {
    this.#end({
      cause: 'deadline',
      reason: 'DeadlineExceeded',
      message: 'Pod was active on the node longer than the specified deadline',
      graceSeconds: this.#state.pod.spec.terminationGracePeriodSeconds,
    })
  }
}

/**
 * Records the next backoff delay of each container that the plan restarts, with one write for all. Where a sandbox has to be
 * created first, or the image differs from the one that the container had, the restart may never happen: then `startContainer`
 * records the delay when the container is about to start.
 */
function chargeRestarts({ memory, record }: PodState, actions: readonly PodAction[]): void {
  if (actions.some(({ kind }) => kind === 'stop-pod' || kind === 'create-sandbox')) return
  for (const action of actions) {
    if (action.kind !== 'start-container' || action.awaitedImage !== undefined) continue
    const { name, image } = action.spec
    if (record.containers[name]?.ended?.image === image) memory.charge(action)
  }
}

function numberSandbox({ memory }: PodState, actions: readonly PodAction[]): readonly PodAction[] {
  return actions.map((action) =>
    action.kind === 'create-sandbox'
      ? { ...action, attempt: memory.takeSandboxAttempt(action.attempt) }
      : action,
  )
}

/** Whether it starts anything, or stops what is to be started again. */
function touchesContainers({ actions, isLost }: PodPlan): boolean {
  return (
    isLost === true ||
    actions.some(({ kind }) => {
      switch (kind) {
        case 'create-sandbox':
        case 'start-container':
        case 'stop-container':
        case 'stop-pod':
          return true
        default:
          return false
      }
    })
  )
}

/** All facts that a pass of a live pod decides by. */
function gatherFacts(env: PodEnv, state: PodState): PodFacts {
  const pod = state.allocatedPod
  const { retries, resizeRefusal } = state
  const facts = { ...state.restartFacts, pod }
  const specs = allContainers(pod.spec)
  const hashes = new Map(specs.map((spec) => [spec.name, specHashOf(env, state, spec)]))
  const recreations = selectRecreations(facts, (name) => hashes.get(name))
  const { source, usesServices = false } = state.record
  const unread = usesServices ? env.awaitsServices(source, state.ref.uid) : undefined
  const blocked =
    state.startBlock ??
    (unread === undefined ? undefined : { message: unread, containers: specs.map(({ name }) => name) })
  const missingOf = (spec: ContainerSpec): string | undefined =>
    blocked?.containers.includes(spec.name) === true
      ? blocked.message
      : findMissingReference(env, { pod, source }, spec)
  const row = (spec: ContainerSpec): ContainerFacts => ({
    specHash: hashes.get(spec.name),
    imageReady: state.fresh.has(spec.image),
    isFetching: state.aheadFetches.has(spec.name),
    missing: recreations.has(spec.name) ? missingOf(spec) : undefined,
  })
  return {
    ...facts,
    probes: env.prober.verdicts(state.ref.uid),
    containerFacts: Object.fromEntries(specs.map((spec) => [spec.name, row(spec)])),
    retries,
    ...(blocked !== undefined && { blocked }),
    ...(state.isCgroupRemoved ? { isCgroupRemoved: true } : {}),
    resizeRefusal,
    containerPolicy: env.containerPolicy,
    ...(state.condemned.size === 0 ? {} : { condemned: [...state.condemned] }),
    nowMs: env.clock.wallMs(),
    bootId: env.bootId,
    limits: env.limits,
  }
}

/** Whether a container runs that was created from another spec, or with other ConfigMaps and Secrets than it shall have. */
export function hasOutdatedContainers(env: PodEnv, state: PodState): boolean {
  return allContainers(state.allocatedPod.spec).some((spec) => {
    const hash = specHashOf(env, state, spec)
    return state.observed.containers.some(
      (container) =>
        container.name === spec.name && container.state === 'running' && isOutdated(container, hash),
    )
  })
}

/** The hash that a container created now would get; undefined where there is no running one to compare it with. */
function specHashOf(
  env: PodEnv,
  { allocatedPod: pod, record: { source }, observed }: PodState,
  container: ContainerSpec,
): string | undefined {
  const running = observed.containers.filter(({ name }) => name === container.name)
  const [newest] = running
  if (newest === undefined || !running.some(({ state }) => state === 'running')) return undefined
  return computeSpecHash({
    host: env,
    pod,
    source,
    container,
    running: newest.specHash,
    objectsKnown: env.system.objectsKnown,
  })
}

/** Old files of volumes are removed after this, so that readers can finish. */
const tidyAfterMs = 2000
/** A failed update is tried again, each time after twice as long: a full disk may have room again. */
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
  #retryMs = errorRetryMs

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
    this.#retryMs = errorRetryMs
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
