import { existsSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { listenJobs } from '../api/routes.ts'
import { makeDirectory } from '../base/atomic-file.ts'
import type { Clock } from '../base/clock.ts'
import { errorCode, errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { formatAddress } from '../config/api-options.ts'
import type { PoddConfig } from '../config/options.ts'
import type { PodAssembly } from '../control/assemble.ts'
import { followNameJob } from '../control/node/follow-host.ts'
import type { NodeJob } from '../control/node/node-jobs.ts'
import type { UsageSource } from '../control/serving/usage-history.ts'
import { judgeHealth } from '../decide/node/judge-health.ts'
import { readHostname } from '../host/facts/host-info.ts'
import type { ServiceManager } from '../host/service-manager.ts'
import { watchNames } from '../host/watch-names.ts'
import type { NodeEventRecorder } from '../pod/state/pod-event.ts'
import type { ApiServer } from '../server/api-server.ts'
import type { ServedPort } from '../server/http/listen.ts'
import type { PageReader } from '../server/requests/readers.ts'
import { followProgramJob, memoryJobs, selfCheckJob, serviceStatus } from './watch-self.ts'

/** The process that podd is. */
interface OwnProcess {
  readonly config: Pick<PoddConfig, 'daemonMemoryLimitBytes' | 'hostnameOverride'>
  readonly assembly: PodAssembly
  /** Undefined where podd runs without one. */
  readonly manager: ServiceManager | undefined
  readonly server: Pick<ApiServer, 'renewSocket' | 'ports'>
  readonly socketPath: string
  /** How many restarts for its memory led to this podd, one after the other. */
  readonly restarts: number
  /** Restarts podd; the pods keep running. `restarts` is what the next podd is told. */
  readonly restart: (restarts: number, reason: string) => void
  /** Aborted when podd stops. */
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly logger: Logger
}

/** The node jobs about podd itself: its health and memory, its socket and ports, the node's name that it goes by. */
export function createDaemonJobs(own: OwnProcess): readonly NodeJob[] {
  const { config, assembly, manager, server, socketPath, restarts, restart, signal, clock, logger } = own
  const { events, pods, hostName } = assembly
  return [
    selfCheckJob({
      checks: () => judgeHealth(pods.healthFacts),
      watchdog:
        manager?.watchdogMs === undefined
          ? undefined
          : {
              periodMs: manager.watchdogMs,
              feed: () => manager.notify('WATCHDOG=1', serviceStatus(assembly)),
            },
      memory: {
        residentBytes: () => process.memoryUsage.rss(),
        limitBytes: config.daemonMemoryLimitBytes,
        restarts,
        isBusy: () => pods.node.drain.isDraining,
        restart: (count) => restart(count, 'podd restarts because it uses too much memory'),
      },
      events,
      clock,
      logger,
    }),
    keepSocketJob({
      path: socketPath,
      renew: () => server.renewSocket(),
      wake: () => pods.node.jobs.wake('keep-socket'),
      events,
      logger,
      signal,
    }),
    ...server.ports.map((port) => openPortJob(port, events)),
    ...memoryJobs(clock),
    followProgramJob({
      path: process.argv[1] ?? '',
      isBusy: () => pods.node.drain.isDraining,
      restart: () => restart(restarts, 'podd restarts because its program was replaced'),
      events,
      logger,
    }),
    ...(config.hostnameOverride === undefined
      ? [
          followNameJob({
            readName: readHostname,
            nodeName: hostName,
            isBusy: () => pods.node.drain.isDraining,
            restart: () => restart(restarts, 'podd restarts because the host name changed'),
            events,
            clock,
            logger,
          }),
        ]
      : []),
  ]
}

/** Covers changes without an event: another file system was mounted over the directory. */
const periodMs = 60_000

const deadlineMs = 30_000

/**
 * Recreates the API's socket where it was removed or replaced, as soon as the directory's watch reports it. Its
 * directory is recreated too.
 */
export function keepSocketJob(options: {
  readonly path: string
  /** Listens at the path again where its file is gone or was replaced; resolves with whether it was. */
  readonly renew: () => Promise<boolean>
  readonly wake: () => void
  readonly events: NodeEventRecorder
  readonly logger: Logger
  /** Ends the watch of the directory. */
  readonly signal: AbortSignal
}): NodeJob {
  const { path, renew, wake, events, logger, signal } = options
  const directory = dirname(path)
  let watching: AbortController | undefined

  /** Watches the current directory: the earlier one may have been removed. */
  function follow(): void {
    watching?.abort()
    watching = new AbortController()
    watchNames([path, directory], wake, AbortSignal.any([signal, watching.signal]))
  }

  return {
    name: 'keep-socket',
    periodMs,
    deadlineMs,
    runsAtStart: true,
    async run() {
      await makeDirectory(directory, 0o711)
      const isRenewed = await renew()
      if (isRenewed || watching === undefined) {
        follow()
        // It may have been removed before the watch began.
        await renew()
      }
      if (!isRenewed) return
      const message = `The API socket ${path} was removed or replaced from outside podd, and podd listens there again`
      events.recordNode({ type: 'Warning', reason: 'ApiSocketRestored', message })
      logger.warn({ path }, 'restored the API socket')
    },
  }
}

/** The time between two attempts, and how long one may take. */
const portPeriodMs = 10_000

/**
 * Listens at a port at which podd could not when it started: another process had it, or its address was not assigned yet,
 * such as a VPN's. It does not run again once podd listens.
 */
export function openPortJob(port: ServedPort, events: NodeEventRecorder): NodeJob {
  const { option, address } = port
  /** Why it failed, as the last event says. */
  let told: string | undefined
  return {
    name: listenJobs[option],
    periodMs: portPeriodMs,
    deadlineMs: portPeriodMs,
    runsAtStart: true,
    async run() {
      try {
        await port.open()
      } catch (error) {
        const message = `${option}: ${errorMessage(error)}; podd keeps trying`
        if (message !== told) events.recordNode({ type: 'Warning', reason: 'ListenFailed', message })
        told = message
        throw error
      }
      if (told !== undefined) {
        const message = `${option}: podd listens at ${formatAddress(address)} now`
        events.recordNode({ type: 'Normal', reason: 'Listening', message })
      }
      return Infinity
    },
  }
}

/** Begins to measure the usage that the status page shows. Its code is loaded only where there is a page. */
export async function openPage(
  { pods }: Pick<PodAssembly, 'pods'>,
  source: UsageSource,
): Promise<PageReader> {
  const { UsageHistory } = await import('../control/serving/usage-history.ts')
  const history = new UsageHistory({
    // The unavailable runtime is reported elsewhere; the charts have a gap.
    usage: (signal) =>
      source.usage(signal).catch((error: unknown) => {
        if (errorCode(error) === 'RUNTIME_UNAVAILABLE') return []
        throw error
      }),
    nodeUsage: (signal) => source.nodeUsage(signal),
  })
  pods.node.jobs.add(history.job())
  return { directory: pageDirectory(), usage: () => history.reply() }
}

/** The page's directory: beside the bundled main.js, or in the build of a checkout. */
function pageDirectory(): string {
  const bundled = fileURLToPath(new URL('page', import.meta.url))
  return existsSync(bundled) ? bundled : fileURLToPath(new URL('../../dist/page', import.meta.url))
}
