import { ApiError } from '../requests/api-error.ts'
import type { LogRequest } from './pod-logs.ts'
import { booleanParam, integerParam, timeParam } from '../requests/query.ts'

/** `?stream=`, and which stream of the log it is. */
const streams: Readonly<Record<string, 'stdout' | 'stderr' | undefined>> = {
  All: undefined,
  Stderr: 'stderr',
  Stdout: 'stdout',
}

/**
 * The PodLogOptions of a query, with PodLogsQuerySplitStreams. Throws ApiError BadRequest for a value that can't be read
 * and Invalid for values that may not be, or not together (`pkg/apis/core/validation/validation.go`
 * ValidatePodLogOptions, 1.36).
 * @param wallMs now, for `sinceSeconds`
 */
export function readLogQuery(query: URLSearchParams, podName: string, wallMs: number): LogRequest {
  const tailLines = integerParam(query, 'tailLines')
  const limitBytes = integerParam(query, 'limitBytes')
  const sinceSeconds = integerParam(query, 'sinceSeconds')
  const sinceTimeMs = timeParam(query, 'sinceTime')
  const stream = query.get('stream') ?? 'All'
  const problems: string[] = []
  if (tailLines !== undefined && tailLines < 0)
    problems.push(`tailLines: Invalid value: ${tailLines}: must be greater than or equal to 0`)
  if (limitBytes !== undefined && limitBytes < 1)
    problems.push(`limitBytes: Invalid value: ${limitBytes}: must be greater than 0`)
  if (sinceSeconds !== undefined && sinceTimeMs !== undefined)
    problems.push('Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified')
  else if (sinceSeconds !== undefined && sinceSeconds < 1)
    problems.push(`sinceSeconds: Invalid value: ${sinceSeconds}: must be greater than 0`)
  if (!Object.hasOwn(streams, stream)) {
    const supported = Object.keys(streams).map((name) => JSON.stringify(name))
    problems.push(
      `stream: Unsupported value: ${JSON.stringify(stream)}: supported values: ${supported.join(', ')}`,
    )
  }
  if (stream !== 'All' && tailLines !== undefined)
    problems.push('Forbidden: `tailLines` and specific `stream` are mutually exclusive for now')
  if (problems.length > 0) {
    const [only] = problems
    const what = problems.length === 1 ? only : `[${problems.join(', ')}]`
    throw new ApiError(422, `PodLogOptions ${JSON.stringify(podName)} is invalid: ${what}`)
  }
  return {
    container: query.get('container') || undefined,
    follow: booleanParam(query, 'follow'),
    previous: booleanParam(query, 'previous'),
    timestamps: booleanParam(query, 'timestamps'),
    stream: streams[stream],
    tailLines,
    sinceMs: sinceSeconds === undefined ? sinceTimeMs : wallMs - sinceSeconds * 1000,
    limitBytes,
  }
}
