import { sendHttpGet } from './http-get.ts'
import { buildHttpRequest } from './http-request.ts'
import type { HttpGetAction } from './http-request.ts'
import { failure, timedOut, unknown } from './probe-outcome.ts'
import type { ProbeBounds, ProbeOutcome, ProbeTarget } from './probe-outcome.ts'

export interface HttpProbeOptions {
  readonly action: HttpGetAction
  readonly target: ProbeTarget
  /** Where the manifest's headers name none: `kube-probe/<version>`. */
  readonly userAgent: string
  readonly bounds: ProbeBounds
}

/**
 * Succeeds on a status from 200 to 399; a redirect that leads off the host is a success with a warning (kubelet
 * pkg/probe/http/http.go DoHTTPProbe, 1.36). A failure's message never holds the body. A body that is truncated or
 * doesn't end in time is, as there, an error of the probe that proves nothing about the container.
 */
export async function runHttpProbe(options: HttpProbeOptions): Promise<ProbeOutcome> {
  const built = buildHttpRequest(options.action, options.target, options.userAgent)
  if (built.kind === 'invalid') return unknown(built.message)
  const got = await sendHttpGet(built.request, options.bounds)
  if (got.kind === 'error') {
    if (got.during !== 'answer') return { ...unknown(got.message), timedOut: got.timedOut }
    return got.timedOut ? timedOut(got.message) : failure(got.message)
  }
  const { status, body } = got
  if (status < 200 || status >= 400) return failure(`HTTP probe failed with statuscode: ${status}`)
  if (status < 300) return { result: 'success', output: body }
  return { result: 'warning', output: `Probe terminated redirects, Response body: ${body}` }
}
