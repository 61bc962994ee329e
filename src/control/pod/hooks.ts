import { kubernetesVersion } from '../../api/resource.ts'
import { startDeadline } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import type { ContainerSpec, LifecycleHandler } from '../../pod/schema/container-schema.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import type { ContainerId, PodRef } from '../../pod/values/ids.ts'
import { runHttpHook } from '../../probes/http-probe.ts'
import type { HeldCommand, HeldExec } from '../../runtime/containerd/exec.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'

interface HookCall {
  readonly pod: PodRef
  readonly handler: LifecycleHandler
  readonly hook: 'postStart' | 'preStop'
  readonly containerId: ContainerId
  readonly podIp: string | undefined
  readonly ports: ContainerSpec['ports']
  /** Undefined: only the signal ends it. */
  readonly timeoutMs: number | undefined
  readonly signal: AbortSignal
  /** Called when it begins: the runtime has the call, where it needs the runtime. */
  readonly onSent?: () => void
}

export type Hooks = ReturnType<typeof createHooks>

/**
 * Runs lifecycle hooks: exec in the container, httpGet from the host, sleep (`pkg/kubelet/lifecycle/handlers.go`,
 * Kubernetes 1.36).
 * @param held runs commands that outlive podd; undefined where the runtime has no such calls
 */
export function createHooks(
  execSync: RuntimeService['execSync'],
  held: () => Pick<HeldExec, 'run'> | undefined,
  events: EventRecorder,
  clock: Clock,
) {
  return {
    /** Whether the runtime keeps such a hook over podd's end: a hook that was begun is then waited for by `run`, and not run again. */
    isHeld: ({ exec }: LifecycleHandler): boolean => exec !== undefined && held() !== undefined,

    /** Resolves when the handler has succeeded; throws PoddError otherwise, or the signal's reason. */
    async run(call: HookCall): Promise<void> {
      const { pod, handler, hook, containerId, podIp, ports, timeoutMs, signal, onSent } = call
      const { exec, httpGet, sleep } = handler
      const holder = held()
      if (exec !== undefined && holder !== undefined) {
        const command = { containerId, execId: `podd-${hook}`, command: exec.command, onSent }
        return runHeld(holder, command, { clock, timeoutMs, signal })
      }
      if (exec !== undefined) {
        const timeout = timeoutMs === undefined ? 0 : Math.max(1, Math.ceil(timeoutMs / 1000))
        const reply = await execSync({ containerId, cmd: exec.command, timeout }, { signal, onSent })
        if (reply.exitCode === 0) return
        const output = Buffer.concat([reply.stdout, reply.stderr]).toString('utf8').slice(0, 1024)
        throw new HookError(`command ended with exit code ${reply.exitCode}: ${output}`)
      }
      onSent?.()
      if (httpGet !== undefined) {
        const target = { podIps: podIp === undefined ? [] : [podIp], ports }
        const bounds = { clock, timeoutMs, signal }
        const result = await runHttpHook(httpGet, target, `kube-lifecycle/${kubernetesVersion}`, bounds)
        signal.throwIfAborted()
        if (result.kind === 'failed') throw new HookError(result.message)
        const { warning: message } = result
        if (message !== undefined)
          events.record({ pod, type: 'Warning', reason: 'LifecycleHTTPFallback', message })
        return
      }
      if (sleep === undefined) throw new HookError('the hook names nothing to do')
      await clock.sleep(Math.min(sleep.seconds * 1000, timeoutMs ?? Infinity), signal)
    },
  }
}

/** Throws HookError; PoddError RUNTIME_UNAVAILABLE where it was not begun; the signal's reason. */
async function runHeld(
  holder: Pick<HeldExec, 'run'>,
  command: HeldCommand,
  bounds: { readonly clock: Clock; readonly timeoutMs: number | undefined; readonly signal: AbortSignal },
): Promise<void> {
  const { clock, timeoutMs, signal } = bounds
  const tooLate = () => new HookError(`the command has not ended after ${(timeoutMs ?? 0) / 1000} s`)
  try {
    using deadline = startDeadline(clock, timeoutMs ?? Infinity, tooLate)
    const { exitCode, output } = await holder.run(command, AbortSignal.any([signal, deadline.signal]))
    if (exitCode !== 0) throw new HookError(`command ended with exit code ${exitCode}: ${output}`)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof HookError || errorCode(error) === 'RUNTIME_UNAVAILABLE') throw error
    throw new HookError(errorMessage(error), error)
  }
}

/** A hook that didn't succeed. The message may hold the hook's output: it goes to the log, never into an event. */
export class HookError extends PoddError {
  constructor(message: string, cause?: unknown) {
    super('HOOK_FAILED', message, { cause })
  }
}
