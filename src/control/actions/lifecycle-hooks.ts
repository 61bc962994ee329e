import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import type { RuntimeService } from '../../cri/cri-runtime.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import { runHttpHook } from '../../probes/http-hook.ts'
import type { HookRunner } from './pod-host.ts'

/** A hook that didn't succeed. The message may hold the hook's output: it goes to the log, never into an event. */
export class HookError extends PoddError {
  constructor(message: string, cause?: unknown) {
    super('HOOK_FAILED', message, { cause })
  }
}

export interface LifecycleHooksOptions {
  readonly execSync: RuntimeService['execSync']
  readonly events: EventRecorder
  readonly clock: Clock
  /** The Kubernetes version to go by, `1.36`. */
  readonly kubernetesVersion: string
}

/** Runs hooks: exec in the container, httpGet from the host, sleep (`pkg/kubelet/lifecycle/handlers.go`, Kubernetes 1.36). */
export function createHookRunner(options: LifecycleHooksOptions): HookRunner {
  const { execSync, events, clock, kubernetesVersion } = options
  return {
    async run({ pod, handler, containerId, podIp, ports, timeoutMs, signal, onSent }) {
      const { exec, httpGet, sleep } = handler
      if (exec !== undefined) {
        const timeout = timeoutMs === undefined ? 0 : Math.max(1, Math.ceil(timeoutMs / 1000))
        const reply = await execSync({ containerId, cmd: exec.command, timeout }, { signal, onSent })
        if (reply.exitCode === 0) return
        const output = Buffer.concat([reply.stdout, reply.stderr]).toString('utf8').slice(0, 1024)
        throw new HookError(`command ended with exit code ${reply.exitCode}: ${output}`)
      }
      onSent?.()
      if (httpGet !== undefined) {
        const result = await runHttpHook({
          action: httpGet,
          target: { podIps: podIp === undefined ? [] : [podIp], ports },
          userAgent: `kube-lifecycle/${kubernetesVersion}`,
          bounds: { clock, timeoutMs, signal },
        })
        signal.throwIfAborted()
        if (result.kind === 'failed') throw new HookError(result.message)
        const { warning: message } = result
        if (message === undefined) return
        events.record({ pod, type: 'Warning', reason: 'LifecycleHTTPFallback', message })
        return
      }
      if (sleep !== undefined) {
        await clock.sleep(Math.min(sleep.seconds * 1000, timeoutMs ?? Infinity), signal)
        return
      }
      throw new HookError('the hook names nothing to do')
    },
  }
}
