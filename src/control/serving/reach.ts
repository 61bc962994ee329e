import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { makeDirectory } from '../../base/atomic-file.ts'
import { formatTime } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import type { PoddConfig } from '../../config/options.ts'
import { NamespaceUnreachable, NetnsDialers } from '../../host/netns-dialer.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodUid, SandboxId } from '../../pod/values/ids.ts'
import { ContainerdExec } from '../../runtime/containerd/exec.ts'
import type { ContainerCommand } from '../../runtime/containerd/exec.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import type { JoinedProcess } from '../../runtime/streaming.ts'
import { readPid } from '../../translate/observe.ts'
import type { RuntimeAccess } from '../runtime/runtime-access.ts'
import { nodeUsageMeter, usageMeter } from './usage.ts'

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

interface CheckpointTarget {
  readonly pod: { readonly namespace: string; readonly name: string }
  readonly container: string
  readonly containerId: string
  /** 0: the runtime's own. */
  readonly timeoutSeconds: number
}

/** The runtime, as far as it reaches into pods. */
type ReachingRuntime = Pick<RuntimeAccess, 'connection' | 'stats'> & {
  readonly runtime: Pick<
    RuntimeService,
    'attach' | 'checkpointContainer' | 'exec' | 'podSandboxStatus' | 'portForward'
  >
}

/** See PodSystem. */
interface ReachedPods {
  findPod(uid: PodUid): ReachedPod | undefined
  readonly runtimeProblem: string | undefined
}

/** Access to running pods from outside: commands, ports, restarts, usage. */
export class Reach {
  readonly #runtime: ReachingRuntime['runtime']
  readonly #pods: ReachedPods
  readonly #rootDir: string
  readonly #clock: Clock
  readonly #dialers: NetnsDialers
  readonly usage: ReturnType<typeof usageMeter>
  readonly nodeUsage: ReturnType<typeof nodeUsageMeter>
  readonly #exec: ContainerdExec

  constructor(
    { runtime, connection, stats }: ReachingRuntime,
    pods: ReachedPods,
    { rootDir, runDir }: Pick<PoddConfig, 'rootDir' | 'runDir'>,
    clock: Clock,
  ) {
    this.#runtime = runtime
    this.#pods = pods
    this.#rootDir = rootDir
    this.#clock = clock
    this.#dialers = new NetnsDialers(clock)
    this.usage = usageMeter(stats, clock)
    this.nodeUsage = nodeUsageMeter(clock)
    this.#exec = new ContainerdExec(connection, `${runDir}/exec`, clock)
  }

  /** Ends commands that an earlier podd left behind. */
  sweep(): Promise<void> {
    return this.#exec.sweep()
  }

  /**
   * Runs a command by containerd's own API, by which it can be ended when its client is gone; in another runtime by CRI's
   * Exec. Throws PoddError EXEC_FAILED, or CriError.
   */
  async startCommand(command: ContainerCommand, signal: AbortSignal): Promise<JoinedProcess> {
    signal.throwIfAborted()
    try {
      return await this.#exec.start(command)
    } catch (error) {
      if (errorCode(error) !== 'RUNTIME_UNSUPPORTED') throw error
    }
    const { containerId, command: cmd, stdin, terminal, size } = command
    const streams = { stdin, tty: terminal, stdout: true, stderr: !terminal }
    const { url } = await this.#runtime.exec({ containerId, cmd, ...streams }, { signal })
    const { joinContainer } = await import('../../runtime/streaming.ts')
    return joinContainer(url, { stdin, terminal, size }, 'EXEC_FAILED', signal)
  }

  /** Joins the streams of a container's own process. Throws PoddError ATTACH_FAILED, or CriError. */
  async attach(
    { containerId, stdin, terminal, size }: AttachTarget,
    signal: AbortSignal,
  ): Promise<JoinedProcess> {
    const streams = { stdin, tty: terminal, stdout: true, stderr: !terminal }
    const { url } = await this.#runtime.attach({ containerId, ...streams }, { signal })
    const { joinContainer } = await import('../../runtime/streaming.ts')
    return joinContainer(url, { stdin, terminal, size }, 'ATTACH_FAILED', signal)
  }

  /**
   * Has the runtime write a running container into a file, which holds its memory, and so its secrets. Returns the file's
   * path, which is named as the kubelet names it (`pkg/kubelet/kubelet.go` CheckpointContainer, 1.36). Nothing removes it.
   * Throws CriError, or the system's error.
   */
  async checkpoint({ pod, container, containerId, timeoutSeconds }: CheckpointTarget): Promise<string> {
    const directory = join(this.#rootDir, 'checkpoints')
    await makeDirectory(directory, 0o700)
    const time = formatTime(this.#clock.wallMs())
    const location = join(directory, `checkpoint-${pod.name}_${pod.namespace}-${container}-${time}.tar`)
    await this.#runtime.checkpointContainer({ containerId, location, timeout: timeoutSeconds })
    return location
  }

  async dial(uid: PodUid, port: number, signal: AbortSignal): Promise<Duplex> {
    signal.throwIfAborted()
    const { podSandboxStatus, portForward } = this.#runtime
    return dialPod(this.#pod(uid).state.observed, port, {
      dialers: this.#dialers,
      podSandboxStatus,
      async forward(podSandboxId) {
        const { url } = await portForward({ podSandboxId, port: [port] }, { signal })
        const { forwardPort } = await import('../../runtime/streaming.ts')
        return forwardPort(url, port, signal)
      },
    })
  }

  async restart(uid: PodUid, containers: readonly string[] | undefined): Promise<readonly string[]> {
    return this.#pod(uid).restart(containers)
  }

  close(): void {
    this.#dialers.close()
    this.#exec.close()
  }

  #pod(uid: PodUid): ReachedPod {
    const pod = this.#pods.findPod(uid)
    if (pod !== undefined) return pod
    const problem = this.#pods.runtimeProblem
    if (problem !== undefined)
      throw new PoddError('RUNTIME_UNAVAILABLE', `the container runtime does not work: ${problem}`)
    throw new PoddError('POD_GONE', 'the pod was removed in the meantime')
  }
}

/**
 * Connects to a port of a pod on the pod's own loopback device, as `kubectl port-forward` does (containerd
 * `internal/cri/server/sandbox_portforward_linux.go`, 2.1): it also reaches servers that listen on 127.0.0.1 only, and
 * they see a local client. Where the runtime doesn't tell the namespace, or podd can't enter it, the runtime connects. Throws
 * PoddError PORT_REFUSED or PORT_FORWARD_FAILED.
 */
export async function dialPod(
  observed: ObservedPod,
  port: number,
  via: {
    readonly dialers: Pick<NetnsDialers, 'dial'>
    readonly podSandboxStatus: RuntimeService['podSandboxStatus']
    /** Has the runtime connect. */
    readonly forward: (sandboxId: SandboxId) => Promise<Duplex>
  },
): Promise<Duplex> {
  const { dialers, podSandboxStatus, forward } = via
  const sandbox = observed.sandboxes.find(({ ready }) => ready)
  if (sandbox === undefined) throw new PoddError('PORT_FORWARD_FAILED', 'the pod has no running sandbox')
  if (sandbox.hostNetwork) return dialHost(port)
  const { info } = await podSandboxStatus({ podSandboxId: sandbox.id, verbose: true })
  const pid = readPid(info['info'])
  if (pid === undefined) return forward(sandbox.id)
  try {
    return await dialers.dial(`/proc/${pid}/ns/net`, port)
  } catch (error) {
    if (error instanceof NamespaceUnreachable) return forward(sandbox.id)
    throw error
  }
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
