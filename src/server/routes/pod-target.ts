import { containerStatuses } from '../../api/pod-summary.ts'
import type { PodObject } from '../../api/resource.ts'
import { ApiError, objectNotFound } from '../requests/api-error.ts'
import type { ResourceReader } from '../requests/readers.ts'

type PodReader = Pick<ResourceReader<PodObject>, 'list'>

/** The pods of a name: one, and its replacement after it. Throws ApiError NotFound where there is none. */
export function findPods(
  pods: PodReader,
  namespace: string,
  name: string,
): readonly [PodObject, ...PodObject[]] {
  const [first, ...others] = pods
    .list()
    .filter(({ metadata }) => metadata.namespace === namespace && metadata.name === name)
  if (first === undefined) throw objectNotFound('pods', pods.list(), { namespace, name })
  return [first, ...others]
}

/** Finds the running pod of a name: while its successor is being prepared, that is the old one. Throws ApiError. */
export function findRunningPod(pods: PodReader, namespace: string, name: string): PodObject {
  const found = findPods(pods, namespace, name)
  return found.findLast(({ status }) => status.phase !== 'Pending') ?? found.at(-1) ?? found[0]
}

/** The waiting reason of a created container, which runs while its postStart hook isn't done. */
const isStarting = new Set(['ContainerCreating', 'PodInitializing'])

/** The runtime's id of a running container, by its status. Throws ApiError with the reason where it doesn't run. */
export function findRunningContainer(pod: PodObject, container: string): string {
  const { status } = pod
  const found = containerStatuses(pod).find(({ name }) => name === container)
  const id = found?.containerID?.replace(/^[^:]*:\/\//u, '')
  const mayRun = found?.state.running !== undefined || isStarting.has(found?.state.waiting?.reason ?? '')
  if (mayRun && id !== undefined && id !== '') return id
  if (status.phase === 'Succeeded' || status.phase === 'Failed') {
    const message = `cannot exec into a container in a completed pod; current phase is ${status.phase}`
    throw new ApiError(400, message)
  }
  const state = found?.state
  const reason = state?.waiting?.reason ?? state?.terminated?.reason
  throw notRunning(pod, container, reason)
}

/** The error for a container that doesn't run, with the reason from its status. */
export function notRunning({ metadata }: PodObject, container: string, reason?: string): ApiError {
  const why = reason === undefined ? '' : `: ${reason}`
  return new ApiError(400, `container ${container} of pod ${metadata.name} is not running${why}`)
}
