import { beforeEach, expect, it } from 'vitest'
import { PodRig, podManifest } from './pod-rig.ts'

let rig: PodRig

beforeEach(async () => {
  rig = new PodRig({ sources: ['api'] })
  await rig.start()
})

/** `podd down`: podd ends, and another process, which has no sources, ends the pods. */
async function down({ removesEnded = false } = {}): Promise<{
  readonly ended: number
  readonly stuck: readonly string[]
}> {
  const { sources } = rig
  await rig.terminate()
  rig.sources = []
  rig.boot()
  const ending = rig.system.endAll({ graceSeconds: 0, removesEnded, signal: new AbortController().signal })
  await rig.clock.advance(200_000)
  const outcome = await ending
  await rig.terminate()
  rig.sources = sources
  return outcome
}

const starts = (): number => rig.fake.calls('StartContainer').length

it.each([
  ['Succeeded', { kind: 'exits', afterMs: 10, exitCode: 0 }, {}],
  ['Failed', { kind: 'exits', afterMs: 10, exitCode: 3 }, {}],
  ['Failed', { kind: 'runs' }, { activeDeadlineSeconds: 5 }],
] as const)('a pod of the API that is %s is so after podd down, too', async (phase, script, spec) => {
  rig.fake.script('main', script)
  await rig.put('api', podManifest('job', { restartPolicy: 'Never', ...spec }))
  await rig.clock.advance(60_000)
  const before = rig.pod('job')
  expect([before.status.phase, starts()]).toEqual([phase, 1])
  expect(await down()).toEqual({ ended: 0, stuck: [] })
  expect(rig.tornDown).toContain(before.metadata.uid)
  await rig.start()
  await rig.clock.advance(60_000)
  expect([rig.pod('job').metadata.uid, rig.pod('job').status.phase]).toEqual([before.metadata.uid, phase])
  expect(starts()).toBe(1)
  await rig.remove('job', 'api')
  await rig.clock.advance(10_000)
  expect(rig.isEmpty()).toBe(true)
})

it('one that has completed is removed where nothing is to stay', async () => {
  rig.fake.script('main', { kind: 'exits', afterMs: 10, exitCode: 0 })
  await rig.put('api', podManifest('job', { restartPolicy: 'Never' }))
  await rig.clock.advance(60_000)
  expect(await down({ removesEnded: true })).toEqual({ ended: 1, stuck: [] })
  expect(rig.isEmpty()).toBe(true)
  // Its manifest is kept, and nothing says any more that it ran.
  await rig.start()
  await rig.clock.advance(60_000)
  expect([rig.pod('job').status.phase, starts()]).toEqual(['Succeeded', 2])
})

it('one that has just completed has its sandbox stopped by podd down', async () => {
  rig.fake.script('main', { kind: 'exits', afterMs: 10_000, exitCode: 0 })
  await rig.put('api', podManifest('job', { restartPolicy: 'Never' }))
  await rig.clock.advance(5000)
  await rig.kill()
  await rig.clock.advance(10_000)
  expect(rig.fake.calls('StopPodSandbox')).toEqual([])
  expect(await down()).toEqual({ ended: 0, stuck: [] })
  expect(rig.fake.calls('StopPodSandbox')).toHaveLength(1)
  await rig.start()
  await rig.clock.advance(60_000)
  expect([rig.pod('job').status.phase, starts()]).toEqual(['Succeeded', 1])
})

it('pods of the API that run start again after it, and completed ones of a file', async () => {
  rig.sources = ['api', 'file']
  await rig.terminate()
  await rig.start()
  rig.fake.script('once', { kind: 'exits', afterMs: 10, exitCode: 0 })
  await rig.put('api', podManifest('web'))
  const containers = [{ name: 'once', image: 'app:1' }]
  await rig.apply(podManifest('filed', { restartPolicy: 'Never', containers }))
  await rig.clock.advance(10_000)
  expect(starts()).toBe(2)
  expect(await down()).toEqual({ ended: 2, stuck: [] })
  expect(rig.isEmpty()).toBe(true)
  await rig.start()
  await rig.clock.advance(10_000)
  expect([rig.running(), starts()]).toEqual([['web/main'], 4])
})
