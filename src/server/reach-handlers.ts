import type { PodMetrics, PodMetricsList } from '../api/pod-metrics.ts'
import type { RestartReply } from '../api/routes.ts'
import { errorCode, errorMessage } from '../base/errors.ts'
import { ApiError } from './api-error.ts'
import { findRunningPod, podNotFound } from './pod-target.ts'
import type { ApiReaders } from './readers.ts'
import { listPodMetrics } from './top-pods.ts'

/** What these handlers need of a request. */
interface ReachCall {
  readonly readers: Pick<ApiReaders, 'pods' | 'reach'>
  readonly query: URLSearchParams
  /** Namespace and name, as far as the path names them. */
  readonly names: readonly string[]
  readonly signal: AbortSignal
}

/** Throws ApiError: Conflict for a pod or container that can't be restarted as it is. */
export async function restartPod({ readers, query, names }: ReachCall): Promise<RestartReply> {
  const [namespace = '', name = ''] = names
  const pod = findRunningPod(readers.pods, namespace, name)
  const wanted = query.getAll('container')
  try {
    return {
      containers: await readers.reach.restart(pod.metadata.uid, wanted.length === 0 ? undefined : wanted),
    }
  } catch (error) {
    throw errorCode(error) === 'RESTART_REFUSED' ? new ApiError(409, errorMessage(error)) : error
  }
}

/** Of all pods, of a namespace's, or of the one pod that is named. Throws ApiError NotFound where that has no figures. */
export async function readPodMetrics({
  readers,
  names,
  signal,
}: ReachCall): Promise<PodMetrics | PodMetricsList> {
  const [namespace, name] = names
  const pods = readers.pods
    .listPods()
    .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
    .filter(({ metadata }) => name === undefined || metadata.name === name)
  if (name !== undefined && pods.length === 0) throw podNotFound(readers.pods, namespace ?? '', name)
  const list = listPodMetrics(pods, await readers.reach.usage(signal))
  if (name === undefined) return list
  const found = list.items.at(-1)
  if (found === undefined) throw new ApiError(404, `no container of pod ${name} runs`)
  return found
}
