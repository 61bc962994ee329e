import { beforeEach, describe, expect, it } from 'vitest'
import { removeWhenSettled } from '../../../src/control/pod/stop.ts'
import { plainPodHost } from '../../support/plain-pod-host.ts'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig
beforeEach(async () => {
  rig = new PodRig()
  await rig.start()
  await rig.apply(podManifest('web'))
})

/** Removes the pod's container; `undefined` while that is in flight. */
function remove() {
  const ended: { how?: string } = {}
  const { signal } = new AbortController()
  const env = { calls: rig.fake.runtime, clock: rig.clock }
  removeWhenSettled(env, rig.fake.container('main').id, signal).then(
    () => (ended.how = 'removed'),
    (error: Error) => (ended.how = error.message),
  )
  return ended
}

describe('a container that the runtime does not remove at once', () => {
  it('is removed once the runtime has noted its exit', async () => {
    rig.fake.world.exitLagMs = 60
    rig.fake.exitContainer('main', 1)
    const ended = remove()
    await rig.settle()
    expect(ended.how).toBeUndefined()
    await rig.clock.advance(1000)
    expect(ended.how).toBe('removed')
  })

  it('is removed when it has exited before the refusal is looked into', async () => {
    rig.fake.exitContainer('main', 1)
    rig.fake.fault('RemoveContainer', { kind: 'fails', message: 'not yet' })
    const ended = remove()
    await rig.settle()
    expect(ended.how).toBe('removed')
  })

  it('is not asked for again and again where it has exited and something else is wrong', async () => {
    rig.fake.exitContainer('main', 1)
    rig.fake.fault('RemoveContainer', { kind: 'fails', message: 'no space left' }, { times: 9 })
    const before = rig.fake.calls('RemoveContainer').length
    const ended = remove()
    await rig.settle()
    expect(ended.how).toContain('no space left')
    expect(rig.fake.calls('RemoveContainer')).toHaveLength(before + 2)
  })

  it('counts as removed where it is gone', async () => {
    const { id } = rig.fake.container('main')
    rig.fake.fault('RemoveContainer', { kind: 'fails', message: 'broken' })
    const ended = remove()
    rig.fake.world.containers.delete(id)
    await rig.settle()
    expect(ended.how).toBe('removed')
  })
})

describe('the log of a container that is removed', () => {
  it('is removed before the container, which is removed once that has worked', async () => {
    const acts: string[] = []
    let failures = 2
    const plain = plainPodHost(rig.objects)
    rig = new PodRig()
    rig.host = {
      logs: {
        ...plain.logs,
        remove: async (_ref, { restartCount }) => {
          acts.push(`log ${restartCount} beside ${rig.fake.containersNamed('main').length}`)
          failures -= 1
          if (failures >= 0) throw new Error('the disk cannot be written to')
        },
      },
    }
    await rig.start()
    await rig.apply(podManifest('web'))
    for (let restarts = 0; restarts < 3; restarts += 1) {
      rig.fake.exitContainer('main', 1)
      await rig.clock.advance(100_000)
    }
    expect(acts.slice(0, 3)).toEqual(['log 0 beside 2', 'log 0 beside 3', 'log 0 beside 3'])
    expect(rig.fake.containersNamed('main').map(({ config }) => config.metadata?.attempt)).toEqual([2, 3])
  })
})
