import { describe, expect, it } from 'vitest'
import type { PodRecord } from '../../../src/pod/state/pod-record.ts'
import { Changes } from '../../../src/base/waits.ts'
import { waitForEnds } from '../../../src/control/desired/end-pods.ts'
import type { EndingWorker } from '../../../src/control/desired/end-pods.ts'
import { ManualClock } from '../../support/manual-clock.ts'

interface Fake extends EndingWorker {
  readonly state: {
    stage: EndingWorker['state']['stage']
    lastError: string | undefined
    record: PodRecord
    isReleased: boolean
  }
}

function endingWorker(graceSeconds: number, lastError?: string): Fake {
  const record = { ending: { graceSeconds } } as PodRecord
  return { state: { stage: 'ending', lastError, record, isReleased: false } }
}

/** Seconds until the wait is over, of 200 at most; `at` is called at each second. */
async function secondsWaited(
  workers: readonly Fake[],
  at: (second: number) => void = () => {},
  runtimeProblem: () => string | undefined = () => undefined,
): Promise<number> {
  const clock = new ManualClock()
  const waiting = { isOver: false }
  const { signal } = new AbortController()
  const changes = new Changes()
  const wait = waitForEnds(workers, { changes, clock, runtimeProblem }, signal).then(() => {
    waiting.isOver = true
  })
  let second = 0
  for (; second < 200 && !waiting.isOver; second++) {
    at(second)
    changes.note()
    await clock.advance(1000)
  }
  await wait
  return second - 1
}

describe('waitForEnds', () => {
  it('is over when all are gone', async () => {
    const worker = endingWorker(30)
    const waited = await secondsWaited([worker], (second) => {
      if (second === 5) worker.state.stage = 'gone'
    })
    expect(waited).toBe(5)
  })

  it.each([
    ['one of which nothing is known to be wrong a minute beyond its grace', 30, undefined, 90],
    ['one that cannot be ended for less', 30, 'device busy', 50],
  ])('waits for %s', async (_title, grace, lastError, expected) => {
    expect(await secondsWaited([endingWorker(grace, lastError)])).toBeCloseTo(expected, -1)
  })

  it('waits less for a runtime that is gone', async () => {
    const waited = await secondsWaited([endingWorker(30)], undefined, () => 'containerd has died')
    expect(waited).toBeCloseTo(50, -1)
  })

  it('waits on as long as one after the other ends', async () => {
    const workers = [1, 2, 3].map(() => endingWorker(0, 'busy'))
    const waited = await secondsWaited(workers, (second) => {
      const worker = workers[second / 15 - 1]
      if (worker !== undefined && second < 45) worker.state.stage = 'gone'
    })
    expect(waited).toBeCloseTo(50, -1)
  })

  it('gives one whose trouble has just begun its time', async () => {
    const worker = endingWorker(0)
    const waited = await secondsWaited([worker], (second) => {
      if (second === 30) worker.state.lastError = 'busy'
    })
    expect(waited).toBeCloseTo(50, -1)
  })
})
