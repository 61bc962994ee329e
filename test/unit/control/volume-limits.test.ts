import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import { silentLogger } from '../../../src/base/logger.ts'
import type { PodWorker } from '../../../src/control/pod/worker.ts'
import { NodeJobs } from '../../../src/control/node/node-jobs.ts'
import { volumeLimitsJob } from '../../../src/control/node/measure-pods.ts'
import { podFromManifest } from '../../../src/pod/schema/default-pod.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const clock = new ManualClock()

/** A running pod with an emptyDir of 1 MiB at most. */
function fakeWorker(uid: string, ended: string[], resources: JsonObject = {}): PodWorker {
  const pod = podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uid, namespace: 'default' },
    spec: {
      containers: [{ name: 'main', image: 'i:1', resources }],
      volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Mi' } }],
    },
  })
  const worker: Pick<PodWorker, 'ref' | 'evict'> & { state: Partial<PodWorker['state']> } = {
    ref: { uid, name: uid, namespace: 'default' },
    state: { stage: 'active', isOver: false, pod },
    evict: ({ message }) => ended.push(`${uid}: ${message}`) > 0,
  }
  return worker as PodWorker
}

type Measures = Parameters<typeof volumeLimitsJob>[0]

function watchVolumeLimits(
  deps: Omit<Measures, 'measureStorage'> & Partial<Measures>,
  signal: AbortSignal,
): Promise<void> {
  const jobs = new NodeJobs(deps)
  const measureStorage = async () => ({ podBytes: 0, containers: new Map<string, number>() })
  jobs.add(volumeLimitsJob({ measureStorage, ...deps }))
  return jobs.run(signal)
}

describe('the limits of volumes', () => {
  it('looks every ten seconds, and less often where looking takes long', async () => {
    const ended: string[] = []
    const measured: string[] = []
    const workers = [fakeWorker('small', ended), fakeWorker('large', ended)]
    const stop = new AbortController()
    const watching = watchVolumeLimits(
      {
        workers: () => workers,
        measure: async (uid) => {
          measured.push(uid)
          if (uid === 'large') await clock.sleep(3000)
          return 1 << 20
        },
        clock,
        logger: silentLogger,
      },
      stop.signal,
    )
    await clock.advance(130_000)
    const counts = (uid: string): number => measured.filter((each) => each === uid).length
    // The round that measures the large one takes 3 s, and 12 s of rest after it.
    expect(counts('small')).toBe(12)
    // 3 s each: every 63 s, at the next round.
    expect(counts('large')).toBe(2)
    expect(ended).toEqual([])
    stop.abort()
    await watching
  })

  it('takes a fifth of the time at most, however many pods there are', async () => {
    const ended: string[] = []
    const workers = Array.from({ length: 30 }, (_, index) => fakeWorker(`p${index}`, ended))
    const stop = new AbortController()
    let busyMs = 0
    const measure = async (): Promise<number> => {
      await clock.sleep(2000)
      busyMs += 2000
      return 0
    }
    const deps = { workers: () => workers, measure, clock, logger: silentLogger }
    const watching = watchVolumeLimits(deps, stop.signal)
    await clock.advance(3_000_000)
    expect(busyMs).toBeGreaterThan(500_000)
    expect(busyMs).toBeLessThan(700_000)
    stop.abort()
    await clock.advance(100_000)
    await watching
  })

  it('ends the pod that has too much, and goes on where one can’t be measured', async () => {
    const ended: string[] = []
    const workers = [fakeWorker('gone', ended), fakeWorker('greedy', ended)]
    const stop = new AbortController()
    const measure = async (uid: string): Promise<number> => {
      if (uid === 'gone') throw new Error('no such directory')
      return (1 << 20) + 1
    }
    const deps = { workers: () => workers, measure, clock, logger: silentLogger }
    const watching = watchVolumeLimits(deps, stop.signal)
    await clock.advance(10_000)
    expect(ended).toEqual(['greedy: Usage of EmptyDir volume "v" exceeds the limit "1Mi". '])
    stop.abort()
    await watching
  })

  // id: ends-over-storage-limit
  it('ends the pod that takes more of the disk than it may, and measures no other', async () => {
    const ended: string[] = []
    const measured: string[] = []
    const limited = fakeWorker('limited', ended, { limits: { 'ephemeral-storage': '1Mi' } })
    const workers = [fakeWorker('free', ended), limited]
    const stop = new AbortController()
    const measureStorage = async ({ ref }: PodWorker) => {
      measured.push(ref.uid)
      return { podBytes: 2 << 20, containers: new Map() }
    }
    const deps = {
      workers: () => workers,
      measure: async () => 0,
      measureStorage,
      clock,
      logger: silentLogger,
    }
    const watching = watchVolumeLimits(deps, stop.signal)
    await clock.advance(10_000)
    expect(measured).toEqual(['limited'])
    expect(ended).toEqual([
      'limited: Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ',
    ])
    stop.abort()
    await watching
  })
})
