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
  if (own === 'Always') return true
  // Init containers run again until they succeed, unless the pod never restarts anything.
  const whole = pod.spec['restartPolicy'] ?? 'Always'
  const policy = own ?? (init !== undefined && whole === 'Always' ? 'OnFailure' : whole)
  return policy === 'Always' || (policy === 'OnFailure' && ended.exitCode !== 0)
}

function findContainer(list: unknown, name: string): JsonObject | undefined {
  if (!Array.isArray(list)) return undefined
  return list.filter((item) => isJsonObject(item)).find((item) => item['name'] === name)
}
