import { connect } from 'node:net'
import type { Clock } from '../base/clock.ts'
import type { Probe } from '../pod/schema/container-schema.ts'
import { runExecProbe } from './exec-probe.ts'
import type { ExecSync, Pulse } from './exec-probe.ts'
import { describeDialError, isOwnFault, joinHostPort } from './go-words.ts'
import { runGrpcProbe } from './grpc-probe.ts'
import { runHttpProbe } from './http-probe.ts'
import { boundAttempt, failure, lookUpHost, resolvePort, timedOut, unknown } from './probe-outcome.ts'
import type { ProbeBounds, ProbeOutcome, ProbeTarget } from './probe-outcome.ts'

export interface ProbeRunnerOptions {
  readonly clock: Clock
  readonly execSync: ExecSync
  /** That of the runtime behind `execSync`. */
  readonly pulse: Pulse
  /** The Kubernetes version to go by, `1.36`. */
  readonly kubernetesVersion: string
}

/** Sends one probe, once. Never rejects for what a container does. */
export type RunProbe = (probe: Probe, target: ProbeTarget, signal: AbortSignal) => Promise<ProbeOutcome>

/** All four handlers behind one function. */
export function createProbeRunner(options: ProbeRunnerOptions): RunProbe {
  const { clock } = options
  const userAgent = `kube-probe/${options.kubernetesVersion}`
  return async (probe, target, signal) => {
    const bounds = { clock, timeoutMs: probe.timeoutSeconds * 1000, signal }
    if (probe.exec !== undefined) return runExecProbe(options, probe.exec, target, bounds)
    if (probe.httpGet !== undefined) return runHttpProbe(probe.httpGet, target, userAgent, bounds)
    if (probe.tcpSocket !== undefined) return runTcpProbe(probe.tcpSocket, target, bounds)
    if (probe.grpc !== undefined) return runGrpcProbe(probe.grpc, target, userAgent, bounds)
    return unknown('missing probe handler')
  }
}

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
      const socket = connect({ host, port, lookup: lookUpHost })
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
