import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import { isCriError } from '../../runtime/cri-runtime.ts'
import { callDeadlineMs } from '../../runtime/cri-client.ts'
import type { ExecSync } from '../../probes/exec-probe.ts'

/** How exec probes run in containers: ExecSync, which takes whole seconds. */
export function execProbes(runtime: Pick<RuntimeService, 'execSync'>): ExecSync {
  return async ({ containerId, cmd, timeoutMs, signal, onSent }) => {
    try {
      const timeout = Math.max(1, Math.ceil(timeoutMs / 1000))
      const { exitCode, stdout, stderr } = await runtime.execSync(
        { containerId, cmd, timeout },
        { signal, onSent, deadlineMs: timeoutMs + callDeadlineMs },
      )
      return { exitCode, output: Buffer.concat([stdout, stderr]).toString('utf8') }
    } catch (error) {
      // An answer of the runtime itself, not its absence.
      const isAnswer = isCriError(error, 'RUNTIME_TIMEOUT') && error.grpcCode !== undefined
      if (isAnswer) return { exitCode: -1, output: '', timedOut: true }
      throw error
    }
  }
}
