import type { SharedTurns, Timer } from '../../base/clock.ts'
import { errorMessage, PoddError } from '../../base/errors.ts'
import { settleAll } from '../../base/waits.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { ContainerGarbagePolicy } from '../../decide/node/plan-container-garbage.ts'
import { backoffOf, nextImageBackoff, resizeBackoff, withBackoff } from '../../decide/plan/backoff.ts'
import type { BackoffLimits } from '../../decide/plan/backoff.ts'
import type { PodAction, PodPlan } from '../../decide/plan/pod-action.ts'
import type { ProbeVerdicts } from '../../decide/plan/pod-facts.ts'
import { appliedPod, lowersMemoryLimit, podLevelResources, withPodLevel } from '../../decide/plan/resize.ts'
import type { ContainerResize } from '../../decide/plan/resize.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ResourceLists } from '../../pod/schema/pod-resources.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerId, PodUid } from '../../pod/values/ids.ts'
import { quantityValue } from '../../pod/values/quantity.ts'
import { containerResources } from '../../translate/resources.ts'
import { OutdatedView, recordEvent } from './context.ts'
import type { ActionOutcome, PassHooks, PassSignals, PodContext, SandboxInUse } from './context.ts'
import { fetchImagesAhead } from './images.ts'
import { AheadWork, createSandbox, useObservedSandbox } from './sandbox.ts'
import { finishPostStart, startContainer } from './start.ts'
import type { PodState } from './state.ts'
import { removeContainers, removeSandboxes, stopContainer, stopPod } from './stop.ts'

/** The dependencies of a pass. */
export interface PassDeps extends Pick<PodContext, 'host' | 'images' | 'events' | 'clock' | 'logger'> {
  /** Those of all pods: for work that many of them may be about to do. */
  readonly turns: SharedTurns
  /** The newest probe verdicts of this pod. */
  readonly probes: () => ProbeVerdicts
  readonly limits: BackoffLimits
  /** How many exited containers are kept. */
  readonly containerPolicy: ContainerGarbagePolicy
  /** See PodContext. */
  readonly networkProblem: () => Promise<string | undefined>
  /** Whether this runtime handler supports recursive read-only mounts. */
  readonly recursiveReadOnly: (runtimeHandler: string) => boolean
  /**
   * How often the runtime was unavailable or podd did not run so far. Observations from before the last time may be
   * outdated.
   */
  readonly runtimeLosses: () => number
  /** Whether all referenced objects have been loaded, so that an absent one is missing rather than not read yet. */
  readonly objectsKnown: () => boolean
}

export interface PodExecutorDeps extends PassDeps {
  readonly observe: (uid: PodUid) => Promise<ObservedPod | undefined>
}

export interface RunOptions {
  /** See PodJournal; left out where the plan is already in the record. */
  readonly recorded?: Promise<void>
  /** See PodPlan. */
  readonly restartsDue?: PodPlan['restartsDue']
  readonly onContainersStopped?: PassHooks['onContainersStopped']
}

/** The delay before news is published; a pass that ends sooner publishes it itself. */
const newsDelayMs = 1000

/**
 * Carries out the plans of one pod's passes. Observes the pod again while actions are in flight and something changed.
 */
export class PodExecutor {
  readonly #deps: PodExecutorDeps
  readonly #state: PodState
  readonly #onNews: (observed: ObservedPod) => void
  readonly #wake: () => void
  /** Ends the watches for paths that backoffs wait for. */
  #watches = new AbortController()
  /** The signal of the actions in flight; undefined while there are none. */
  #signal: AbortSignal | undefined
  #newsTimer: Timer | undefined

  /**
   * @param onNews called with an observation made while actions are in flight; the actions themselves keep to the
   * earlier one
   * @param wake called when what a backoff waited for is there
   */
  constructor(
    deps: PodExecutorDeps,
    state: PodState,
    onNews: (observed: ObservedPod) => void,
    wake: () => void,
  ) {
    this.#deps = deps
    this.#state = state
    this.#onNews = onNews
    this.#wake = wake
  }

  /** Throws what a call threw, or the reason for which the pass ended. */
  async run(
    actions: readonly PodAction[],
    signals: PassSignals,
    { recorded = Promise.resolve(), restartsDue = [], onContainersStopped = () => {} }: RunOptions = {},
  ): Promise<void> {
    this.#signal = signals.pass
    this.#watches.abort()
    this.#watches = new AbortController()
    try {
      const context = this.#makeContext(signals, { recorded, restartsDue, onContainersStopped })
      for await (const outcome of executeActions(context, actions)) {
        if (outcome.kind === 'fetch-wanted') this.#fetchAhead(context, outcome.spec)
        else applyOutcome(this.#state, outcome)
        if (outcome.kind === 'backoff') this.#awaitPath(outcome, signals.life)
        // Resources that a runtime may not report are on disk before they are shown.
        if (outcome.kind === 'resized') await this.#state.memory.save('best-effort')
      }
    } finally {
      this.#signal = undefined
      this.#newsTimer?.cancel()
      this.#newsTimer = undefined
    }
  }

  #makeContext(
    signals: PassSignals,
    { recorded, restartsDue = [], onContainersStopped }: Required<RunOptions>,
  ): PodContext {
    const { host, images, events, clock, logger, networkProblem, turns, recursiveReadOnly, runtimeLosses } =
      this.#deps
    const { memory, ref, record, observed, fresh, allocatedPod: pod } = this.#state
    const { preStops, postStarts, linkedLogs, lossesWhenSeen } = this.#state
    return {
      ref,
      pod,
      record,
      observed,
      networkProblem,
      recursiveReadOnly: recursiveReadOnly(record.classes?.runtimeHandler ?? ''),
      fresh,
      host,
      images,
      events,
      clock,
      logger,
      signals,
      journal: {
        recorded: recorded.then(() => turns.enter()),
        claimPreStop: (id, isHeld) => memory.claimPreStop(id, isHeld, this.#state.observed),
        releasePreStop: (id) => memory.releasePreStop(id),
        notePostStart: (id) => memory.notePostStart(id, this.#state.observed),
        forgetPostStart: (id) => memory.forgetPostStart(id),
        noteRestarts: () => memory.noteRestarts(restartsDue),
        claimRestart: (id) => memory.claimRestart(id),
        charge: async (action) => {
          memory.charge(action)
          await memory.save('required')
        },
      },
      pass: {
        checkSeen: () => {
          if (runtimeLosses() !== lossesWhenSeen) throw new OutdatedView()
        },
        onContainersStopped,
        lookSoon: () => this.notice(),
      },
      inFlight: { preStops, postStarts, linkedLogs },
      made: new Set(),
    }
  }

  /**
   * Fetches the image that a running container needs for its next start. The outcome of a cancelled fetch is dropped.
   */
  #fetchAhead(context: PodContext, spec: ContainerSpec): void {
    this.#state.aheadFetches.begin(spec.name, async (signal) => {
      const outcome = await fetchImagesAhead(context, spec, signal)
      if (outcome !== undefined && !signal.aborted) applyOutcome(this.#state, outcome)
    })
  }

  /** Ends a backoff early that waits for something on the host. */
  #awaitPath({ key, backoff }: Extract<ActionOutcome, { kind: 'backoff' }>, life: AbortSignal): void {
    if (backoff.awaitedPath === undefined) return
    const signal = AbortSignal.any([life, this.#watches.signal])
    void this.#deps.host.volumes.whenThere(backoff.awaitedPath, signal).then(
      () => {
        if (signal.aborted || backoffOf(this.#state.backoffs, key) !== backoff) return
        this.#state.backoffs = withBackoff(this.#state.backoffs, key, undefined)
        this.#wake()
      },
      // The next pass looks anyway.
      () => undefined,
    )
  }

  /** The pod changed: its status is published soon if a slow action is in flight. */
  notice(): void {
    if (this.#signal !== undefined)
      this.#newsTimer ??= this.#deps.clock.startTimer(newsDelayMs, () => void this.#look())
  }

  async #look(): Promise<void> {
    this.#newsTimer = undefined
    // Each pass has its own signal.
    const signal = this.#signal
    const { name: pod, uid } = this.#state.ref
    try {
      const observed = await this.#deps.observe(uid)
      if (observed === undefined || signal === undefined) return
      if (signal === this.#signal && !signal.aborted) this.#onNews(observed)
    } catch (error) {
      this.#deps.logger.debug({ pod, uid, err: error }, 'cannot publish the status of the pod')
    }
  }
}

/** Applies the outcome of an action to the pod's state. The executor begins a requested fetch. */
function applyOutcome(
  state: PodState,
  outcome: Exclude<ActionOutcome, { readonly kind: 'fetch-wanted' }>,
): void {
  const { memory, fresh } = state
  switch (outcome.kind) {
    case 'backoff':
      state.backoffs = withBackoff(state.backoffs, outcome.key, outcome.backoff)
      break
    case 'attempt-unused':
      memory.freeSandboxAttempt(outcome.attempt)
      break
    case 'backoff-unused':
      memory.refund(outcome.container)
      break
    case 'images-fetched':
      for (const image of outcome.images) fresh.add(image)
      state.backoffs = withBackoff(state.backoffs, nextImageBackoff(outcome.container), undefined)
      break
    case 'fetch-superseded':
      state.aheadFetches.cancel(outcome.container)
      break
    case 'images-used':
      for (const image of outcome.images) fresh.delete(image)
      break
    case 'resized':
      for (const { container, to } of outcome.resizes)
        memory.changeContainer(container.name, { resized: { containerId: container.id, resources: to } })
      if (outcome.podResources !== undefined) memory.change({ podResources: outcome.podResources })
      break
  }
}

type StopAction = Extract<PodAction, { kind: 'stop-container' }>

/** What is done at once: one action, or the stops that follow one another in the plan. */
type Step =
  | Exclude<PodAction, StopAction>
  | { readonly kind: 'stop-containers'; readonly stops: readonly StopAction[] }

/**
 * Executes a plan in order, and yields each outcome as it comes, to be applied before the next action. The rest of the
 * plan is left out after a sandbox could not be created. Throws what a call threw; the pod's worker reads back the result.
 */
async function* executeActions(
  ctx: PodContext,
  actions: readonly PodAction[],
): AsyncGenerator<ActionOutcome, void> {
  const ahead = new AheadWork(ctx, actions)
  try {
    await ctx.journal.recorded
    yield* executeSteps(ctx, actions, ahead)
  } finally {
    await ahead.settled()
  }
}

async function* executeSteps(
  ctx: PodContext,
  actions: readonly PodAction[],
  ahead: AheadWork,
): AsyncGenerator<ActionOutcome, void> {
  let sandbox: SandboxInUse | undefined
  for (const step of toSteps(actions)) {
    ctx.signals.manifest.throwIfAborted()
    ctx.pass.checkSeen()
    switch (step.kind) {
      case 'stop-pod':
        if (step.reason === 'SandboxChanged') {
          const message = 'Pod sandbox changed, it will be killed and re-created.'
          recordEvent(ctx, { type: 'Normal', reason: step.reason, message })
        }
        if (step.reason === 'CgroupRemoved') {
          const message =
            "The pod's cgroup was removed, so that its limits no longer hold: it will be killed and re-created."
          recordEvent(ctx, { type: 'Warning', reason: step.reason, message })
        }
        await ctx.journal.noteRestarts()
        await stopPod(ctx)
        break
      case 'create-sandbox': {
        const { attempt } = step
        const needs = ahead.needsOfSandbox(attempt)
        const created = await createSandbox(ctx, { attempt, needs, onSending: () => ahead.beginFiles() })
        if (created.kind === 'failed') {
          yield* created.outcomes
          return ctx.signals.manifest.throwIfAborted()
        }
        sandbox = created.sandbox
        break
      }
      case 'stop-containers':
        await ctx.journal.noteRestarts()
        await settleAll(step.stops.map((stop) => stopForSuccessor(ctx, stop)))
        break
      case 'start-container':
        sandbox ??= await useObservedSandbox(ctx, ahead.sandboxConfig)
        if (sandbox === undefined) return
        if (step.awaitedImage === undefined) yield { kind: 'fetch-superseded', container: step.spec.name }
        yield* await startContainer(ctx, step, { sandbox, ahead })
        break
      case 'finish-post-start':
        sandbox ??= await useObservedSandbox(ctx)
        if (sandbox === undefined) return
        await finishPostStart(ctx, step, sandbox)
        break
      case 'fetch-image':
        yield { kind: 'fetch-wanted', spec: step.spec }
        break
      case 'resize-containers':
        yield* await resizeContainers(ctx, step)
        break
      case 'remove-containers':
        await removeContainers(ctx, step.ids)
        break
      case 'remove-sandboxes':
        await removeSandboxes(ctx, step.ids)
        break
    }
  }
}

function* toSteps(actions: readonly PodAction[]): Generator<Step> {
  let stops: StopAction[] = []
  for (const action of actions) {
    if (action.kind === 'stop-container') {
      stops.push(action)
      continue
    }
    if (stops.length > 0) yield { kind: 'stop-containers', stops }
    stops = []
    yield action
  }
  if (stops.length > 0) yield { kind: 'stop-containers', stops }
}

/** Its successor is on record before it is stopped for another spec. */
async function stopForSuccessor(ctx: PodContext, stop: StopAction): Promise<void> {
  if (stop.cause === 'changed') await ctx.journal.claimRestart(stop.container.id)
  await stopContainer(ctx, stop)
}

/** How long a resize that failed isn't tried again, unless the manifest changes. */
const retryMs = 10_000

/**
 * Gives running containers, and the pod itself, other resources: the pod's cgroup first where it grows, then the containers,
 * then the pod's cgroup where it shrinks. A memory limit below what is in use is refused before anything
 * is touched (`pkg/kubelet/kuberuntime/kuberuntime_manager.go` doPodResizeAction and
 * validateMemoryResizeAction, Kubernetes 1.36). A failure becomes a backoff; what was done stays done.
 */
async function resizeContainers(
  ctx: PodContext,
  { resizes, podLevel }: Extract<PodAction, { kind: 'resize-containers' }>,
): Promise<readonly ActionOutcome[]> {
  const { host, ref } = ctx
  const isLast = resizes.length === 0 && !podLevel
  const done: ContainerResize[] = []
  const resized = (podResources?: ResourceLists): ActionOutcome => ({
    kind: 'resized',
    resizes: done,
    podResources,
  })
  try {
    if (podLevel) await checkPodUsage(ctx)
    for (const resize of resizes) await checkUsage(ctx, resize)
    await host.cgroups.ensure(ref.uid, ctx.pod, appliedPod(ctx))
    for (const resize of resizes) {
      await updateContainer(ctx, resize)
      done.push(resize)
    }
    // Containers that were restarted for it have what the pod asks for, though they weren't seen yet.
    await host.cgroups.ensure(ref.uid, isLast ? ctx.pod : withPodLevel(appliedPod(ctx, done), ctx.pod))
  } catch (error) {
    const message = errorMessage(error)
    recordEvent(ctx, { type: 'Warning', reason: 'ResizeError', message: `Pod resize error: ${message}` })
    const backoff = { untilMs: ctx.clock.wallMs() + retryMs, waiting: { reason: 'Error', message } }
    return [resized(), { kind: 'backoff', key: resizeBackoff, backoff }]
  }
  if (isLast) return []
  const what = [...(podLevel ? ['the pod itself'] : []), ...resizes.map(({ spec }) => spec.name)]
  const message = `Pod resize completed: ${what.join(', ')}`
  recordEvent(ctx, { type: 'Normal', reason: 'ResizeCompleted', message })
  return [resized(podLevel ? podLevelResources(ctx.pod.spec) : undefined)]
}

/** All of a pod's containers use less together than the limit that the pod is to have. */
async function checkPodUsage(ctx: PodContext): Promise<void> {
  const [from, to] = [appliedPod(ctx), ctx.pod].map(({ spec }) => podLevelResources(spec))
  if (from === undefined || to === undefined || !lowersMemoryLimit({ from, to })) return
  const limitBytes = quantityValue(to.limits['memory'] ?? '0')
  const running = ctx.observed.containers.filter(({ state }) => state === 'running')
  const used = await Promise.all(running.map(({ id }) => memoryUsage(ctx, id)))
  const usedBytes = used.reduce((sum: number, bytes) => sum + (bytes ?? 0), 0)
  if (usedBytes < limitBytes) return
  throw new PoddError(
    'RESIZE_BELOW_USAGE',
    `attempting to set pod memory limit (${limitBytes}) below current usage (${usedBytes})`,
  )
}

async function memoryUsage(ctx: PodContext, containerId: ContainerId): Promise<number | undefined> {
  const { stats } = await ctx.host.calls.containerStats({ containerId })
  return stats?.memory?.usageBytes?.value ?? stats?.memory?.workingSetBytes?.value
}

async function checkUsage(ctx: PodContext, resize: ContainerResize): Promise<void> {
  if (!lowersMemoryLimit(resize)) return
  const limitBytes = quantityValue(resize.to.limits['memory'] ?? '0')
  const usedBytes = await memoryUsage(ctx, resize.container.id)
  if (usedBytes === undefined || usedBytes < limitBytes) return
  throw new PoddError(
    'RESIZE_BELOW_USAGE',
    `attempting to set container "${resize.spec.name}" memory limit (${limitBytes}) below current usage (${usedBytes})`,
  )
}

async function updateContainer(ctx: PodContext, { container, spec }: ContainerResize): Promise<void> {
  const wanted = containerResources(ctx.pod.spec, spec, ctx.host.resources)
  // Only what a resize is about: the rest stays as the container was made with.
  const linux: cri.LinuxContainerResourcesInput = {
    cpuShares: wanted.cpuShares,
    cpuPeriod: wanted.cpuPeriod,
    cpuQuota: wanted.cpuQuota,
    memoryLimitInBytes: wanted.memoryLimitInBytes,
    memorySwapLimitInBytes: wanted.memorySwapLimitInBytes,
  }
  await ctx.host.calls.updateContainerResources({ containerId: container.id, linux })
}
