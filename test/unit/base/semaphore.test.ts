import { expect, it } from 'vitest'
import { mapBounded, Semaphore } from '../../../src/base/waits.ts'

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
