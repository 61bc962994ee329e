import type { Clock } from '../../base/clock.ts'
import { formatBytes } from '../../base/text.ts'
import type { Logger } from '../../base/logger.ts'
import type { HealthCheck } from '../../decide/node/judge-health.ts'
import { countRestarts, judgeMemory } from '../../decide/node/judge-health.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { NodeJob } from './node-jobs.ts'

export interface SelfCheckOptions {
  readonly checks: () => readonly HealthCheck[]
  /** Left out, no watchdog expects keep-alives. */
  readonly watchdog?: {
    /** The watchdog's interval. */
    readonly periodMs: number
    /** Sends a keep-alive; throws where that failed. */
    readonly feed: () => Promise<void>
  }
  readonly memory: {
    readonly residentBytes: () => number
    /** Below 0 for none. */
    readonly limitBytes: number
    /** How many restarts for this reason led to this process, one after the other. */
    readonly restarts: number
    /** A restart now would interrupt podd's work, such as a drain. */
    readonly isBusy: () => boolean
    /** Restarts podd while the pods keep running; the count is for the new process. */
    readonly restart: (restarts: number) => void
  }
  readonly events: NodeEventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

const usualPeriodMs = 60_000

/**
 * Checks podd itself: a failing check is logged and stops the watchdog's keep-alives, and too much memory restarts
 * podd. It runs twice as often as keep-alives are needed, so that one failed run after a short block causes no restart.
 */
export function selfCheckJob(options: SelfCheckOptions): NodeJob {
  const { checks, watchdog, memory, events, clock, logger } = options
  const periodMs = watchdog === undefined ? usualPeriodMs : watchdog.periodMs / 4
  const startedAtMs = clock.monotonicMs()
  let fedAtMs = -Infinity
  let known = ''
  let samplesAbove = 0

  function findFailure(): string {
    const failures = checks().filter(({ about, failure }) => about === 'live' && failure !== undefined)
    const names = failures.map(({ name }) => name).join(', ')
    if (names !== known) {
      const reason = failures.map(({ name, failure }) => `${name}: ${failure}`).join('; ')
      if (names === '') logger.info({}, 'the self-check passes again')
      else logger.error({ reason }, 'the self-check fails')
    }
    known = names
    return names
  }

  function watchMemory(): void {
    const { limitBytes, restarts, isBusy } = memory
    const residentBytes = memory.residentBytes()
    const uptimeMs = clock.monotonicMs() - startedAtMs
    const facts = { residentBytes, limitBytes, samplesAbove, uptimeMs, restarts, isBusy: isBusy() }
    const verdict = judgeMemory(facts)
    samplesAbove = verdict.samplesAbove
    if (!verdict.restarts) return
    samplesAbove = 0
    const message = `podd takes ${formatBytes(residentBytes)} of memory, more than daemonMemoryLimit (${formatBytes(limitBytes)}): it restarts itself, and the pods keep running`
    events.recordNode({ type: 'Warning', reason: 'DaemonMemoryLimit', message })
    logger.warn({ reason: message }, 'restarting podd for the memory it takes')
    memory.restart(countRestarts(facts))
  }

  return {
    name: 'self-check',
    periodMs,
    deadlineMs: 30_000,
    async run() {
      watchMemory()
      if (findFailure() !== '' || watchdog === undefined) return
      // Timers may fire a little early; half the interval is required.
      const nowMs = clock.monotonicMs()
      if (nowMs - fedAtMs < watchdog.periodMs / 2 - periodMs / 2) return
      await watchdog.feed()
      fedAtMs = nowMs
    },
  }
}
