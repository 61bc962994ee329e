import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { announceReady } from '../../../src/daemon/run-daemon.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** A service manager that is too busy to take the first messages. */
function busyManager(failures: number) {
  const told: string[] = []
  return {
    told,
    manager: {
      async notify(...assignments: readonly string[]) {
        told.push(assignments.join(' '))
        if (told.length <= failures) throw new Error('Failed to invoke barrier: Connection timed out')
      },
    },
  }
}

describe('podd that is ready', () => {
  it('tells a service manager that is busy until it has taken it, each time what podd waits for then', async () => {
    const clock = new ManualClock()
    const { told, manager } = busyManager(6)
    let tries = 0
    const status = (): string => `STATUS=${(tries += 1)}`
    const done = announceReady({ manager, status, clock, logger: silentLogger }, new AbortController().signal)
    await clock.advance(29_000)
    expect(told.length).toBe(5)
    // The longest delay is a fraction of TimeoutStartSec.
    await clock.advance(16_000)
    await done
    expect(told).toEqual([1, 2, 3, 4, 5, 6, 7].map((at) => `READY=1 STATUS=${at}`))
    expect(clock.pendingTimers).toBe(0)
  })

  it('tells it no more once podd stops', async () => {
    const clock = new ManualClock()
    const { told, manager } = busyManager(Infinity)
    const stop = new AbortController()
    const done = announceReady({ manager, status: () => 'STATUS=', clock, logger: silentLogger }, stop.signal)
    await clock.advance(2000)
    stop.abort(new Error('stopped'))
    await done
    expect(told.length).toBe(2)
    expect(clock.pendingTimers).toBe(0)
  })
})
