import { invalidOptions } from '../requests/invalid-options.ts'
import type { OptionFault } from '../requests/invalid-options.ts'
import type { LogRequest } from './pod-logs.ts'
import { booleanParam, integerParam, timeParam } from '../requests/query.ts'

/** `?stream=`, and which stream of the log it is. */
const streams: Readonly<Record<string, 'stdout' | 'stderr' | undefined>> = {
  All: undefined,
  Stderr: 'stderr',
  Stdout: 'stdout',
}

/**
 * The PodLogOptions of a query, with PodLogsQuerySplitStreams. Throws ApiError BadRequest for a value that can't be
 * read and Invalid for forbidden values and combinations (`pkg/apis/core/validation/validation.go`
 * ValidatePodLogOptions, 1.36).
 * @param wallMs now, for `sinceSeconds`
 */
export function readLogQuery(query: URLSearchParams, podName: string, wallMs: number): LogRequest {
  const tailLines = integerParam(query, 'tailLines')
  const limitBytes = integerParam(query, 'limitBytes')
  const sinceSeconds = integerParam(query, 'sinceSeconds')
  const sinceTimeMs = timeParam(query, 'sinceTime')
  const stream = query.get('stream') ?? 'All'
  const problems: OptionFault[] = []
  const refuse = (field: string, message: string, reason: OptionFault['reason'] = 'FieldValueInvalid') =>
    problems.push({ field, reason, message })
  if (tailLines !== undefined && tailLines < 0)
    refuse('tailLines', `Invalid value: ${tailLines}: must be greater than or equal to 0`)
  if (limitBytes !== undefined && limitBytes < 1)
    refuse('limitBytes', `Invalid value: ${limitBytes}: must be greater than 0`)
  if (sinceSeconds !== undefined && sinceTimeMs !== undefined)
    refuse(
      '',
      'Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
      'FieldValueForbidden',
    )
  else if (sinceSeconds !== undefined && sinceSeconds < 1)
    refuse('sinceSeconds', `Invalid value: ${sinceSeconds}: must be greater than 0`)
  if (!Object.hasOwn(streams, stream)) {
    const supported = Object.keys(streams).map((name) => JSON.stringify(name))
    const message = `Unsupported value: ${JSON.stringify(stream)}: supported values: ${supported.join(', ')}`
    refuse('stream', message, 'FieldValueNotSupported')
  }
  if (stream !== 'All' && tailLines !== undefined)
    refuse(
      '',
      'Forbidden: `tailLines` and specific `stream` are mutually exclusive for now',
      'FieldValueForbidden',
    )
  if (problems.length > 0) throw invalidOptions({ kind: 'PodLogOptions', name: podName }, problems)
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
