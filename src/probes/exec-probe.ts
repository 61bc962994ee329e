import { errorMessage } from '../base/errors.ts'
import { formatDuration } from '../base/text.ts'
import type { ContainerId } from '../pod/values/ids.ts'
import type { Probe } from '../pod/schema/container-schema.ts'
import { expandWords } from '../translate/environment.ts'
import { boundAttempt, failure, maxOutputBytes, timedOut, unknown } from './probe-outcome.ts'
import type { ProbeBounds, ProbeOutcome, ProbeTarget } from './probe-outcome.ts'

export interface ExecSyncRequest {
  readonly containerId: ContainerId
  readonly cmd: readonly string[]
  /** For the runtime, which kills the command then. */
  readonly timeoutMs: number
  /** The call was cancelled. */
  readonly signal: AbortSignal
  /** Called when the call is sent to the runtime. */
  readonly onSent?: () => void
}

export interface ExecSyncResult {
  readonly exitCode: number
  /** Standard output, then standard error. */
  readonly output: string
  /** The runtime reports that it ended the command at its timeout; `exitCode` means nothing then. */
  readonly timedOut?: boolean
}

/** Runs a command in a container and waits for its end; rejects when it can't be run. */
export type ExecSync = (request: ExecSyncRequest) => Promise<ExecSyncResult>

/** Tells whether the runtime answers; see control/runtime/runtime-watch.ts. */
export interface Pulse {
  enter(): number
  leave(): void
  silentMs(mark: number): number
  answer(): Promise<boolean>
}

/** How long the runtime may take beyond the timeout to report that the command has timed out. */
const answerSlackMs = 500
/** How long it may take beyond that to kill the command before its call is given up. */
const killSlackMs = 1_500

/**
 * Runs a command in the container; exit code 0 is success (kubelet pkg/probe/exec/exec.go, 1.36). The timeout is
 * enforced here too: a runtime may wait for a grandchild that holds the output open. A timeout counts only once the
 * runtime has answered something else since: its silence proves nothing about the container.
 */
export function runExecProbe(
  { execSync, pulse }: { readonly execSync: ExecSync; readonly pulse: Pulse },
  action: NonNullable<Probe['exec']>,
  target: ProbeTarget,
  bounds: ProbeBounds,
): Promise<ProbeOutcome> {
  const { clock, timeoutMs, signal } = bounds
  const environment = new Map(target.env?.map(({ name, value }) => [name, value]))
  const cmd = expandWords(action.command, environment)
  if (cmd === undefined) return Promise.resolve(unknown('the command is larger than a process may have'))
  const giveUp = new AbortController()
  const outOfTime = (): ProbeOutcome =>
    timedOut(
      `command timed out: ${JSON.stringify(cmd.join(' '))} timed out after ${formatDuration(timeoutMs)}`,
    )
  return boundAttempt<ProbeOutcome>(
    { clock, signal },
    {
      begin: (settle) => {
        const mark = pulse.enter()
        let isOver = false
        const say = (outcome: ProbeOutcome): void => {
          const silentMs = pulse.silentMs(mark)
          settle(silentMs === 0 ? outcome : { ...outcome, silentMs })
        }
        let timer = clock.startTimer(timeoutMs, () => {
          giveUp.abort()
          settle(unknown('the container runtime is away'))
        })
        const onOverdue = async (): Promise<void> => {
          const isAnswered = await pulse.answer()
          if (isOver) return
          if (isAnswered) {
            clock.startTimer(killSlackMs, () => giveUp.abort())
            return say(outOfTime())
          }
          giveUp.abort()
          settle(unknown('the container runtime does not answer'))
        }
        const onSent = (): void => {
          timer.cancel()
          if (isOver) return
          timer = clock.startTimer(timeoutMs + answerSlackMs, () => void onOverdue())
        }
        execSync({ containerId: target.containerId, cmd, timeoutMs, signal: giveUp.signal, onSent }).then(
          (reply) => say(reply.timedOut === true ? outOfTime() : judge(reply)),
          (error: unknown) => settle(unknown(errorMessage(error))),
        )
        return () => {
          isOver = true
          timer.cancel()
          pulse.leave()
        }
      },
      onTimeout: outOfTime,
      onAbort: () => {
        giveUp.abort(signal.reason)
        return unknown('context canceled')
      },
    },
  )
}

function judge(reply: ExecSyncResult): ProbeOutcome {
  const output = truncate(reply.output)
  return reply.exitCode === 0 ? { result: 'success', output } : failure(output)
}

function truncate(output: string): string {
  if (output.length * 3 <= maxOutputBytes) return output
  const bytes = Buffer.from(output)
  return bytes.length <= maxOutputBytes ? output : bytes.toString('utf8', 0, maxOutputBytes)
}
