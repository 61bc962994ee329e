import { beforeEach, describe, expect, it } from 'vitest'
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
    expect(rig.system.evict(uid, eviction)).toBe(true)
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
    expect(rig.system.evict(uid, eviction)).toBe(false)
  })

  it('is one that there is, and that is not ending already', async () => {
    expect(rig.system.evict('nobody', eviction)).toBe(false)
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    expect(rig.system.evict(uid, eviction)).toBe(true)
    expect(rig.system.evict(uid, eviction)).toBe(false)
  })

  it('keeps its container, whose log tells why it ended, within the limits', async () => {
    await rig.apply(podManifest('web'))
    const { uid } = rig.pod('web').metadata
    rig.system.evict(uid, eviction)
    await rig.clock.advance(60_000)
    expect(rig.fake.calls('RemoveContainer')).toEqual([])
    await rig.system.node.collectGarbage({ dryRun: false }, new AbortController().signal)
    expect(rig.fake.calls('RemoveContainer')).toEqual([])
    expect(rig.pod('web').status.phase).toBe('Failed')
  })
})
