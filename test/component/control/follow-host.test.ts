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

it.each([
  ['each half minute', 60_000, 30_000],
  ['with each sync where that is more often', 10_000, 10_000],
])('checks the pods’ network %s, and when podd starts', (_, syncMs, expected) => {
  const job = podNetworkJob(async () => {}, syncMs)
  expect(job.periodMs).toBe(expected)
  expect(job.runsAtStart).toBe(true)
})
