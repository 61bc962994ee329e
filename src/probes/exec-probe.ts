import { errorMessage } from '../base/errors.ts'
import type { ContainerId } from '../pod/ids.ts'
import type { Probe } from '../pod/schema/container-schema.ts'
import { expandWords } from '../translate/exec-limits.ts'
import { boundAttempt } from './bound-attempt.ts'
import { formatDuration } from './go-words.ts'
import { failure, maxOutputBytes, timedOut, unknown } from './probe-outcome.ts'
import type { ProbeBounds, ProbeOutcome, ProbeTarget } from './probe-outcome.ts'

export interface ExecSyncRequest {
  readonly containerId: ContainerId
  readonly cmd: readonly string[]
  /** For the runtime, which kills the command then. */
  readonly timeoutMs: number
  /** Nobody waits any more. */
  readonly signal: AbortSignal
  /** To be told when the runtime gets the call. */
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

/** How long the runtime may take beyond the timeout to kill the command before its call is given up. */
const killSlackMs = 2_000
/** A runtime that takes the call later than after this part of the timeout leaves too little of it for the command. */
const latestShare = 0.1

/**
 * Runs a command in the container; exit code 0 is success (kubelet pkg/probe/exec/exec.go, 1.36).
 * The timeout is kept here too: a runtime may wait for a grandchild that holds the output open. While the runtime is
 * away, nothing is known of the container, whatever the time.
 */
export function runExecProbe(
  execSync: ExecSync,
  action: NonNullable<Probe['exec']>,
  target: ProbeTarget,
  bounds: ProbeBounds,
): Promise<ProbeOutcome> {
  const { clock, timeoutMs } = bounds
  const environment = new Map(target.env?.map(({ name, value }) => [name, value]))
  const cmd = expandWords(action.command, environment)
  if (cmd === undefined) return Promise.resolve(unknown('the command is larger than a process may have'))
  const giveUp = new AbortController()
  const beganMs = clock.monotonicMs()
  let sentMs = Infinity
  const outOfTime = (): ProbeOutcome =>
    timedOut(
      `command timed out: ${JSON.stringify(cmd.join(' '))} timed out after ${formatDuration(timeoutMs)}`,
    )
  return boundAttempt<ProbeOutcome>(bounds, {
    begin: (settle) => {
      const onSent = (): void => {
        sentMs = clock.monotonicMs()
      }
      execSync({ containerId: target.containerId, cmd, timeoutMs, signal: giveUp.signal, onSent }).then(
        (reply) => settle(reply.timedOut === true ? outOfTime() : judge(reply)),
        (error: unknown) => settle(unknown(errorMessage(error))),
      )
      return () => undefined
    },
    onTimeout: () => {
      if (sentMs === Infinity) {
        giveUp.abort()
        return unknown('the container runtime is away')
      }
      clock.startTimer(killSlackMs, () => giveUp.abort())
      if (sentMs - beganMs > timeoutMs * latestShare)
        return unknown('the container runtime was away when the command was to run')
      return outOfTime()
    },
    onAbort: () => {
      giveUp.abort(bounds.signal.reason)
      return unknown('context canceled')
    },
  })
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
