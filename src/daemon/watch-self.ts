import type { Clock } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { PodAssembly } from '../control/assemble.ts'
import { collectMemoryJob } from '../control/node/collect-memory.ts'
import { selfCheckJob } from '../control/node/self-check.ts'
import type { NodeJob } from '../control/node/node-jobs.ts'
import { judgeHealth } from '../decide/node/judge-health.ts'
import type { ServiceManager } from '../host/service-manager.ts'

export interface SelfWatchOptions {
  readonly assembly: Pick<PodAssembly, 'pods' | 'events'>
  /** Undefined without a service manager. */
  readonly manager: ServiceManager | undefined
  readonly memoryLimitBytes: number
  /** How many restarts for its memory led to this podd, one after the other. */
  readonly restarts: number
  /** Restarts podd; the pods keep running. */
  readonly restart: (restarts: number) => void
  readonly clock: Clock
  readonly logger: Logger
}

/** podd's check of itself, as a job of the node, which tells the service manager that podd is alive. */
export function watchSelf(options: SelfWatchOptions): NodeJob {
  const { assembly, manager, memoryLimitBytes, restarts, restart, clock, logger } = options
  const { pods, events } = assembly
  return selfCheckJob({
    checks: () => judgeHealth(pods.healthFacts),
    ...(manager?.watchdogMs === undefined
      ? {}
      : {
          watchdog: {
            periodMs: manager.watchdogMs,
            feed: () => manager.notify('WATCHDOG=1', serviceStatus(assembly)),
          },
        }),
    memory: {
      residentBytes: () => process.memoryUsage.rss(),
      limitBytes: memoryLimitBytes,
      restarts,
      isBusy: () => pods.node.drain?.isDraining === true,
      restart,
    },
    events,
    clock,
    logger,
  })
}

/** None where V8 runs without `--expose-gc`. */
export function memoryJobs(clock: Clock): readonly NodeJob[] {
  const collect = globalThis.gc
  if (collect === undefined) return []
  const cpuMs = (): number => {
    const { user, system } = process.cpuUsage()
    return (user + system) / 1000
  }
  // `last-resort` compacts the heap, and drops compiled code that is no longer used.
  return [
    collectMemoryJob({
      cpuMs,
      collect: () => collect({ type: 'major', execution: 'sync', flavor: 'last-resort' }),
      clock,
    }),
  ]
}

/** What `systemctl status` shows of podd: how many pods there are, and what podd waits for. */
export function serviceStatus({ pods }: Pick<PodAssembly, 'pods'>): string {
  const count = pods.allPods().length
  const running = `${count} ${count === 1 ? 'pod' : 'pods'}`
  const draining = pods.node.drain?.isDraining === true ? '; the host is drained' : ''
  const problem = pods.runtimeProblem === undefined ? '' : `; ${pods.runtimeProblem}`
  return `STATUS=${running}${draining}${problem}`
}

/** podd's state in a crash report. */
export function describeSelf(pods: PodAssembly['pods']): Readonly<Record<string, unknown>> {
  const { runtimeProblem, healthFacts, node } = pods
  return {
    pods: pods.allPods().length,
    ...(runtimeProblem === undefined ? {} : { runtimeProblem }),
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
