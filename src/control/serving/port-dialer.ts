import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { NetnsDialers } from '../../host/netns/netns-dialer.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'

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
  const pid = sandboxPid(info['info'] ?? '')
  if (pid === undefined)
    throw new PoddError('PORT_FORWARD_FAILED', "the runtime does not tell the sandbox's process")
  return dialers.dial(`/proc/${pid}/ns/net`, port)
}

/** containerd and CRI-O alike tell the process that holds the sandbox's namespaces. */
function sandboxPid(info: string): number | undefined {
  try {
    const parsed: unknown = JSON.parse(info)
    const pid = isJsonObject(parsed) ? parsed['pid'] : undefined
    return typeof pid === 'number' && pid > 0 ? pid : undefined
  } catch {
    // The form of `info` is the runtime's own: without JSON there is no process id in it.
    return undefined
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
