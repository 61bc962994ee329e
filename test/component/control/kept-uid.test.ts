import { expect, it } from 'vitest'
import { PodRig, podManifest } from './pod-rig.ts'

it('a pod of the API whose object comes back while it is ending starts once nothing of it is left', async () => {
  const rig = new PodRig({ sources: ['api'] })
  await rig.start()
  await rig.put('api', podManifest('web'))
  await rig.clock.advance(5000)
  const before = rig.pod('web').metadata.uid
  rig.fake.fault('StopContainer', { kind: 'delays', delayMs: 5000 })
  await rig.remove('web', 'api')
  await rig.clock.advance(1000)
  expect(rig.pod('web').metadata.deletionTimestamp).toBeDefined()
  await rig.put('api', podManifest('web'))
  await rig.clock.advance(60_000)
  expect(rig.pod('web').metadata.uid).toBe(before)
  expect(rig.pod('web').metadata.deletionTimestamp).toBeUndefined()
  expect(rig.pod('web').status.phase).toBe('Running')
  expect(rig.running()).toEqual(['web/main'])
  expect(rig.failures).toEqual([])
})
