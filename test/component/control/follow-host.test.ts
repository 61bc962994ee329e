import { expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { followAddressJob, followNameJob, podNetworkJob } from '../../../src/control/node/follow-host.ts'
import { ManualClock } from '../../support/manual-clock.ts'

function recorder() {
  const told: string[] = []
  return {
    told,
    events: { recordNode: ({ message }: { readonly message: string }) => void told.push(message) },
  }
}

it('restarts podd once the host has kept a new name for a while, and not for one that passes', async () => {
  const clock = new ManualClock()
  const { told, events } = recorder()
  let name = 'box'
  let isBusy = true
  let restarts = 0
  const job = followNameJob({
    readName: () => name,
    nodeName: 'box',
    isBusy: () => isBusy,
    restart: () => void (restarts += 1),
    events,
    clock,
    logger: silentLogger,
  })
  const look = async (): Promise<number> => {
    await job.run(new AbortController().signal)
    await clock.advance(10_000)
    return restarts
  }
  await look()
  name = 'passing'
  await look()
  name = 'box'
  await look()
  expect(await look()).toBe(0)
  name = 'other'
  await look()
  expect(await look()).toBe(0)
  // A drain is waited for.
  expect(await look()).toBe(0)
  isBusy = false
  expect(await look()).toBe(1)
  expect(told).toHaveLength(2)
  expect(told[1]).toContain('renamed from box to other')
})

it('tells of another address, and has all follow it', async () => {
  const { told, events } = recorder()
  const noticed: string[] = []
  let hostIps = ['192.0.2.1']
  const job = followAddressJob({
    hostIps: () => hostIps,
    workers: () => [],
    onChange: () => void noticed.push('resolver'),
    periodMs: 60_000,
    events,
  })
  expect(job.periodMs).toBe(10_000)
  const look = () => job.run(new AbortController().signal)
  await look()
  await look()
  expect(noticed).toEqual([])
  hostIps = ['198.51.100.7']
  await look()
  await look()
  expect(noticed).toEqual(['resolver'])
  expect(told).toEqual(["The host's address is 198.51.100.7 now; it was 192.0.2.1"])
})

it('checks the network each half minute, some time after a sandbox was made, and rests after a long check for half a minute at most', async () => {
  const clock = new ManualClock()
  const done: number[] = []
  let sandboxes = 0
  let checkMs = 0
  const job = podNetworkJob({
    network: {
      check: async () => {
        done.push(clock.monotonicMs())
        if (checkMs > 0) await clock.sleep(checkMs)
        return true
      },
    },
    sandboxes: () => sandboxes,
    isMaking: () => false,
    periodMs: 60_000,
    clock,
  })
  /** Returns how long it waited before its check, and how long it wants to rest. */
  const run = async () => {
    const beganMs = clock.monotonicMs()
    const running = job.run(new AbortController().signal)
    await clock.advance(2000)
    await clock.advance(checkMs)
    const restMs = await running
    return [(done.at(-1) ?? 0) - beganMs, restMs]
  }
  expect(job.periodMs).toBe(30_000)
  expect(await run()).toEqual([2000, 0])
  expect(await run()).toEqual([0, 0])
  sandboxes = 1
  expect(await run()).toEqual([2000, 0])
  expect(await run()).toEqual([0, 0])
  checkMs = 1500
  expect(await run()).toEqual([0, 30_000])
  checkMs = 6000
  expect(await run()).toEqual([0, 30_000])
  expect(done).toHaveLength(6)
})

it.each([
  ['once for sandboxes that are asked for one after another', 4, ['6000: check']],
  ['now and then where there is no end of them', 15, ['10000: check', '18000: check']],
])('checks %s', async (_, seconds, expected) => {
  const clock = new ManualClock()
  const beganMs = clock.monotonicMs()
  const done: string[] = []
  let sandboxes = 1
  const job = podNetworkJob({
    network: {
      check: async () => done.push(`${clock.monotonicMs() - beganMs}: check`) > 0,
    },
    sandboxes: () => sandboxes,
    isMaking: () => false,
    periodMs: 60_000,
    clock,
  })
  const running = (async () => {
    for (let run = 0; run < 3; run += 1) await job.run(new AbortController().signal)
  })()
  for (let second = 0; second < 30; second += 1) {
    if (second < seconds) sandboxes += 1
    await clock.advance(1000)
  }
  await running
  // A run that nothing was made before checks at once.
  expect([...new Set(done)]).toEqual(expected)
})

it('checks again after a check that may have missed the rules of a sandbox in the making', async () => {
  const clock = new ManualClock()
  const beganMs = clock.monotonicMs()
  const done: number[] = []
  let isMaking = true
  const job = podNetworkJob({
    network: { check: async () => done.push(clock.monotonicMs() - beganMs) > 0 },
    sandboxes: () => 1,
    isMaking: () => isMaking,
    periodMs: 60_000,
    clock,
  })
  const run = async (): Promise<void> => {
    const running = job.run(new AbortController().signal)
    await clock.advance(2000)
    await running
  }
  await run()
  isMaking = false
  await run()
  await run()
  // The third check waits for nothing.
  expect(done).toEqual([2000, 4000, 4000])
})

it('checks again soon where containerd did not run yet', async () => {
  const clock = new ManualClock()
  const beganMs = clock.monotonicMs()
  const done: number[] = []
  let isRunning = false
  const job = podNetworkJob({
    network: { check: async () => done.push(clock.monotonicMs() - beganMs) > 0 && isRunning },
    sandboxes: () => 0,
    isMaking: () => false,
    periodMs: 60_000,
    clock,
  })
  const run = async (): Promise<void> => {
    const running = job.run(new AbortController().signal)
    await clock.advance(2000)
    await running
  }
  await run()
  isRunning = true
  await run()
  await run()
  // The third check waits for nothing.
  expect(done).toEqual([2000, 4000, 4000])
})
