import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { NetnsDialers } from '../../host/netns-dialer.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import { readPid } from '../../translate/observe.ts'

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
