import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodPhase } from '../../pod/state/status.ts'
import { newestEnd, viewContainer } from '../plan/container-view.ts'
import type { ContainerView } from '../plan/container-view.ts'
import { isStarted } from './derive-container-status.ts'
import type { StatusFacts } from '../plan/status-facts.ts'
import { hasInitialized } from '../plan/has-initialized.ts'
import { runsAgain as isToRunAgain } from '../plan/has-finished.ts'
import { isRestartableInit } from '../plan/restart-policy.ts'
import { currentView, isReset } from '../plan/restart-all.ts'

/** `restarting`: it ended and is to run again. */
type Stage = 'waiting' | 'running' | 'restarting' | 'ended' | 'unknown'

/** The pod's phase (`pkg/kubelet/kubelet_pods.go` getPhase, Kubernetes 1.36). */
export function derivePhase(facts: StatusFacts): PodPhase {
  const { containers, initContainers } = facts.pod.spec
  if (initContainers.some((init) => hasFailedForGood(facts, init))) return 'Failed'
  const stages = containers.map((container) => stageOf(facts, container))
  // Once all main containers have ended for good, nothing waits for init containers any more.
  const isOver = stages.every((stage) => stage === 'ended')
  if (!isOver && initContainers.some((init) => isPendingInit(facts, init))) return 'Pending'
  if (stages.includes('waiting') || stages.includes('unknown')) return 'Pending'
  // A pod whose main containers have ended runs until its sidecars have been stopped.
  if (!isOver || initContainers.some((init) => isRunning(viewOf(facts, init)))) return 'Running'
  const succeeded = containers.every((container) => {
    const view = viewOf(facts, container)
    return view.kind === 'ended' && view.end.exitCode === 0
  })
  return succeeded ? 'Succeeded' : 'Failed'
}

function viewOf(facts: StatusFacts, { name }: ContainerSpec): ContainerView {
  const { observed, record } = facts
  const view = viewContainer({ name, observed, history: record.containers[name] })
  return currentView(new Set(record.restartAll), view)
}

function isRunning(view: ContainerView): boolean {
  return view.kind === 'live' && view.container.state === 'running'
}

function hasFailedForGood(facts: StatusFacts, init: ContainerSpec): boolean {
  const view = viewOf(facts, init)
  return view.kind === 'ended' && view.end.exitCode !== 0 && !runsAgain(facts, init, view)
}

function runsAgain(
  { pod, record }: StatusFacts,
  container: ContainerSpec,
  view: Extract<ContainerView, { kind: 'ended' }>,
): boolean {
  const restartRequested = new Set(record.restartRequested)
  const restartsDue = new Set(record.restartsDue)
  return isToRunAgain({ pod, restartRequested, restartsDue }, container, view)
}

/** Whether the main containers wait for this init container. */
function isPendingInit(facts: StatusFacts, init: ContainerSpec): boolean {
  const view = viewOf(facts, init)
  if (isRestartableInit(init)) return !isStarted(facts, init, view) && !hasInitialized(facts)
  if (view.kind === 'ended' && view.end.exitCode === 0) return false
  return !hasInitialized(facts)
}

function stageOf(facts: StatusFacts, container: ContainerSpec): Stage {
  const view = viewOf(facts, container)
  if (view.kind === 'none') return wasReset(facts, container) ? 'restarting' : 'waiting'
  if (view.kind === 'ended') return runsAgain(facts, container, view) ? 'restarting' : 'ended'
  const { state } = view.container
  if (state !== 'created') return state === 'running' ? 'running' : 'unknown'
  // A container that is being recreated has run: the pod doesn't return to Pending.
  const { name } = container
  const ranBefore = newestEnd(name, facts.observed, facts.record.containers[name]) !== undefined
  return ranBefore ? 'restarting' : 'waiting'
}

/** It ran before all containers were restarted, and is to run again. */
function wasReset({ observed, record }: StatusFacts, { name }: ContainerSpec): boolean {
  const view = viewContainer({ name, observed, history: record.containers[name] })
  return isReset(new Set(record.restartAll), view)
}
