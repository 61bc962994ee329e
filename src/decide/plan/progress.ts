/* How far a pod is: initialized, ended for good, or known from its record alone. */
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { isRestartableInit, shouldRestart } from './backoff.ts'
import { newestEnd, viewContainer } from './container-view.ts'
import type { ContainerView } from './container-view.ts'
import type { Waiting } from './pod-action.ts'
import type { PodFacts, StatusFacts } from './pod-facts.ts'
import { currentView, isBeingReset, isStoppedToRestart } from './restart-request.ts'

type Facts = Pick<
  PodFacts,
  'pod' | 'observed' | 'history' | 'restartRequested' | 'restartsDue' | 'restartAll'
>

/** Whether every main container has ended for good, or an init container's failure has ended the pod. */
export function hasFinished(facts: Facts): boolean {
  const { containers, initContainers } = facts.pod.spec
  if (containers.every((container) => hasEndedForGood(facts, container))) return true
  return initContainers.some((container) => {
    const view = viewCurrent(facts, container)
    return view.kind === 'ended' && view.end.exitCode !== 0 && hasEndedForGood(facts, container)
  })
}

/** Whether a container has exited and won't run again, by its restart policy and without a restart request. */
function hasEndedForGood(facts: Facts, container: ContainerSpec): boolean {
  const view = viewCurrent(facts, container)
  return view.kind === 'ended' && !runsAgain(facts, container, view)
}

/** Whether a container that has ended is to run again: by its policy, on request, or because podd stopped it for that. */
export function runsAgain(
  facts: Pick<Facts, 'pod' | 'restartRequested' | 'restartsDue'>,
  container: ContainerSpec,
  view: Extract<ContainerView, { kind: 'ended' }>,
): boolean {
  return isStoppedToRestart(facts, view) || shouldRestart(facts.pod.spec, container, view.end.exitCode)
}

/** The newest container of this name, those from before a restart of all left out. */
export function viewCurrent(
  { observed, history, restartAll }: Pick<Facts, 'observed' | 'history' | 'restartAll'>,
  { name }: ContainerSpec,
): ContainerView {
  return currentView(restartAll, viewContainer({ name, observed, history: history[name] }))
}

/**
 * Whether a main container was made in the newest sandbox: only then have all init containers completed there, as they
 * run again in every sandbox (`pkg/kubelet/kubelet_pods.go` podHasInitialized, Kubernetes 1.36).
 */
export function hasInitialized({
  pod,
  observed,
  record,
}: Pick<StatusFacts, 'pod' | 'observed' | 'record'>): boolean {
  const [sandbox] = observed.sandboxes
  // A restart of all containers undoes the initialization once all have stopped.
  const before = isBeingReset(observed, record.restartAll) ? [] : (record.restartAll ?? [])
  return pod.spec.containers.some(({ name }) =>
    sandbox === undefined
      ? newestEnd(name, observed, record.containers[name]) !== undefined
      : observed.containers.some(
          (made) => made.name === name && made.sandboxId === sandbox.id && !before.includes(made.id),
        ),
  )
}

/**
 * The waiting states of a pod known only from its record, because the runtime has not been listed. By container: all
 * wait for the runtime except those that have completed, or can't run any more.
 */
export function awaitRuntime(
  facts: Pick<StatusFacts, 'pod' | 'record' | 'observed'>,
  why: Waiting,
): ReadonlyMap<string, Waiting> {
  const { pod, record, observed } = facts
  const restartRequested = new Set(record.restartRequested)
  const restartsDue = new Set(record.restartsDue)
  const restartAll = new Set(record.restartAll)
  const restartFacts = {
    pod,
    observed,
    history: record.containers,
    restartRequested,
    restartsDue,
    restartAll,
  }
  if (hasFinished(restartFacts)) return new Map()
  const { initContainers, containers } = pod.spec
  const inits = initContainers.filter((init) => {
    if (isRestartableInit(init)) return true
    return !hasInitialized(facts) && record.containers[init.name]?.ended?.exitCode !== 0
  })
  const mains = containers.filter((container) => !hasEndedForGood(restartFacts, container))
  return new Map([...inits, ...mains].map(({ name }) => [name, why]))
}
