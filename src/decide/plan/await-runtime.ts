import { hasEndedForGood, hasFinished } from './has-finished.ts'
import { hasInitialized } from './has-initialized.ts'
import type { Waiting } from './pod-action.ts'
import { isRestartableInit } from './restart-policy.ts'
import type { StatusFacts } from './status-facts.ts'

/**
 * Of a pod of which the record alone tells, as nobody knows what the runtime holds. By container: all wait for the
 * runtime but those that are through, or can't run any more.
 */
export function awaitRuntime(
  facts: Pick<StatusFacts, 'pod' | 'record' | 'observed'>,
  why: Waiting,
): ReadonlyMap<string, Waiting> {
  const { pod, record, observed } = facts
  const restartRequested = new Set(record.restartRequested)
  const restartAll = new Set(record.restartAll)
  const restartFacts = { pod, observed, history: record.containers, restartRequested, restartAll }
  if (hasFinished(restartFacts)) return new Map()
  const { initContainers, containers } = pod.spec
  const inits = initContainers.filter((init) => {
    if (isRestartableInit(init)) return true
    return !hasInitialized(facts) && record.containers[init.name]?.ended?.exitCode !== 0
  })
  const mains = containers.filter((container) => !hasEndedForGood(restartFacts, container))
  return new Map([...inits, ...mains].map(({ name }) => [name, why]))
}
