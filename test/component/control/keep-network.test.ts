import { expect, it } from 'vitest'
import { podNetworkJob } from '../../../src/control/node/keep-network.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('glances each ten seconds, checks each period and after a sandbox was asked for, and rests after a long look', async () => {
  const clock = new ManualClock()
  const done: string[] = []
  let sandboxes = 0
  let glanceMs = 0
  const job = podNetworkJob({
    network: {
      check: async () => done.push('check') > 0,
      glance: async () => {
        done.push('glance')
        if (glanceMs > 0) await clock.sleep(glanceMs)
      },
    },
    sandboxes: () => sandboxes,
    isMaking: () => false,
    periodMs: 60_000,
    clock,
  })
  const run = async (): Promise<number | void> => {
    const running = job.run(new AbortController().signal)
    await clock.advance(glanceMs === 0 ? 2000 : glanceMs)
    return running
  }
  expect(job.periodMs).toBe(10_000)
  await run()
  await run()
  expect(done.splice(0)).toEqual(['check', 'glance'])
  sandboxes = 1
  await run()
  await run()
  expect(done.splice(0)).toEqual(['check', 'glance'])
  await clock.advance(60_000)
  await run()
  expect(done.splice(0)).toEqual(['check'])
  glanceMs = 1500
  expect(await run()).toBe(30_000)
})

it('looks again for a sandbox that was asked for while it waited for another', async () => {
  const clock = new ManualClock()
  const done: string[] = []
  let sandboxes = 1
  const job = podNetworkJob({
    network: { check: async () => done.push('check') > 0, glance: async () => void done.push('glance') },
    sandboxes: () => sandboxes,
    isMaking: () => false,
    periodMs: 60_000,
    clock,
  })
  const first = job.run(new AbortController().signal)
  sandboxes = 2
  await clock.advance(2000)
  await first
  const second = job.run(new AbortController().signal)
  await clock.advance(2000)
  await second
  expect(done).toEqual(['check', 'check'])
})

it('checks again after a check that may have missed the rules of a sandbox in the making', async () => {
  const clock = new ManualClock()
  const done: string[] = []
  let isMaking = true
  const job = podNetworkJob({
    network: { check: async () => done.push('check') > 0, glance: async () => void done.push('glance') },
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
  expect(done).toEqual(['check', 'check', 'glance'])
})

it('checks again soon where containerd did not run yet', async () => {
  const clock = new ManualClock()
  const done: string[] = []
  let isRunning = false
  const job = podNetworkJob({
    network: {
      check: async () => done.push('check') > 0 && isRunning,
      glance: async () => void done.push('glance'),
    },
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
  expect(done).toEqual(['check', 'check', 'glance'])
})
