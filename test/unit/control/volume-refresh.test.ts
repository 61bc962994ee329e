import { describe, expect, it } from 'vitest'
import { VolumeRefresh } from '../../../src/control/pod/live-pass.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** A pod's passes: each runs the refresh; the refresh wakes the next. */
function passes(prepare: () => Promise<void>, begins: 'no' | 'refresh' = 'refresh') {
  const clock = new ManualClock()
  const failures: unknown[] = []
  let tries = 0
  const run = (): Promise<void> =>
    refresh
      .run(() => {
        tries += 1
        return prepare()
      })
      .catch((error: unknown) => void failures.push(error))
  const refresh = new VolumeRefresh(clock, () => void run(), begins)
  return { clock, refresh, run, failures, tries: () => tries }
}

describe('VolumeRefresh', () => {
  it('runs once, tidies up behind it, and rests until something changes', async () => {
    const { clock, refresh, run, tries } = passes(async () => {})
    await run()
    await run()
    expect(tries()).toBe(1)
    await clock.advance(2000)
    expect(tries()).toBe(2)
    await clock.advance(600_000)
    expect(tries()).toBe(2)
    refresh.mark()
    await run()
    expect(tries()).toBe(3)
  })

  it('leaves the files of a new pod alone until something changes', async () => {
    const { clock, refresh, run, tries } = passes(async () => {}, 'no')
    await run()
    await clock.advance(600_000)
    expect(tries()).toBe(0)
    refresh.mark()
    await run()
    await clock.advance(600_000)
    expect(tries()).toBe(2)
  })

  it('tries again after a failure, more and more seldom, and until it holds', async () => {
    let isFull = true
    const { clock, run, failures, tries } = passes(async () => {
      if (isFull) throw new Error('no space left on device')
    })
    await run()
    // Passes that something else asks for don't try meanwhile.
    await run()
    expect(tries()).toBe(1)
    await clock.advance(10_000)
    expect(tries()).toBe(2)
    await clock.advance(19_000)
    expect(tries()).toBe(2)
    await clock.advance(1000)
    expect(tries()).toBe(3)
    await clock.advance(600_000)
    expect(tries()).toBe(3 + 1 + 1 + 4)
    expect(failures).toHaveLength(tries())
    isFull = false
    await clock.advance(120_000)
    expect(failures).toHaveLength(tries() - 1)
    const held = tries()
    await clock.advance(600_000)
    // What is left over is tidied away, once.
    expect(tries()).toBeLessThanOrEqual(held + 1)
    expect(failures.length).toBeLessThan(tries())
  })

  it('wakes nobody once it was stopped', async () => {
    const { clock, refresh, run, tries } = passes(() => Promise.reject(new Error('no')))
    await run()
    refresh.stop()
    await clock.advance(600_000)
    expect(tries()).toBe(1)
  })
})
