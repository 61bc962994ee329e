import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import { viewContainer } from './container-view.ts'
import type { ContainerView } from './container-view.ts'
import type { PodFacts } from './pod-facts.ts'
import { currentView } from './restart-all.ts'
import { shouldRestart } from './restart-policy.ts'
import { isStoppedToRestart } from './restart-request.ts'

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
export function hasEndedForGood(facts: Facts, container: ContainerSpec): boolean {
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
