import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { isSidecar } from '../../pod/schema/pod-resources.ts'
import type { ObservedContainer, ObservedPod, ObservedSandbox } from '../../pod/state/observed.ts'
import type { ContainerId } from '../../pod/values/ids.ts'
import { defaultContainerPolicy, selectDeadContainers } from '../node/plan-container-garbage.ts'
import {
  activeRetry,
  containerRetry,
  nextImageRetry,
  resizeRetry,
  restartsAfterStop,
  sandboxRetry,
} from './backoff.ts'
import type { Retry } from './backoff.ts'
import { isAlive, isOutdated, isUnrun } from './container-view.ts'
import { blockedWaiting } from './pod-action.ts'
import type { PodAction, PodPlan, StopCause, Waiting } from './pod-action.ts'
import type { PodFacts } from './pod-facts.ts'
import { hasFinished, runsAgain, viewCurrent } from './progress.ts'
import { changesPodLevel, needsRestart, selectResizes } from './resize.ts'
import type { ResizeState } from './resize.ts'
import { computeRestartAll, isRestartRequested } from './restart-request.ts'
import { canReplace, computeInitSequence, planStart } from './start-order.ts'

/**
 * Computes the next actions of a pod that shall run. Pure. control/pod/execute.ts carries them out in
 * order; computed again afterwards, the plan is empty once nothing is left to do
 * (`pkg/kubelet/kuberuntime/kuberuntime_manager.go` computePodActions, Kubernetes 1.36). Unlike in the kubelet, a pod
 * that has finished stays finished when the runtime has lost its containers: the record has how they ended.
 */
export function computePodActions(given: PodFacts): PodPlan {
  if (hasFinished(given)) {
    const plan = new PlanBuilder(given)
    plan.stopWhatRuns('Completed')
    return plan.result()
  }
  const restart = computeRestartAll(given)
  const facts = restart === undefined ? given : { ...given, restartAll: restart.ids }
  const plan = new PlanBuilder(facts)
  plan.restartAll = restart?.ids
  if (restart !== undefined && restart.toStop.length > 0) {
    plan.actions.push(...restart.toStop)
    return plan.result()
  }
  const change = computeSandboxChange(facts.observed, facts.pod.spec.hostNetwork, facts.isCgroupRemoved)
  if (change.kind === 'create') {
    planNewSandbox(facts, plan, change.attempt)
    return plan.result()
  }
  planPostStarts(facts, plan)
  // Starts wait for a postStart hook, as in the pass that begins one.
  if (plan.actions.length > 0) return plan.result()
  const inits = computeInitSequence(facts, change.sandbox)
  if (inits === undefined) {
    plan.stopWhatRuns('Completed')
    return plan.result()
  }
  for (const spec of facts.pod.spec.ephemeralContainers) {
    if (viewCurrent(facts, spec).kind === 'none') plan.start(spec, 'ephemeral')
  }
  plan.actions.push(...inits.toStop)
  for (const spec of inits.toFetch) plan.prepareReplacement(spec)
  for (const spec of inits.toStart) plan.start(spec, 'init')
  if (!inits.initialized) {
    planResizes(facts, plan)
    return plan.result()
  }
  const { containers } = facts.pod.spec
  for (const spec of containers) planMainContainer(facts, plan, spec)
  if (plan.leavesNone(containers)) return onlyStops(facts, plan, containers)
  planResizes(facts, plan)
  return plan.result()
}

export type SandboxChange =
  | { readonly kind: 'keep'; readonly sandbox: ObservedSandbox }
  | { readonly kind: 'create'; readonly attempt: number }

/**
 * Whether a pod needs a sandbox: there is none, several are ready, the newest isn't, the network namespace's mode
 * differs, or it has no address (`pkg/kubelet/kuberuntime/util/util.go` PodSandboxChanged, Kubernetes 1.36). So does a
 * pod whose cgroup was removed: what runs of it is killed and recreated (`pkg/kubelet/kubelet.go` SyncPod, 1.36).
 */
export function computeSandboxChange(
  observed: ObservedPod,
  hostNetwork: boolean,
  isCgroupRemoved = false,
): SandboxChange {
  const newest = observed.sandboxes[0]
  if (newest === undefined) return { kind: 'create', attempt: 0 }
  const severalReady = observed.sandboxes.filter((sandbox) => sandbox.ready).length > 1
  const noAddress = !hostNetwork && newest.ips.length === 0
  if (severalReady || !newest.ready || newest.hostNetwork !== hostNetwork || noAddress || isCgroupRemoved) {
    return { kind: 'create', attempt: newest.attempt + 1 }
  }
  return { kind: 'keep', sandbox: newest }
}

/** A pod without a usable sandbox: the remains of the old one are removed, then it starts from the beginning. */
function planNewSandbox(facts: PodFacts, plan: PlanBuilder, attempt: number): void {
  const toStart = containersOfNewSandbox(facts, attempt)
  if (toStart.length === 0) {
    plan.stopWhatRuns('Completed')
    // Nothing of it runs or will run, and it hasn't completed: the kubelet leaves such a pod Pending forever.
    plan.isLost = plan.actions.length === 0
    return undefined
  }
  if (facts.blocked !== undefined)
    return plan.waitForSandbox({ waiting: blockedWaiting(facts.blocked.message) }, toStart)
  const retry = activeRetry(facts, sandboxRetry) ?? retryAfterLastSandbox(facts)
  if (retry !== undefined) return plan.waitForSandbox(retry, toStart)
  const { initContainers } = facts.pod.spec
  const goesOn = new Set([...initContainers, ...toStart].map(({ name }) => name))
  plan.noteRestarts(facts.observed.containers.filter(({ name }) => goesOn.has(name)))
  // A sandbox that died keeps its address and ports until it is stopped.
  const reason = facts.isCgroupRemoved === true ? 'CgroupRemoved' : 'SandboxChanged'
  if (attempt > 0) plan.actions.push({ kind: 'stop-pod', reason })
  plan.actions.push({ kind: 'create-sandbox', attempt })
  const [firstInit] = initContainers
  if (firstInit === undefined) for (const container of toStart) plan.start(container, 'main')
  else plan.start(firstInit, 'init')
  return undefined
}

/** The main containers for which the pod gets a new sandbox; without any it gets none. */
function containersOfNewSandbox(facts: PodFacts, attempt: number): readonly ContainerSpec[] {
  const { spec } = facts.pod
  const everMade =
    facts.observed.containers.length > 0 ||
    Object.values(facts.history).some((past) => past.ended !== undefined)
  const runsOnce = spec.containers.every(
    (container) => !restartsAfterStop(spec, container) && container.restartPolicyRules.length === 0,
  )
  const asked = (facts.restartRequested?.size ?? 0) > 0 || (facts.restartAll?.size ?? 0) > 0
  if (runsOnce && !asked && attempt !== 0 && everMade) return []
  return spec.containers.filter((container) => {
    const view = viewCurrent(facts, container)
    if (view.kind === 'none') return true
    if (view.kind === 'ended') return runsAgain(facts, container, view)
    // It dies with its sandbox.
    const { state } = view.container
    return state === 'created' || restartsAfterStop(spec, container) || isRestartRequested(facts, view)
  })
}

/** The kubelet syncs a pod once a second; a sandbox that dies at once isn't recreated more often here either. */
const sandboxRetryMs = 1000

function retryAfterLastSandbox({ observed, nowMs }: PodFacts): Retry | undefined {
  const newest = observed.sandboxes[0]
  if (newest === undefined) return undefined
  const untilMs = newest.createdAtMs + sandboxRetryMs
  if (nowMs < newest.createdAtMs || nowMs >= untilMs) return undefined
  return {
    untilMs,
    waiting: { reason: 'ContainerCreating', message: 'the last sandbox failed less than a second ago' },
  }
}

/** postStart hooks that an earlier podd began, of containers that run. */
function planPostStarts({ pod, observed, postStartsDue = [] }: PodFacts, plan: PlanBuilder): void {
  const { initContainers, containers } = pod.spec
  for (const container of observed.containers) {
    if (container.state !== 'running' || !postStartsDue.includes(container.id)) continue
    const spec = [...initContainers, ...containers].find(({ name }) => name === container.name)
    if (spec !== undefined) plan.actions.push({ kind: 'finish-post-start', container, spec })
  }
}

function planMainContainer(facts: PodFacts, plan: PlanBuilder, spec: ContainerSpec): void {
  const view = viewCurrent(facts, spec)
  if (view.kind === 'none') return plan.start(spec, 'main')
  if (view.kind === 'ended') {
    if (runsAgain(facts, spec, view)) plan.start(spec, 'main')
    return undefined
  }
  const { container } = view
  const stop = (cause: StopCause, message: string): void => {
    plan.actions.push({ kind: 'stop-container', container, cause, message })
  }
  if (container.state === 'created') return plan.start(spec, 'main')
  if (container.state === 'unknown') {
    stop('unknown', `Container is in "unknown" state, try killing it before restart`)
    return plan.start(spec, 'main')
  }
  const outdated = isOutdated(container, facts.containerFacts[spec.name]?.specHash)
  const requested = isRestartRequested(facts, view)
  if ((outdated || requested) && canReplace(facts, spec)) {
    if (outdated) stop('changed', `Container ${spec.name} definition changed, will be restarted`)
    else stop('requested', `Container ${spec.name} is restarted on request`)
    return plan.start(spec, 'main')
  }
  const failed = (['liveness', 'startup'] as const).find(
    (kind) => spec[`${kind}Probe`] !== undefined && facts.probes[container.id]?.[kind] === 'failure',
  )
  if (failed === undefined) return outdated || requested ? void plan.prepareReplacement(spec) : undefined
  const restarts = restartsAfterStop(facts.pod.spec, spec)
  stop(failed, `Container ${spec.name} failed ${failed} probe${restarts ? ', will be restarted' : ''}`)
  if (restarts) plan.start(spec, 'main')
  return undefined
}

/** No main container will run any more: sidecars don't start again for nothing, and are stopped once these have ended. */
function onlyStops(facts: PodFacts, { actions }: PlanBuilder, containers: readonly ContainerSpec[]): PodPlan {
  const names = new Set(containers.map(({ name }) => name))
  const plan = new PlanBuilder(facts)
  plan.actions.push(
    ...actions.filter((action) => action.kind === 'stop-container' && names.has(action.container.name)),
  )
  return plan.result()
}

/** Other resources for running containers, in place or by a restart, by their `resizePolicy`. */
function planResizes(facts: PodFacts, plan: PlanBuilder): void {
  const isStopped = (name: string): boolean =>
    plan.actions.some((action) => action.kind === 'stop-container' && action.container.name === name)
  const { resizeRefusal } = facts
  if (resizeRefusal !== undefined) plan.resize = { kind: 'pending', ...resizeRefusal }
  const resizes = selectResizes(facts).filter(({ spec }) => !isStopped(spec.name))
  const podLevel = changesPodLevel(facts)
  if (resizes.length === 0 && !podLevel) return
  const retry = activeRetry(facts, resizeRetry)
  plan.resize ??= { kind: 'in-progress', error: retry?.waiting.message }
  if (retry !== undefined) return plan.wakeAt(retry.untilMs)
  const [restarts, inPlace] = [true, false].map((wanted) =>
    resizes.filter((resize) => needsRestart(resize) === wanted),
  )
  if (inPlace !== undefined && (inPlace.length > 0 || podLevel))
    plan.actions.unshift({ kind: 'resize-containers', resizes: inPlace, podLevel })
  const ready = restarts?.filter(({ spec }) => canReplace(facts, spec)) ?? []
  for (const { spec } of restarts ?? []) {
    if (canReplace(facts, spec)) continue
    const error = plan.prepareReplacement(spec)
    if (plan.resize?.kind === 'in-progress') plan.resize = { kind: 'in-progress', error }
  }
  if (ready.length === 0) return undefined
  for (const { container, spec } of ready) {
    const message = `Container ${spec.name} resize requires restart`
    plan.actions.push({ kind: 'stop-container', container, cause: 'changed', message })
    plan.start(spec, isSidecar(facts.pod.spec, spec) ? 'init' : 'main')
  }
  plan.actions.push({ kind: 'resize-containers', resizes: [], podLevel: false })
  return undefined
}

/** A plan under construction. */
class PlanBuilder {
  readonly actions: PodAction[] = []
  resize: ResizeState | undefined
  restartAll: PodPlan['restartAll']
  isLost = false
  readonly #facts: PodFacts
  readonly #waiting = new Map<string, Waiting>()
  readonly #blockedRestarts = new Map<string, string>()
  /** Names of containers that are to run. */
  readonly #wanted = new Set<string>()
  readonly #restartsDue: ContainerId[] = []
  #wakeAtMs: number | undefined

  constructor(facts: PodFacts) {
    this.#facts = facts
  }

  start(spec: ContainerSpec, role: 'init' | 'main' | 'ephemeral'): void {
    this.#wanted.add(spec.name)
    const planned = planStart(this.#facts, spec, role)
    const { awaitedImage } = planned.kind === 'start' ? planned.action : planned
    if (awaitedImage !== undefined) this.#fetch(spec)
    if (planned.kind === 'start') {
      // Created and not started, perhaps about to be: the runtime refuses to remove a container that is starting, so
      // there are never two of a name. One that may have run stays until its successor has the count.
      const ids = this.#facts.observed.containers
        .filter((container) => container.name === spec.name && isUnrun(container))
        .map(({ id }) => id)
      if (ids.length > 0) this.actions.push({ kind: 'remove-containers', ids })
      this.actions.push(planned.action)
      return
    }
    this.#waiting.set(spec.name, planned.waiting)
    if (planned.untilMs !== undefined) this.wakeAt(planned.untilMs)
  }

  /**
   * Those that are alive are stopped to be started again, which their exit codes no longer decide: a process that handles
   * SIGTERM exits with 0. (The kubelet starts such a container in the same sync; where that fails, or waits for a
   * backoff, it goes by the exit code.)
   */
  noteRestarts(containers: readonly ObservedContainer[]): void {
    this.#restartsDue.push(...containers.filter((container) => isAlive(container)).map(({ id }) => id))
  }

  /** Whether none of these goes on running or is to run. */
  leavesNone(specs: readonly ContainerSpec[]): boolean {
    const stopped = this.actions.flatMap((action) =>
      action.kind === 'stop-container' ? [action.container.id] : [],
    )
    const goesOn = this.#facts.observed.containers.filter((c) => isAlive(c) && !stopped.includes(c.id))
    return specs.every(({ name }) => !this.#wanted.has(name) && goesOn.every((c) => c.name !== name))
  }

  waitForSandbox(
    { waiting, untilMs }: Pick<Retry, 'waiting'> & Partial<Pick<Retry, 'untilMs'>>,
    containers: readonly ContainerSpec[],
  ): void {
    for (const { name } of containers) this.#waiting.set(name, waiting)
    if (untilMs !== undefined) this.wakeAt(untilMs)
  }

  /** For a running container that is to be recreated: returns what is missing for the new one, for which the old one stays. */
  prepareReplacement(spec: ContainerSpec): string | undefined {
    const missing = this.#facts.containerFacts[spec.name]?.missing
    if (missing === undefined) return this.#fetch(spec)
    this.#blockedRestarts.set(spec.name, missing)
    return missing
  }

  /** Has the new image of a running container fetched. Returns why it is unavailable for now. */
  #fetch(spec: ContainerSpec): string | undefined {
    const retry =
      activeRetry(this.#facts, nextImageRetry(spec.name)) ??
      activeRetry(this.#facts, containerRetry(spec.name))
    if (retry !== undefined) {
      this.wakeAt(retry.untilMs)
      return retry.waiting.message
    }
    const isPlanned = this.actions.some((action) => action.kind === 'fetch-image' && action.spec === spec)
    if (!isPlanned && this.#facts.containerFacts[spec.name]?.isFetching !== true)
      this.actions.push({ kind: 'fetch-image', spec })
    return undefined
  }

  /** A container started in this plan may need the one before it. */
  #selectCondemned(): readonly ContainerId[] {
    const { condemned, observed } = this.#facts
    if (condemned === undefined || this.actions.length > 0) return []
    return observed.containers
      .filter(({ id, state }) => condemned.includes(id) && (state === 'exited' || state === 'created'))
      .map(({ id }) => id)
  }

  wakeAt(wallMs: number): void {
    this.#wakeAtMs = Math.min(this.#wakeAtMs ?? Infinity, wallMs)
  }

  stopWhatRuns(reason: string): void {
    const { sandboxes, containers } = this.#facts.observed
    const running = containers.some(
      (container) => container.state !== 'exited' && container.state !== 'created',
    )
    if (running || sandboxes.some((sandbox) => sandbox.ready)) this.actions.push({ kind: 'stop-pod', reason })
  }

  result(): PodPlan {
    for (const action of this.actions) {
      if (action.kind !== 'stop-container' || !this.#wanted.has(action.container.name)) continue
      if (ownFaults.has(action.cause)) this.noteRestarts([action.container])
    }
    const { observed, containerPolicy = defaultContainerPolicy, nowMs } = this.#facts
    const dead = selectDeadContainers(observed, containerPolicy, nowMs)
    const ids = [...new Set([...dead.containers, ...this.#selectCondemned()])]
    if (ids.length > 0) this.actions.push({ kind: 'remove-containers', ids })
    if (dead.sandboxes.length > 0) this.actions.push({ kind: 'remove-sandboxes', ids: dead.sandboxes })
    // All stops come together, before any start, as in the kubelet's SyncPod.
    const isStop = ({ kind }: PodAction): boolean => kind === 'stop-container'
    const actions = [...this.actions.filter(isStop), ...this.actions.filter((action) => !isStop(action))]
    const { resize, restartAll, isLost } = this
    const blocked = this.#blockedRestarts
    const restartsDue = this.#restartsDue
    return {
      actions,
      wakeAtMs: this.#wakeAtMs,
      waiting: this.#waiting,
      restartAll,
      resize,
      ...(blocked.size === 0 ? {} : { blockedRestarts: blocked }),
      ...(restartsDue.length === 0 ? {} : { restartsDue }),
      ...(isLost ? { isLost } : {}),
    }
  }
}

/** It is the container's own fault that it is stopped; who stops it for something else records why. */
const ownFaults: ReadonlySet<StopCause> = new Set(['liveness', 'startup', 'unknown'])
