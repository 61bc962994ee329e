import { expect, it } from 'vitest'
import { JoinedRuns, mapBounded, Semaphore } from '../../../src/base/waits.ts'

it('lets whoever waits leave the queue, and begins none of its work', async () => {
  const turn = new Semaphore(1)
  const begun: string[] = []
  const first = Promise.withResolvers<void>()
  const leaves = new AbortController()
  const work = (name: string, until?: Promise<void>) => async (): Promise<string> => {
    begun.push(name)
    await until
    return name
  }
  const a = turn.run(work('a', first.promise))
  const b = turn.run(work('b'), leaves.signal)
  const c = turn.run(work('c'))
  leaves.abort(new Error('gone'))
  await expect(b).rejects.toThrow('gone')
  first.resolve()
  expect(await Promise.all([a, c])).toEqual(['a', 'c'])
  expect(begun).toEqual(['a', 'c'])
})

it('begins no work for a signal that is aborted as its turn comes, and passes the turn on', async () => {
  const turn = new Semaphore(1)
  const leaves = new AbortController()
  const begun: string[] = []
  const work = (name: string) => async (): Promise<void> => void begun.push(name)
  const a = turn.run(async () => leaves.abort(new Error('gone')))
  const b = turn.run(work('b'), leaves.signal)
  const c = turn.run(work('c'))
  await a
  await expect(b).rejects.toThrow('gone')
  await c
  await expect(turn.run(work('d'), leaves.signal)).rejects.toThrow('gone')
  expect(begun).toEqual(['c'])
})

it('does work for many files for a bounded number at a time, and keeps their order', async () => {
  let now = 0
  let most = 0
  const items = Array.from({ length: 1000 }, (_, index) => index)
  const results = await mapBounded(items, async (item) => {
    now += 1
    most = Math.max(most, now)
    await new Promise((resolve) => void setImmediate(resolve))
    now -= 1
    return item * 2
  })
  expect(most).toBe(32)
  expect(results).toEqual(items.map((item) => item * 2))
  await expect(
    mapBounded(items, async (item) => {
      if (item === 500) throw new Error('gone')
    }),
  ).rejects.toThrow('gone')
  expect(await mapBounded([], async () => 1)).toEqual([])
})

it('runs joined work once for all who ask while it is in flight, after that, and never twice at a time', async () => {
  let made = 0
  let shown = 0
  const ends: (() => void)[] = []
  const runs = new JoinedRuns(async () => {
    const seen = made
    await new Promise<void>((resolve) => ends.push(resolve))
    shown = seen
  })
  const first = runs.run()
  made = 1
  const others = [runs.run(), runs.run()]
  expect(ends).toHaveLength(1)
  ends[0]?.()
  await first
  await expect.poll(() => ends.length).toBe(2)
  made = 2
  const last = runs.run()
  ends[1]?.()
  await Promise.all(others)
  expect(shown).toBe(1)
  await expect.poll(() => ends.length).toBe(3)
  ends[2]?.()
  await last
  expect([shown, ends.length]).toEqual([2, 3])
})

it('runs joined work again after it failed, which is told to those alone who asked for it', async () => {
  let count = 0
  const runs = new JoinedRuns(async () => {
    count += 1
    if (count === 1) throw new Error('no')
  })
  const first = runs.run()
  const second = runs.run()
  await expect(first).rejects.toThrow('no')
  await second
  await runs.run()
  expect(count).toBe(3)
})
