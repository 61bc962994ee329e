import { describe, expect, it } from 'vitest'
import { PoddError } from '../../../src/base/errors.ts'
import { canOpen, keepOpen } from '../../../src/base/keep-open.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** Keeps something open that behaves as told, attempt by attempt, and notes when what happened. */
function keep(open: (attempt: number, opened: () => void, clock: ManualClock) => Promise<void>) {
  const clock = new ManualClock()
  const stop = new AbortController()
  const log: string[] = []
  let attempt = 0
  const note = (what: string): void => void log.push(`${clock.monotonicMs()} ${what}`)
  const ended = keepOpen({
    clock,
    signal: stop.signal,
    open: (opened) => {
      note('try')
      return open((attempt += 1), opened, clock)
    },
    onOpened: () => note('opened'),
    onLost: (reason) => note(`lost: ${reason}`),
    firstDelayMs: 50,
    longestDelayMs: 400,
  })
  return { clock, stop, log, ended }
}

it('tries again at growing intervals, and says once that it is lost', async () => {
  const { clock, stop, log, ended } = keep(() => Promise.reject(new Error('no socket')))
  await clock.advance(1600)
  const tries = ['50 try', '150 try', '350 try', '750 try', '1150 try', '1550 try']
  expect(log).toEqual(['0 try', '0 lost: no socket', ...tries])
  stop.abort()
  await ended
})

it('starts over with short intervals after it was open for long, and not after a flicker', async () => {
  const openMs = [0, 400, 10]
  const { clock, stop, log, ended } = keep(async (attempt, opened, clock) => {
    opened()
    await clock.sleep(openMs[attempt - 1] ?? 10_000)
  })
  await clock.advance(1000)
  expect(log.filter((line) => !line.endsWith('try'))).toEqual([
    '0 opened',
    '0 lost: the other side ended it',
    '50 opened',
    '450 lost: the other side ended it',
    '500 opened',
    '510 lost: the other side ended it',
    '610 opened',
  ])
  stop.abort()
  await clock.advance(10_000)
  await ended
})

it('ends when told, at once also while it waits, and says nothing of that', async () => {
  const { clock, stop, log, ended } = keep(() => Promise.reject(new Error('no socket')))
  await clock.advance(60)
  stop.abort()
  await ended
  expect(log).toEqual(['0 try', '0 lost: no socket', '50 try'])
  expect(clock.pendingTimers).toBe(0)
})

describe('canOpen', () => {
  const ask = (open: (opened: () => void, signal: AbortSignal) => Promise<void>, signal?: AbortSignal) =>
    canOpen(open, { refusal: 'RUNTIME_UNSUPPORTED', signal })
  const untilAborted = (signal: AbortSignal): Promise<void> =>
    new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('let go'))))

  it('says yes once it is open, and lets go of it', async () => {
    let given: AbortSignal | undefined
    const open = async (opened: () => void, signal: AbortSignal): Promise<void> => {
      given = signal
      setTimeout(opened)
      await untilAborted(signal)
    }
    expect(await ask(open)).toBe(true)
    expect(given?.aborted).toBe(true)
  })

  it.each([
    ['ends unopened', () => Promise.resolve()],
    ['is refused', () => Promise.reject(new PoddError('RUNTIME_UNSUPPORTED', 'never heard of'))],
  ])('says no where it %s', async (_, open) => {
    expect(await ask(open)).toBe(false)
  })

  it('rejects where it cannot be known', async () => {
    await expect(ask(() => Promise.reject(new Error('no socket')))).rejects.toThrow('no socket')
    const stop = new AbortController()
    const asked = ask((_, signal) => untilAborted(signal), stop.signal)
    stop.abort()
    await expect(asked).rejects.toThrow('let go')
  })
})
