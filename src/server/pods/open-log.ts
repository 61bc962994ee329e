import type { Clock } from '../../base/clock.ts'
import type { ApiReaders } from '../requests/readers.ts'
import { readLogQuery } from './log-query.ts'
import type { PodLogs } from './pod-logs.ts'
import { findRunningPod } from './pod-target.ts'

export interface LogCall {
  readonly namespace: string
  readonly name: string
  readonly query: URLSearchParams
  readonly clock: Clock
  readonly signal: AbortSignal
}

/**
 * Opens the requested log, of an existing pod or, where its logs are kept, of a removed one. Throws ApiError, or
 * PoddError LOG_WATCH; errors of the file system are thrown while the chunks are read.
 */
export async function openLog(
  { resources }: Pick<ApiReaders, 'resources'>,
  logs: PodLogs,
  { namespace, name, query, clock, signal }: LogCall,
): Promise<{ readonly body: AsyncIterable<Uint8Array>; readonly follow: boolean }> {
  const { reader } = resources.pods
  const request = readLogQuery(query, name, clock.wallMs())
  const isGone = !reader
    .list()
    .some(({ metadata }) => metadata.namespace === namespace && metadata.name === name)
  const removed = isGone ? await logs.readRemoved({ namespace, name }, request) : undefined
  // While its successor is being prepared, the old pod has the logs.
  const body = removed ?? (await logs.read(findRunningPod(reader, namespace, name), request, signal))
  return { body, follow: request.follow }
}
