import type { Clock } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { ServiceManager } from '../host/service-manager.ts'

export interface ReadyNotice {
  readonly manager: Pick<ServiceManager, 'notify'>
  /** What podd is waiting for at the time of asking, as `STATUS=…`. */
  readonly status: () => string
  readonly clock: Clock
  readonly logger: Logger
}

const firstDelayMs = 1000
const longestDelayMs = 15_000

/**
 * Tells the service manager that podd is ready, until it has taken that: it kills a service whose READY=1 it missed once
 * TimeoutStartSec is over. `systemd-notify` gives up after five seconds on a manager that is busy, as at the boot of a slow
 * board, and a message from a process that has ended is dropped. Never rejects; gives up
 * when the signal is aborted.
 */
export async function announceReady(
  { manager, status, clock, logger }: ReadyNotice,
  signal: AbortSignal,
): Promise<void> {
  let delayMs = firstDelayMs
  while (!signal.aborted) {
    try {
      await manager.notify('READY=1', status())
      return
    } catch (error) {
      logger.warn(
        { reason: errorMessage(error), durationMs: delayMs },
        'cannot tell the service manager that podd is ready, trying again',
      )
    }
    await clock.sleep(delayMs, signal).catch(() => undefined)
    delayMs = Math.min(2 * delayMs, longestDelayMs)
  }
}
