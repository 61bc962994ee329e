import type { Clock } from '../base/clock.ts'
import type { Probe } from '../pod/schema/container-schema.ts'
import { runExecProbe } from './exec-probe.ts'
import type { ExecSync, Pulse } from './exec-probe.ts'
import { runGrpcProbe } from './grpc-probe.ts'
import { runHttpProbe } from './http-probe.ts'
import { unknown } from './probe-outcome.ts'
import type { ProbeOutcome, ProbeTarget } from './probe-outcome.ts'
import { runTcpProbe } from './tcp-probe.ts'

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
    if (probe.httpGet !== undefined) return runHttpProbe({ action: probe.httpGet, target, userAgent, bounds })
    if (probe.tcpSocket !== undefined) return runTcpProbe(probe.tcpSocket, target, bounds)
    if (probe.grpc !== undefined) return runGrpcProbe({ action: probe.grpc, target, userAgent, bounds })
    return unknown('missing probe handler')
  }
}
