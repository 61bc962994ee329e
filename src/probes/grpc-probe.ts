import type { Probe } from '../pod/schema/container-schema.ts'
import { boundAttempt } from './bound-attempt.ts'
import { formatDuration, joinHostPort } from './go-words.ts'
import { startUnaryCall } from './grpc-call.ts'
import type { RunningCall, UnaryReply } from './grpc-call.ts'
import type { HealthCheckMethod } from './grpc-health.ts'
import { failure, timedOut, unknown } from './probe-outcome.ts'
import type { ProbeBounds, ProbeOutcome, ProbeTarget } from './probe-outcome.ts'

export interface GrpcProbeOptions {
  readonly action: NonNullable<Probe['grpc']>
  readonly target: ProbeTarget
  readonly method: HealthCheckMethod
  /** `kube-probe/<version>` */
  readonly userAgent: string
  readonly bounds: ProbeBounds
}

/**
 * Asks `grpc.health.v1` over a fresh plaintext connection; only SERVING is success
 * (kubelet pkg/probe/grpc/grpc.go, 1.36). As there, a connection that is refused is tried again until
 * time is up, and every failure counts as the container's.
 */
export function runGrpcProbe(options: GrpcProbeOptions): Promise<ProbeOutcome> {
  const { action, target, method, userAgent, bounds } = options
  const { clock, timeoutMs } = bounds
  const host = target.podIps[0]
  if (host === undefined) return Promise.resolve(unknown('the pod has no IP address yet'))
  const { port } = action
  const within = formatDuration(timeoutMs)
  let call: RunningCall | undefined
  return boundAttempt(bounds, {
    begin: (settle) => {
      const message = method.requestSerialize({ service: action.service })
      const request = { host, port, path: method.path, message, userAgent, timeoutMs, clock }
      call = startUnaryCall(request, (reply) => settle(judge(reply, method, within)))
      return call.cancel
    },
    onTimeout: () =>
      timedOut(
        call?.isConnected() === true
          ? `timeout: health rpc did not complete within ${within}`
          : `timeout: failed to connect service "${joinHostPort(host, port)}" within ${within}: context deadline exceeded`,
      ),
    onAbort: () => unknown('context canceled'),
  })
}

function judge(reply: UnaryReply, method: HealthCheckMethod, within: string): ProbeOutcome {
  if (reply.kind === 'message') {
    const health = servingStatus(reply.message, method)
    if (health === 'SERVING') return { result: 'success', output: 'service healthy' }
    return failure(`service unhealthy (responded with "${health}")`)
  }
  const { code, details } = reply
  if (code === 'Unimplemented') {
    return failure(
      `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${details}`,
    )
  }
  if (code === 'DeadlineExceeded') return failure(`timeout: health rpc did not complete within ${within}`)
  return failure(`error: health rpc probe failed: rpc error: code = ${code} desc = ${details}`)
}

function servingStatus(message: Buffer, method: HealthCheckMethod): string {
  try {
    const reply = method.responseDeserialize(message)
    return 'status' in reply ? String(reply.status) : 'UNKNOWN'
  } catch {
    // The container sent malformed bytes: the probe fails with this text.
    return 'a message that is no HealthCheckResponse'
  }
}
