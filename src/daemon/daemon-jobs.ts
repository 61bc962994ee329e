import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { PoddConfig } from '../config/options.ts'
import type { PodAssembly } from '../control/assemble.ts'
import type { NodeJob } from '../control/node/node-jobs.ts'
import { followNameJob } from '../control/node/follow-host.ts'
import { readHostname } from '../host/facts/host-info.ts'
import type { ServiceManager } from '../host/service-manager.ts'
import type { ApiServer } from '../server/api-server.ts'
import { keepSocketJob, keepSocketName } from './keep-socket.ts'
import { openPortJob } from './open-port.ts'
import { memoryJobs, watchSelf } from './watch-self.ts'

export interface DaemonJobsOptions {
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
export function createDaemonJobs(options: DaemonJobsOptions): readonly NodeJob[] {
  const { config, assembly, manager, server, socketPath, restarts, restart, signal, clock, logger } = options
  const { events, pods, hostName } = assembly
  return [
    watchSelf({
      assembly,
      manager,
      memoryLimitBytes: config.daemonMemoryLimitBytes,
      restarts,
      restart: (count) => restart(count, 'podd restarts because it uses too much memory'),
      clock,
      logger,
    }),
    keepSocketJob({
      path: socketPath,
      renew: () => server.renewSocket(),
      wake: () => pods.node.jobs.wake(keepSocketName),
      events,
      logger,
      signal,
    }),
    ...server.ports.map((port) => openPortJob(port, events)),
    ...memoryJobs(clock),
    ...(config.hostnameOverride === undefined
      ? [
          followNameJob({
            readName: readHostname,
            nodeName: hostName,
            isBusy: () => pods.node.drain?.isDraining === true,
            restart: () => restart(restarts, 'podd restarts because the host name changed'),
            events,
            clock,
            logger,
          }),
        ]
      : []),
  ]
}
