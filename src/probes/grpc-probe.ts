import { Status } from '@grpc/grpc-js/build/src/constants.js'
import { PoddError } from '../base/errors.ts'
import { formatDuration } from '../base/text.ts'
import { GrpcChannel } from '../grpc/grpc-channel.ts'
import type { GrpcStatus } from '../grpc/grpc-channel.ts'
import { loadProto } from '../grpc/load-proto.ts'
import type { Probe } from '../pod/schema/container-schema.ts'
import { boundAttempt, failure, timedOut, unknown } from './probe-outcome.ts'
import { joinHostPort } from './go-words.ts'
import type { ProbeBounds, ProbeOutcome, ProbeTarget } from './probe-outcome.ts'

/** gRPC's connection backoff. */
const reconnectMs = { first: 1_000, longest: 120_000 }
/** Far longer than a health reply. */
const maxReceivedBytes = 64 * 1024

/** The codes of gRPC by number, as Go prints them. */
const codeNames = [
  'OK',
  'Canceled',
  'Unknown',
  'InvalidArgument',
  'DeadlineExceeded',
  'NotFound',
  'AlreadyExists',
  'PermissionDenied',
  'ResourceExhausted',
  'FailedPrecondition',
  'Aborted',
  'OutOfRange',
  'Unimplemented',
  'Internal',
  'Unavailable',
  'DataLoss',
  'Unauthenticated',
]

/**
 * Asks `grpc.health.v1` over a fresh plaintext connection; only SERVING is success (kubelet pkg/probe/grpc/grpc.go,
 * 1.36). As there, a connection that is refused is tried again until time is up, and every failure counts as the
 * container's.
 * @param userAgent `kube-probe/<version>`
 */
export function runGrpcProbe(
  action: NonNullable<Probe['grpc']>,
  target: ProbeTarget,
  userAgent: string,
  bounds: ProbeBounds,
): Promise<ProbeOutcome> {
  const { timeoutMs } = bounds
  const host = target.podIps[0]
  if (host === undefined) return Promise.resolve(unknown('the pod has no IP address yet'))
  const { port } = action
  const within = formatDuration(timeoutMs)
  let isConnected = false
  return boundAttempt(bounds, {
    begin: (settle) => {
      const channel = new GrpcChannel({
        address: { host, port },
        userAgent,
        maxReceivedBytes,
        reconnectMs,
        onState: () => {
          isConnected ||= channel.state === 'ready'
        },
      })
      const { path, requestSerialize, responseDeserialize } = checkMethod()
      const replies: object[] = []
      channel.call({
        path,
        message: requestSerialize({ service: action.service }),
        // The server gets the timeout, in eight digits at most; it is podd that keeps to it.
        headers: { 'grpc-timeout': `${Math.min(timeoutMs, 99_999_999)}m` },
        isPatient: true,
        decode: responseDeserialize,
        onMessage: (reply) => {
          replies.push(reply)
          if (replies.length > 1) settle(failed(Status.INTERNAL, 'the server sent more than one message'))
        },
        onStatus: (status) => settle(judge(status, replies[0], within)),
      })
      return () => channel.close()
    },
    onTimeout: () =>
      timedOut(
        isConnected
          ? `timeout: health rpc did not complete within ${within}`
          : `timeout: failed to connect service "${joinHostPort(host, port)}" within ${within}: context deadline exceeded`,
      ),
    onAbort: () => unknown('context canceled'),
  })
}

function checkMethod() {
  const { Check } = loadProto('grpc-health.proto').service('grpc.health.v1.Health')
  if (Check === undefined) throw new PoddError('INTERNAL', 'grpc-health.proto does not define Check')
  return Check
}

function judge({ code, details }: GrpcStatus, reply: object | undefined, within: string): ProbeOutcome {
  if (code === Status.OK) {
    if (reply === undefined) return failed(Status.INTERNAL, 'the reply holds no message')
    const health = 'status' in reply ? String(reply.status) : 'UNKNOWN'
    if (health === 'SERVING') return { result: 'success', output: 'service healthy' }
    return failure(`service unhealthy (responded with "${health}")`)
  }
  if (code === Status.UNIMPLEMENTED) {
    return failure(
      `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${details}`,
    )
  }
  if (code === Status.DEADLINE_EXCEEDED)
    return failure(`timeout: health rpc did not complete within ${within}`)
  return failed(code, details)
}

function failed(code: Status, details: string): ProbeOutcome {
  const name = codeNames[code] ?? 'Unknown'
  return failure(`error: health rpc probe failed: rpc error: code = ${name} desc = ${details}`)
}
