import { type Clock, sleepUnlessAborted } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import type { ServiceManager } from '../host/service-manager.ts'

export interface ReadyNotice {
  readonly manager: Pick<ServiceManager, 'notify'>
  /** What podd is currently waiting for, as `STATUS=…`. */
  readonly status: () => string
  readonly clock: Clock
  readonly logger: Logger
}

const firstDelayMs = 1000
const longestDelayMs = 15_000

/**
 * Notifies the service manager that podd is ready, and retries until it has received that: it kills a service without
 * READY=1 after TimeoutStartSec. `systemd-notify` gives up after five seconds on a busy manager, as during the boot of
 * a slow board, and a message from a process that has exited is dropped. Never rejects; gives up when the signal is
 * aborted.
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
    await sleepUnlessAborted(clock, delayMs, signal)
    delayMs = Math.min(2 * delayMs, longestDelayMs)
  }
}
