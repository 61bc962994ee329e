import { readFileSync, statSync } from 'node:fs'
import type { Clock } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { formatBytes } from '../base/text.ts'
import type { PodAssembly } from '../control/assemble.ts'
import type { NodeJob } from '../control/node/node-jobs.ts'
import { countRestarts, judgeCollection, judgeHealth, judgeMemory } from '../decide/node/judge-health.ts'
import type { HealthCheck } from '../decide/node/judge-health.ts'
import type { ServiceManager } from '../host/service-manager.ts'
import { fingerprintOf } from '../sources/read-manifest-file.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'

/** None where V8 runs without `--expose-gc`. */
export function memoryJobs(clock: Clock): readonly NodeJob[] {
  const collect = globalThis.gc
  if (collect === undefined) return []
  const cpuMs = (): number => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
  // `last-resort` compacts the heap, and drops compiled code that is no longer used.
  const collectAll = () => collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
  return [collectMemoryJob(cpuMs, collectAll, clock)]
}

/** What `systemctl status` shows of podd: how many pods there are, and what podd waits for. */
export function serviceStatus({ pods }: Pick<PodAssembly, 'pods'>): string {
  const count = pods.allPods().length
  const running = `${count} ${count === 1 ? 'pod' : 'pods'}`
  const draining = pods.node.drain.isDraining ? '; the host is drained' : ''
  const problem = pods.runtimeProblem === undefined ? '' : `; ${pods.runtimeProblem}`
  return `STATUS=${running}${draining}${problem}`
}

/** podd's state in a crash report. */
export function describeSelf(pods: PodAssembly['pods']): Readonly<Record<string, unknown>> {
  const { runtimeProblem, healthFacts, node } = pods
  return {
    pods: pods.allPods().length,
    ...(runtimeProblem !== undefined && { runtimeProblem }),
    failingChecks: judgeHealth(healthFacts).flatMap(({ name, failure }) =>
      failure === undefined ? [] : [`${name}: ${failure}`],
    ),
    runningJobs: node.jobs.reports().flatMap(({ name, running }) => (running ? [name] : [])),
  }
}

/** Notifies the service manager, where there is one. Never throws: podd runs without it too. */
export async function tellManager(
  manager: ServiceManager | undefined,
  logger: Logger,
  ...assignments: readonly string[]
): Promise<void> {
  try {
    await manager?.notify(...assignments)
  } catch (error) {
    logger.error({ reason: errorMessage(error) }, 'cannot tell the service manager how podd is')
  }
}

/** What podd is checked by, and whom it tells. */
interface SelfCheck {
  readonly checks: () => readonly HealthCheck[]
  /** Sends keep-alives, and throws where that failed; undefined where no watchdog expects any. */
  readonly watchdog: { readonly periodMs: number; readonly feed: () => Promise<void> } | undefined
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
export function selfCheckJob({ checks, watchdog, memory, events, clock, logger }: SelfCheck): NodeJob {
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

/** The program on the disk, without its parts: it names them by what is in them. */
interface Program {
  /** Its fingerprint. */
  readonly stamp: string
  readonly text: string
}

/** Undefined where it can't be read. */
function readProgram(path: string, known?: Program): Program | undefined {
  try {
    const stamp = fingerprintOf(statSync(path, { bigint: true }))
    return known?.stamp === stamp ? known : { stamp, text: readFileSync(path, 'utf8') }
  } catch {
    // It is being replaced, or was removed: the next look tells.
    return undefined
  }
}

/**
 * Restarts podd where another version took the place of its program, and nobody restarted it within a minute or two: a
 * part that wasn't needed so far is gone then, or doesn't fit.
 */
export function followProgramJob(options: {
  readonly path: string
  /** A restart now would interrupt podd's work, such as a drain. */
  readonly isBusy: () => boolean
  readonly restart: () => void
  readonly events: NodeEventRecorder
  readonly logger: Logger
}): NodeJob {
  const { path, isBusy, restart, events, logger } = options
  const own = readProgram(path)
  let seen = own
  return {
    name: 'follow-program',
    periodMs: usualPeriodMs,
    deadlineMs: usualPeriodMs,
    async run() {
      const before = seen
      seen = readProgram(path, before)
      if (own === undefined || seen === undefined || seen.text === own.text) return
      if (seen.text !== before?.text) {
        const message = `podd's program was replaced by another version: podd restarts itself to run that, and the pods keep running`
        events.recordNode({ type: 'Normal', reason: 'ProgramReplaced', message })
        logger.warn({ path }, "podd's program was replaced by another version")
      } else if (!isBusy()) restart()
    },
  }
}

const periodMs = 10_000

/**
 * Releases V8's memory after a busy period.
 * @param cpuMs the CPU time of podd's threads so far
 * @param collect collects all garbage; blocks podd for some 50 ms
 */
export function collectMemoryJob(cpuMs: () => number, collect: () => void, clock: Clock): NodeJob {
  let seen = { cpuMs: 0, atMs: clock.monotonicMs() }
  let quietLooks = 0
  return {
    name: 'collect-memory',
    periodMs,
    deadlineMs: periodMs,
    async run() {
      const now = { cpuMs: cpuMs(), atMs: clock.monotonicMs() }
      const verdict = judgeCollection({
        cpuMs: now.cpuMs - seen.cpuMs,
        sinceMs: now.atMs - seen.atMs,
        quietLooks,
      })
      quietLooks = verdict.quietLooks
      if (verdict.collects) collect()
      seen = { ...now, cpuMs: cpuMs() }
    },
  }
}
