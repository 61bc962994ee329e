import { isSidecar } from '../../pod/schema/pod-resources.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { isOutdated } from './container-view.ts'
import { hasFinished, runsAgain, viewCurrent } from './has-finished.ts'
import { computeInitSequence } from './init-sequence.ts'
import { blockedWaiting } from './pod-action.ts'
import type { PodPlan, StopCause } from './pod-action.ts'
import { activeHold, resizeHold, sandboxHold } from './hold.ts'
import type { Hold } from './hold.ts'
import { PlanBuilder } from './plan-builder.ts'
import type { PodFacts } from './pod-facts.ts'
import { restartsAfterStop } from './restart-policy.ts'
import { computeRestartAll } from './restart-all.ts'
import { isRestartRequested } from './restart-request.ts'
import { changesPodLevel, needsRestart, selectResizes } from './resize.ts'
import { computeSandboxChange } from './sandbox-change.ts'
import { canReplace } from './start-plan.ts'

/**
 * Computes the next actions of a pod that shall run. Pure. control/actions/execute-actions.ts carries them out in
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
  if (inits.failed) {
    plan.stopWhatRuns('Completed')
    return plan.result()
  }
  for (const spec of facts.pod.spec.ephemeralContainers) {
    if (viewCurrent(facts, spec).kind === 'none') plan.start(spec, 'ephemeral')
  }
  plan.actions.push(...inits.toStop)
  for (const spec of inits.toFetch) plan.prepareReplacement(spec)
  for (const spec of inits.toStart) plan.start(spec, 'init')
  if (!inits.initialized) return plan.result()
  const { containers } = facts.pod.spec
  for (const spec of containers) planMainContainer(facts, plan, spec)
  if (plan.leavesNone(containers)) return onlyStops(facts, plan, containers)
  planResizes(facts, plan)
  return plan.result()
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

/** Hooks that an earlier podd started and the runtime still holds. */
function planPostStarts({ pod, observed, postStartsDue = [] }: PodFacts, plan: PlanBuilder): void {
  const { initContainers, containers } = pod.spec
  for (const container of observed.containers) {
    if (container.state !== 'running' || !postStartsDue.includes(container.id)) continue
    const spec = [...initContainers, ...containers].find(({ name }) => name === container.name)
    if (spec !== undefined) plan.actions.push({ kind: 'finish-post-start', container, spec })
  }
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
  const hold = activeHold(facts, sandboxHold) ?? holdAfterLastSandbox(facts)
  if (hold !== undefined) return plan.waitForSandbox(hold, toStart)
  const { initContainers } = facts.pod.spec
  const goesOn = new Set([...initContainers, ...toStart].map(({ name }) => name))
  plan.noteRestarts(facts.observed.containers.filter(({ name }) => goesOn.has(name)))
  // A sandbox that died still holds its address and ports until it is stopped.
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

function holdAfterLastSandbox({ observed, nowMs }: PodFacts): Hold | undefined {
  const newest = observed.sandboxes[0]
  if (newest === undefined) return undefined
  const untilMs = newest.createdAtMs + sandboxRetryMs
  if (nowMs < newest.createdAtMs || nowMs >= untilMs) return undefined
  return {
    untilMs,
    waiting: { reason: 'ContainerCreating', message: 'the last sandbox failed less than a second ago' },
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

/** Other resources for running containers, in place or by a restart, by their `resizePolicy`. */
function planResizes(facts: PodFacts, plan: PlanBuilder): void {
  const isStopped = (name: string): boolean =>
    plan.actions.some((action) => action.kind === 'stop-container' && action.container.name === name)
  const { resizeRefusal } = facts
  if (resizeRefusal !== undefined) plan.resize = { kind: 'pending', ...resizeRefusal }
  const resizes = selectResizes(facts).filter(({ spec }) => !isStopped(spec.name))
  const podLevel = changesPodLevel(facts)
  if (resizes.length === 0 && !podLevel) return
  const hold = activeHold(facts, resizeHold)
  plan.resize ??= { kind: 'in-progress', error: hold?.waiting.message }
  if (hold !== undefined) return plan.wakeAt(hold.untilMs)
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
