import type { PodObject } from '../api/objects.ts'
import type { JsonObject } from '../base/json.ts'
import { isJsonObject } from '../base/json.ts'

/**
 * Whether a container of this pod runs, or may yet: false once its last instance has ended and its pod or its
 * restart policy will start no other. What isn't known counts as yes.
 */
export function mayRunAgain(pod: PodObject, container: string): boolean {
  const { status } = pod
  const statuses = [
    ...(status.initContainerStatuses ?? []),
    ...(status.containerStatuses ?? []),
    ...(status.ephemeralContainerStatuses ?? []),
  ]
  const state = statuses.find((candidate) => candidate.name === container)?.state
  if (state?.running !== undefined) return true
  if (status.phase === 'Succeeded' || status.phase === 'Failed') return false
  if (pod.metadata.deletionTimestamp !== undefined) return state?.terminated === undefined
  const ended = state?.terminated
  if (ended === undefined) return true
  if (findContainer(pod.spec['ephemeralContainers'], container) !== undefined) return false
  const main = findContainer(pod.spec['containers'], container)
  const init = findContainer(pod.spec['initContainers'], container)
  const own = (main ?? init)?.['restartPolicy']
  if (own === 'Always' || restartsAll(pod.spec) || hasRuleFor(main ?? init, ended.exitCode)) return true
  // Init containers run again until they succeed, unless the pod never restarts anything.
  const whole = pod.spec['restartPolicy'] ?? 'Always'
  const policy = own ?? (init !== undefined && whole === 'Always' ? 'OnFailure' : whole)
  return policy === 'Always' || (policy === 'OnFailure' && ended.exitCode !== 0)
}

/** Whether one of the container's restartPolicyRules is about this exit code. */
function hasRuleFor(container: JsonObject | undefined, exitCode: number): boolean {
  return rulesOf(container).some(({ exitCodes }) => {
    if (!isJsonObject(exitCodes) || !Array.isArray(exitCodes['values'])) return false
    return exitCodes['values'].includes(exitCode) === (exitCodes['operator'] === 'In')
  })
}

/** Whether any container may have all of them started again, those that have ended for good too. */
function restartsAll(spec: JsonObject): boolean {
  const containers = [spec['initContainers'], spec['containers']].flatMap((list): unknown[] =>
    Array.isArray(list) ? list : [],
  )
  return containers
    .filter((container) => isJsonObject(container))
    .some((container) => rulesOf(container).some(({ action }) => action === 'RestartAllContainers'))
}

function rulesOf(container: JsonObject | undefined): readonly JsonObject[] {
  const rules = container?.['restartPolicyRules']
  return Array.isArray(rules) ? rules.filter((rule) => isJsonObject(rule)) : []
}

function findContainer(list: unknown, name: string): JsonObject | undefined {
  if (!Array.isArray(list)) return undefined
  return list.filter((item) => isJsonObject(item)).find((item) => item['name'] === name)
}
