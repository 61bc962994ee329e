import { expect, it } from 'vitest'
import type { PodObject } from '../../../src/api/resource.ts'
import { PodCounters } from '../../../src/control/serving/pod-counters.ts'
import { createShown } from '../../../src/control/serving/resource-store.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { containerStatus, podObject } from '../../support/pod-objects.ts'

const startedMs = Date.UTC(2026, 0, 1, 0, 0, 30, 500)

function counted() {
  const clock = new ManualClock(startedMs)
  const { pods } = createShown(startedMs)
  const counters = new PodCounters(clock)
  counters.follow(pods)
  return { clock, pods, counters }
}

function ended(finishedAt: string, exitCode = 1): PodObject {
  const terminated = { exitCode, reason: 'Error', finishedAt }
  return podObject({
    name: 'web',
    status: { containerStatuses: [containerStatus('main', { state: { terminated } })] },
  })
}

it('counts each end of a container once, from the start of podd on', () => {
  const { pods, counters } = counted()
  const running = podObject({
    name: 'web',
    status: { containerStatuses: [containerStatus('main', { state: { running: {} } })] },
  })
  pods.put('uid-web', ended('2026-01-01T00:00:29Z'))
  expect(counters.counts().terminations).toEqual([])
  for (const object of [running, ended('2026-01-01T00:00:30Z'), ended('2026-01-01T00:00:30Z')])
    pods.put('uid-web', object)
  pods.put('uid-web', running)
  pods.put('uid-web', ended('2026-01-01T00:00:40Z'))
  pods.put('uid-web', running)
  pods.put('uid-web', ended('2026-01-01T00:00:50Z', 139))
  expect(counters.counts().terminations).toEqual([
    { type: 'container', exitCode: 1, reason: 'Error', count: 2 },
    { type: 'container', exitCode: 139, reason: 'Error', count: 1 },
  ])
})

it('measures how long new pods take to run, once each, and not those of an earlier podd', async () => {
  const { clock, pods, counters } = counted()
  const show = (name: string, phase: 'Pending' | 'Running' | 'Failed', creationTimestamp: string): void => {
    pods.put(`uid-${name}`, podObject({ name, metadata: { creationTimestamp }, status: { phase } }))
  }
  show('old', 'Pending', '2026-01-01T00:00:29Z')
  show('new', 'Pending', '2026-01-01T00:00:30Z')
  show('bad', 'Pending', '2026-01-01T00:00:30Z')
  show('gone', 'Pending', '2026-01-01T00:00:30Z')
  await clock.advance(2500)
  show('old', 'Running', '2026-01-01T00:00:29Z')
  show('new', 'Running', '2026-01-01T00:00:30Z')
  show('bad', 'Failed', '2026-01-01T00:00:30Z')
  pods.remove('uid-gone')
  await clock.advance(2500)
  show('new', 'Running', '2026-01-01T00:00:30Z')
  const { buckets, count, sum } = counters.counts().podStarts
  expect([count, sum]).toEqual([1, 2.5])
  expect(buckets.find((bucket) => bucket.count > 0)).toEqual({ bound: 3, count: 1 })
})

it('counts passes by what they were for, with a bucket for each bound and those below it', async () => {
  const { clock, counters } = counted()
  for (const [kind, ms] of [
    ['create', 30],
    ['sync', 5],
    ['sync', 60_000],
  ] as const) {
    const sinceMs = clock.monotonicMs()
    await clock.advance(ms)
    counters.notePass(kind, sinceMs)
  }
  const [create, sync] = counters.counts().passes
  expect(create).toMatchObject({ kind: 'create', durations: { count: 1, sum: 0.03 } })
  expect(sync).toMatchObject({ kind: 'sync', durations: { count: 2, sum: 60.005 } })
  // What takes longer than every bound is in none of their buckets.
  expect(sync?.durations.buckets.map(({ count }) => count)).toEqual(Array.from({ length: 11 }, () => 1))
})
