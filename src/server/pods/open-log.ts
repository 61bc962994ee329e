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
 * The log that a request asks for, of a pod that is there or, where its logs are kept, of one that was removed. Throws
 * ApiError, or PoddError LOG_WATCH; errors of the file system come while the chunks are taken.
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
  // While its successor is still being made ready, it is the old pod that has something to tell.
  const body = removed ?? (await logs.read(findRunningPod(reader, namespace, name), request, signal))
  return { body, follow: request.follow }
}
