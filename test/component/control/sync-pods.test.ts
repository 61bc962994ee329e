import { describe, expect, it } from 'vitest'
import { plainCgroups } from '../../support/plain-pod-host.ts'
import { PodRig, podManifest } from './pod-rig.ts'

/** podd whose pods lose their cgroups as told. */
async function rigWith(...manifests: readonly ReturnType<typeof podManifest>[]) {
  const rig = new PodRig()
  const removed = new Set<string>()
  const asked: { uid: string; atMs: number }[] = []
  rig.host = {
    cgroups: {
      ...plainCgroups,
      ensure: async (uid) => {
        removed.delete(uid)
        return `/kubepods/pod${uid}`
      },
      isRemoved: async (uid) => {
        asked.push({ uid, atMs: rig.clock.monotonicMs() })
        return removed.has(uid)
      },
    },
  }
  await rig.start()
  await rig.apply(...manifests)
  await rig.clock.advance(1000)
  const remove = (name: string): void => void removed.add(rig.pod(name).metadata.uid)
  return { rig, remove, asked }
}

const withTwo = (restartPolicy: string) =>
  podManifest('web', {
    restartPolicy,
    initContainers: [{ name: 'init', image: 'app:1' }],
    containers: [
      { name: 'main', image: 'app:1' },
      { name: 'side', image: 'side:1' },
    ],
  })

describe('the records of pods', () => {
  it('are written again within a period where somebody has removed them, and none of a pod that is gone', async () => {
    const rig = new PodRig()
    await rig.start()
    await rig.apply(
      podManifest('runs'),
      podManifest('done', { restartPolicy: 'Never', containers: [{ name: 'job', image: 'app:1' }] }),
      podManifest('waits', { containers: [{ name: 'main', image: 'gone:1' }] }),
      podManifest('goes'),
    )
    rig.fake.exitContainer('job', 0)
    await rig.clock.advance(5000)
    const before = new Map(rig.records.saved)
    rig.records.saved.clear()
    await rig.remove('goes')
    await rig.clock.advance(61_000)
    expect([...rig.records.saved.values()].map(({ name }) => name).toSorted()).toEqual([
      'done',
      'runs',
      'waits',
    ])
    for (const [uid, record] of rig.records.saved)
      expect(record.containers).toEqual(before.get(uid)?.containers)
    await rig.kill()
    await rig.start()
    await rig.clock.advance(5000)
    expect(rig.running()).toEqual(['runs/main'])
    expect(rig.pod('done').status.phase).toBe('Succeeded')
    expect(rig.fake.calls('StartContainer')).toHaveLength(3)
  })
})

describe('a running pod whose cgroup was removed', () => {
  it.each(['Always', 'OnFailure'])(
    'is killed and recreated within a period, under restartPolicy %s',
    async (policy) => {
      const { rig, remove } = await rigWith(withTwo(policy), podManifest('other'))
      rig.fake.exitContainer('init', 0)
      await rig.clock.advance(1000)
      const { uid } = rig.pod('web').metadata
      remove('web')
      await rig.clock.advance(61_000)
      rig.fake.exitContainer('init', 0)
      await rig.clock.advance(15_000)
      expect(rig.running()).toEqual(['other/main', 'web/main', 'web/side'])
      expect(rig.pod('web').metadata.uid).toBe(uid)
      expect([rig.container('web').restartCount, rig.container('other').restartCount]).toEqual([1, 0])
      expect(rig.fake.calls('RunPodSandbox')).toHaveLength(3)
      expect(rig.events.filter(({ reason }) => reason === 'CgroupRemoved')).toMatchObject([
        {
          pod: { name: 'web' },
          type: 'Warning',
          message: expect.stringContaining('its limits no longer hold'),
        },
      ])
      const before = rig.fake.changes().length
      await rig.clock.advance(200_000)
      expect(rig.fake.changes().slice(before)).toEqual([])
    },
  )

  it('is killed and stays failed where it runs once', async () => {
    const { rig, remove } = await rigWith(podManifest('web', { restartPolicy: 'Never' }))
    remove('web')
    await rig.clock.advance(120_000)
    expect(rig.running()).toEqual([])
    expect(rig.pod('web').status.phase).toBe('Failed')
    expect(rig.fake.calls('RunPodSandbox')).toHaveLength(1)
  })

  it('is recreated by a podd that comes later, too', async () => {
    const { rig, remove } = await rigWith(podManifest('web'))
    await rig.terminate()
    rig.boot()
    await rig.offer()
    remove('web')
    await rig.clock.advance(61_000)
    expect(rig.container('web').restartCount).toBe(1)
  })

  it('runs on where nobody can say whether the cgroup is there', async () => {
    const { rig } = await rigWith(podManifest('web'))
    rig.host.cgroups!.isRemoved = async () => {
      throw new Error('EIO')
    }
    await rig.clock.advance(200_000)
    expect(rig.container('web').restartCount).toBe(0)
    expect(rig.failures).toEqual([])
  })
})

describe('the periodic sync', () => {
  it('looks at each pod once a period, spread over it, and asks the runtime nothing more', async () => {
    const names = Array.from({ length: 60 }, (_, at) => `pod-${at}`)
    const { rig, asked } = await rigWith(...names.map((name) => podManifest(name)))
    await rig.clock.advance(60_000)
    asked.length = 0
    const began = rig.fake.journal.length
    await rig.clock.advance(60_000)
    expect(new Set(asked.map(({ uid }) => uid)).size).toBe(60)
    expect(asked).toHaveLength(60)
    const parts = Map.groupBy(asked, ({ atMs }) => atMs)
    expect(parts.size).toBe(6)
    for (const part of parts.values()) expect(part.length).toBeLessThan(25)
    // A list of both kinds, and questions that don't depend on the pods.
    const calls = rig.fake.journal
      .slice(began)
      .filter(({ method }) => /List(?:PodSandbox|Containers)$/u.test(method))
    expect(calls).toHaveLength(2)
  })
})
