import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import type { PodWorker } from '../../../src/control/pod-worker.ts'
import { watchVolumeLimits } from '../../../src/control/volume-limits.ts'
import { podFromManifest } from '../../../src/pod/pod-from-manifest.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const clock = new ManualClock()

/** A running pod with an emptyDir of 1 MiB at most. */
function fakeWorker(uid: string, ended: string[]): PodWorker {
  const pod = podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: uid, namespace: 'default' },
    spec: {
      containers: [{ name: 'main', image: 'i:1' }],
      volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Mi' } }],
    },
  })
  const worker: Pick<PodWorker, 'ref' | 'end'> & { state: Partial<PodWorker['state']> } = {
    ref: { uid, name: uid, namespace: 'default' },
    state: { stage: 'active', isOver: false, pod },
    end: ({ message }) => void ended.push(`${uid}: ${message}`),
  }
  return worker as PodWorker
}

describe('watchVolumeLimits', () => {
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
    expect(counts('small')).toBe(12)
    // 3 s each: every 63 s, at the next round.
    expect(counts('large')).toBe(2)
    expect(ended).toEqual([])
    stop.abort()
    await watching
  })

  it('ends the pod that has too much, and goes on where one can’t be measured', async () => {
    const ended: string[] = []
    const workers = [fakeWorker('gone', ended), fakeWorker('greedy', ended)]
    const stop = new AbortController()
    const measure = async (uid: string): Promise<number> => {
      if (uid === 'gone') throw new Error('no such folder')
      return (1 << 20) + 1
    }
    const deps = { workers: () => workers, measure, clock, logger: silentLogger }
    const watching = watchVolumeLimits(deps, stop.signal)
    await clock.advance(10_000)
    expect(ended).toEqual(['greedy: Usage of EmptyDir volume "v" exceeds the limit "1Mi". '])
    stop.abort()
    await watching
  })
})
