import type { ObservedSandbox } from '../../pod/state/observed.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { isOutdated, viewContainer } from './container-view.ts'
import type { ContainerView } from './container-view.ts'
import type { PodAction, StopCause } from './pod-action.ts'
import type { PodFacts } from './pod-facts.ts'
import { isRestartableInit, restartsAfterStop, shouldRestart } from './restart-policy.ts'
import { currentView } from './restart-all.ts'
import { canReplace } from './start-plan.ts'
import { isRestartRequested, isStoppedToRestart } from './restart-request.ts'

type StopAction = Extract<PodAction, { kind: 'stop-container' }>

export interface InitPlan {
  /** The main containers may run. */
  readonly initialized: boolean
  /** An init container failed and will not run again: the pod is over. */
  readonly failed: boolean
  readonly toStart: readonly ContainerSpec[]
  readonly toStop: readonly StopAction[]
  /** Those that run and are to be recreated as soon as what the new one needs is available. */
  readonly toFetch: readonly ContainerSpec[]
}

/** The effect of an init container on later ones. */
type Step = 'passed' | 'holds' | 'failed'

/**
 * Which init containers are to run now in this sandbox, in their order; including sidecars that exited
 * (`pkg/kubelet/kuberuntime/kuberuntime_container.go` computeInitContainerActions, Kubernetes 1.36).
 */
export function computeInitSequence(facts: PodFacts, sandbox: ObservedSandbox): InitPlan {
  const toStart: ContainerSpec[] = []
  const toStop: StopAction[] = []
  const toFetch: ContainerSpec[] = []
  const done = (initialized: boolean, failed = false): InitPlan =>
    failed
      ? { initialized, failed, toStart: [], toStop: [], toFetch: [] }
      : { initialized, failed, toStart, toStop, toFetch }
  const view = ({ name }: ContainerSpec): ContainerView =>
    currentView(
      facts.restartAll,
      viewContainer({ name, observed: facts.observed, history: undefined, sandboxId: sandbox.id }),
    )
  const { containers, initContainers } = facts.pod.spec
  // A main container is created in a sandbox only after all init containers have completed.
  const began = containers.some((spec) => view(spec).kind !== 'none')
  const newestMade = initContainers.findLastIndex((spec) => view(spec).kind !== 'none')

  for (const [index, spec] of initContainers.entries()) {
    // Remains of completed init containers may have been removed; a later one proves that they passed.
    const passedBefore = began || index < newestMade
    if (passedBefore && !isRestartableInit(spec)) continue
    const judge = isRestartableInit(spec) ? judgeSidecar : judgeOnce
    const step = judge(facts, spec, { view: view(spec), toStart, toStop, toFetch })
    if (step === 'failed') return done(false, true)
    // A sidecar that exits after its turn is restarted beside later containers, and no longer delays them.
    if (!passedBefore && step === 'holds') return done(false)
  }
  return done(true)
}

interface Judgement {
  readonly view: ContainerView
  readonly toStart: ContainerSpec[]
  readonly toStop: StopAction[]
  readonly toFetch: ContainerSpec[]
}

/** An init container that runs once. */
function judgeOnce(facts: PodFacts, spec: ContainerSpec, judgement: Judgement): Step {
  const { view, toStart, toStop, toFetch } = judgement
  if (view.kind === 'ended') {
    // Always means OnFailure for an init container: only a failure runs it again, or that it was stopped for it.
    const wasStopped = isStoppedToRestart(facts, view)
    if (view.end.exitCode === 0 && !wasStopped) return 'passed'
    if (!wasStopped && !shouldRestart(facts.pod.spec, spec, view.end.exitCode)) return 'failed'
  }
  if (view.kind === 'live' && view.container.state === 'running') {
    const { container } = view
    if (!isOutdated(container, facts.containerFacts[spec.name]?.specHash)) return 'holds'
    if (!canReplace(facts, spec)) {
      toFetch.push(spec)
      return 'holds'
    }
    const message = `Init container ${spec.name} definition changed`
    toStop.push({ kind: 'stop-container', container, cause: 'changed', message })
  }
  if (view.kind === 'live' && view.container.state === 'unknown') {
    if (!restartsAfterStop(facts.pod.spec, spec)) return 'failed'
    toStop.push(stopUnknown(view.container))
  }
  toStart.push(spec)
  return 'holds'
}

/** A sidecar: counts as passed once it has started, that is, once its startup probe (if any) has succeeded. */
function judgeSidecar(facts: PodFacts, spec: ContainerSpec, judgement: Judgement): Step {
  const { view, toStart, toStop, toFetch } = judgement
  if (view.kind !== 'live' || view.container.state === 'created') {
    toStart.push(spec)
    return 'holds'
  }
  const { container } = view
  const restart = (cause: StopCause, message: string): void => {
    toStop.push({ kind: 'stop-container', container, cause, message })
    toStart.push(spec)
  }
  const outdated = isOutdated(container, facts.containerFacts[spec.name]?.specHash)
  const requested = isRestartRequested(facts, view)
  /** Whether it is recreated because of its manifest or a restart request. */
  const renew = (): boolean => {
    if ((!outdated && !requested) || !canReplace(facts, spec)) return false
    if (outdated) restart('changed', `Init container ${spec.name} definition changed`)
    else restart('requested', `Init container ${spec.name} is restarted on request`)
    return true
  }
  if (container.state === 'unknown') {
    toStop.push(stopUnknown(container))
    toStart.push(spec)
    return 'holds'
  }
  if (spec.startupProbe !== undefined) {
    const startup = facts.probes[container.id]?.startup
    if (startup !== 'success') {
      if (renew()) return 'holds'
      if (startup === 'failure') restart('startup', `Init container ${spec.name} failed startup probe`)
      else if (outdated || requested) toFetch.push(spec)
      return 'holds'
    }
  }
  // From here on it has started: its later failures don't delay the following ones.
  if (renew()) return 'passed'
  if (spec.livenessProbe !== undefined && facts.probes[container.id]?.liveness === 'failure') {
    restart('liveness', `Init container ${spec.name} failed liveness probe`)
  } else if (outdated || requested) {
    toFetch.push(spec)
  }
  return 'passed'
}

function stopUnknown(container: StopAction['container']): StopAction {
  const message = `Init container is in "unknown" state, try killing it before restart`
  return { kind: 'stop-container', container, cause: 'unknown', message }
}
