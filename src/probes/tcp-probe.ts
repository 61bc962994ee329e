import { connect } from 'node:net'
import type { Probe } from '../pod/schema/container-schema.ts'
import { boundAttempt } from './bound-attempt.ts'
import { describeDialError, isOwnFault, joinHostPort } from './go-words.ts'
import { failure, timedOut, unknown } from './probe-outcome.ts'
import type { ProbeBounds, ProbeOutcome, ProbeTarget } from './probe-outcome.ts'
import { resolvePort } from './resolve-port.ts'

type TcpSocketAction = NonNullable<Probe['tcpSocket']>

/** Succeeds as soon as the port accepts a connection (kubelet pkg/probe/tcp/tcp.go, 1.36). */
export function runTcpProbe(
  action: TcpSocketAction,
  target: ProbeTarget,
  bounds: ProbeBounds,
): Promise<ProbeOutcome> {
  const resolved = resolvePort(action.port, target.ports)
  if (resolved.kind === 'invalid') return Promise.resolve(unknown(resolved.message))
  const host = action.host || target.podIps[0]
  if (host === undefined) return Promise.resolve(unknown('the pod has no IP address yet'))
  const { port } = resolved
  return boundAttempt(bounds, {
    begin: (settle) => {
      const socket = connect({ host, port })
      socket.once('connect', () => settle({ result: 'success', output: '' }))
      // Stays on: a socket may still fail while it closes.
      socket.on('error', (error) => {
        const words = describeDialError(error, host, port)
        settle(isOwnFault(error) ? unknown(words) : failure(words))
      })
      return () => socket.destroy()
    },
    onTimeout: () => timedOut(`dial tcp ${joinHostPort(host, port)}: i/o timeout`),
    onAbort: () => unknown('context canceled'),
  })
}
