import { connect } from 'node:net'
import type { Socket } from 'node:net'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import { loadProto } from '../../grpc/load-proto.ts'
import { NetnsDialers } from '../../host/netns-dialer.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerUsage, NodeUsage } from '../../pod/state/usage.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { AttachedContainer } from '../../runtime/attach.ts'
import type { RuntimeConnection } from '../../runtime/connection.ts'
import type { ExecProcess } from '../../runtime/containerd/exec-process.ts'
import { ContainerdExec } from '../../runtime/containerd/exec.ts'
import type { ContainerCommand } from '../../runtime/containerd/exec.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import { readPid } from '../../translate/observe.ts'
import type { RuntimeStats } from '../runtime/runtime-stats.ts'
import { NodeUsageMeter, UsageMeter } from './usage.ts'

/** The fields of a pod that reaching into it needs. */
interface ReachedPod {
  readonly state: { readonly observed: ObservedPod }
  restart(containers: readonly string[] | undefined): Promise<readonly string[]>
}

interface AttachTarget {
  readonly containerId: string
  readonly stdin: boolean
  /** As its container has it. */
  readonly terminal: boolean
  readonly size: { readonly columns: number; readonly rows: number } | undefined
}

export interface ReachOptions {
  readonly runtime: Pick<RuntimeService, 'attach' | 'podSandboxStatus'>
  readonly stats: Pick<RuntimeStats, 'containers'>
  /** For containerd's own services, behind the same socket. */
  readonly connection: RuntimeConnection
  readonly findPod: (uid: PodUid) => ReachedPod | undefined
  /** Why the runtime can't be used for now. */
  readonly runtimeProblem: () => string | undefined
  readonly runDir: string
  readonly clock: Clock
}

/** Access to running pods from outside: commands, ports, restarts, usage. */
export class Reach {
  readonly #options: ReachOptions
  readonly #dialers: NetnsDialers
  readonly #meter: UsageMeter
  readonly #nodeMeter: NodeUsageMeter
  readonly #exec: ContainerdExec

  constructor(options: ReachOptions) {
    const { connection, stats, clock, runDir } = options
    this.#options = options
    this.#dialers = new NetnsDialers(clock)
    this.#nodeMeter = new NodeUsageMeter(clock)
    this.#meter = new UsageMeter({ stats, clock })
    this.#exec = new ContainerdExec({
      channel: connection,
      tasks: loadProto('containerd-tasks.proto'),
      containers: loadProto('containerd-containers.proto'),
      directory: `${runDir}/exec`,
      clock,
    })
  }

  /** Ends commands that an earlier podd left behind. */
  sweep(): Promise<void> {
    return this.#exec.sweep()
  }

  startCommand(command: ContainerCommand): Promise<ExecProcess> {
    return this.#exec.start(command)
  }

  /** Joins the streams of a container's own process. Throws PoddError ATTACH_FAILED, or CriError. */
  async attach({ containerId, stdin, terminal, size }: AttachTarget): Promise<AttachedContainer> {
    const { url } = await this.#options.runtime.attach({
      containerId,
      stdin,
      tty: terminal,
      stdout: true,
      stderr: !terminal,
    })
    const { attachContainer } = await import('../../runtime/attach.ts')
    const attached = await attachContainer(url, { stdin, terminal })
    if (size !== undefined) await attached.resize(size)
    return attached
  }

  dial(uid: PodUid, port: number): Promise<Socket> {
    const { podSandboxStatus } = this.#options.runtime
    return dialPod(this.#pod(uid).state.observed, port, { dialers: this.#dialers, podSandboxStatus })
  }

  async restart(uid: PodUid, containers: readonly string[] | undefined): Promise<readonly string[]> {
    return this.#pod(uid).restart(containers)
  }

  nodeUsage(signal: AbortSignal): Promise<NodeUsage> {
    return this.#nodeMeter.read(signal)
  }

  usage(signal: AbortSignal): Promise<readonly ContainerUsage[]> {
    return this.#meter.read(signal)
  }

  close(): void {
    this.#dialers.close()
    this.#exec.close()
  }

  #pod(uid: PodUid): ReachedPod {
    const pod = this.#options.findPod(uid)
    if (pod !== undefined) return pod
    const problem = this.#options.runtimeProblem()
    if (problem !== undefined)
      throw new PoddError('RUNTIME_UNAVAILABLE', `the container runtime does not work: ${problem}`)
    throw new PoddError('POD_GONE', 'the pod was removed in the meantime')
  }
}

export interface PortDialerOptions {
  readonly dialers: Pick<NetnsDialers, 'dial'>
  readonly podSandboxStatus: (
    request: cri.PodSandboxStatusRequestInput,
  ) => Promise<cri.PodSandboxStatusResponse>
}

/**
 * Connects to a port of a pod on the pod's own loopback device, as `kubectl port-forward` does (containerd
 * `internal/cri/server/sandbox_portforward_linux.go`, 2.1): it also reaches servers that listen on 127.0.0.1 only, and
 * they see a local client. Throws PoddError PORT_REFUSED or PORT_FORWARD_FAILED.
 */
export async function dialPod(
  observed: ObservedPod,
  port: number,
  { dialers, podSandboxStatus }: PortDialerOptions,
): Promise<Socket> {
  const sandbox = observed.sandboxes.find(({ ready }) => ready)
  if (sandbox === undefined) throw new PoddError('PORT_FORWARD_FAILED', 'the pod has no running sandbox')
  if (sandbox.hostNetwork) return dialHost(port)
  const { info } = await podSandboxStatus({ podSandboxId: sandbox.id, verbose: true })
  const pid = readPid(info['info'])
  if (pid === undefined)
    throw new PoddError('PORT_FORWARD_FAILED', "the runtime does not tell the sandbox's process")
  return dialers.dial(`/proc/${pid}/ns/net`, port)
}

async function dialHost(port: number): Promise<Socket> {
  const failures: unknown[] = []
  for (const host of ['127.0.0.1', '::1']) {
    try {
      return await new Promise<Socket>((resolve, reject) => {
        const socket = connect({ host, port, allowHalfOpen: true })
        socket.once('connect', () => resolve(socket))
        socket.once('error', reject)
      })
    } catch (error) {
      failures.push(error)
    }
  }
  const [first] = failures
  throw errorCode(first) === 'ECONNREFUSED'
    ? new PoddError('PORT_REFUSED', 'connection refused: nothing in the pod listens on the port')
    : new PoddError('PORT_FORWARD_FAILED', errorMessage(first), { cause: first })
}
