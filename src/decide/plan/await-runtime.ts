import { hasEndedForGood, hasFinished } from './has-finished.ts'
import { hasInitialized } from './has-initialized.ts'
import type { Waiting } from './pod-action.ts'
import { isRestartableInit } from './restart-policy.ts'
import type { StatusFacts } from './status-facts.ts'

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
