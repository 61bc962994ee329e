import { beforeEach, describe, expect, it } from 'vitest'
import type { Observation } from '../../../src/decide/node/judge-pressure.ts'
import type { EvictionSignal } from '../../../src/config/node-options.ts'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig

beforeEach(async () => {
  rig = new PodRig()
  await rig.start()
})

const eviction = { reason: 'Evicted', message: 'The node was low on resource: memory. ', graceSeconds: 5 }

describe('a pod that is evicted', () => {
  it('ends within the grace, fails with the reason and the message, and does not come back', async () => {
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    expect(rig.evict(uid, eviction)).toBe(true)
    await rig.clock.advance(60_000)
    const { phase, reason, message } = rig.pod('web').status
    expect({ phase, reason, message }).toEqual({
      phase: 'Failed',
      reason: eviction.reason,
      message: eviction.message,
    })
    expect(rig.reasons('web')).toContain('Evicted')
    expect(rig.fake.calls('StopContainer').map(({ request }) => request.timeout)).toEqual([5])
    await rig.clock.advance(600_000)
    expect(rig.pod('web').status.phase).toBe('Failed')
    expect(rig.evict(uid, eviction)).toBe(false)
  })

  it('is one that there is, and that is not ending already', async () => {
    expect(rig.evict('nobody', eviction)).toBe(false)
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    expect(rig.evict(uid, eviction)).toBe(true)
    expect(rig.evict(uid, eviction)).toBe(false)
  })

  it('keeps its container, whose log tells why it ended, within the limits', async () => {
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    rig.evict(uid, eviction)
    await rig.clock.advance(60_000)
    expect(rig.fake.calls('RemoveContainer')).toEqual([])
    await rig.system.node.collectGarbage({ dryRun: false }, new AbortController().signal)
    expect(rig.fake.calls('RemoveContainer')).toEqual([])
    expect(rig.pod('web').status.phase).toBe('Failed')
  })
})

it('a pod that is removed while the end of its eviction is being written goes away, and is not kept as failed', async () => {
  await rig.apply(podManifest('web'))
  await rig.clock.advance(5000)
  const { promise: isWritten, resolve: write } = Promise.withResolvers<void>()
  let isWaiting = false
  rig.records.beforeSave = async ({ ending, containers }) => {
    if (ending?.cause !== 'evicted' || containers['main']?.ended === undefined) return
    isWaiting = true
    await isWritten
  }
  rig.evict(rig.pod('web').metadata.uid, eviction)
  await rig.clock.advance(10_000)
  expect(isWaiting).toBe(true)
  await rig.remove('web')
  write()
  await rig.clock.advance(10_000)
  expect(rig.records.history.filter(({ failed }) => failed !== undefined)).toEqual([])
  expect([rig.pods('web'), rig.isEmpty()]).toEqual([[], true])
})

describe('a podd that starts while the host is short of disk', () => {
  async function startShort(): Promise<{ readonly host: { available: number; answers: boolean } }> {
    const host = { available: 1, answers: true }
    rig = new PodRig({
      observe: async () => {
        if (!host.answers) await new Promise(() => {})
        const { available } = host
        return new Map<EvictionSignal, Observation>([['nodefs.available', { available, capacity: 100 }]])
      },
    })
    await rig.apply(podManifest('web'))
    await rig.start()
    return { host }
  }

  it('starts nothing that was not started yet, and what waits once the shortage is over', async () => {
    const { host } = await startShort()
    const [start, later] = [rig.fake.calls('StartContainer').length, 9000]
    await rig.clock.advance(later)
    expect([start, rig.fake.calls('RunPodSandbox')]).toEqual([0, []])
    expect(rig.container('web').state.waiting).toMatchObject({
      message: expect.stringContaining('DiskPressure'),
    })
    host.available = 50
    await rig.clock.advance(11_000)
    expect(rig.running()).toEqual(['web/main'])
  })

  it('goes on with what runs, and after a second where the host gives no answer', async () => {
    const { host } = await startShort()
    host.available = 50
    await rig.clock.advance(20_000)
    await rig.kill()
    host.available = 1
    await rig.start()
    expect(rig.running()).toEqual(['web/main'])
    await rig.kill()
    host.answers = false
    rig.fake.exitContainer('main', 1)
    await rig.start()
    await rig.clock.advance(15_000)
    expect(rig.running()).toEqual(['web/main'])
  })
})
