import { expect, it } from 'vitest'
import { MakingCalls } from '../../../src/control/runtime/making-calls.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('tracks calls in flight by when they were sent, until they succeed or fail', async () => {
  const clock = new ManualClock()
  const fake = new FakeRuntime({ clock, images: [] })
  fake.fault('RunPodSandbox', { kind: 'delays', delayMs: 2000 })
  fake.fault('StartContainer', { kind: 'delays', delayMs: 3000 })
  const calls = new MakingCalls(fake.runtime, { clock, limit: 8 })
  const startMs = clock.monotonicMs()
  const sentMs = () => (calls.sinceMs === undefined ? undefined : calls.sinceMs - startMs)
  expect(sentMs()).toBeUndefined()
  await clock.advance(1000)
  const made = calls.runtime.runPodSandbox({ config: { metadata: { name: 'a', namespace: 'b', uid: 'c' } } })
  expect(sentMs()).toBe(1000)
  await clock.advance(1000)
  const started = calls.runtime.startContainer({ containerId: 'none' }).then(
    () => 'started',
    () => 'failed',
  )
  await clock.advance(1000)
  await made
  expect(sentMs()).toBe(2000)
  expect(calls.failures).toBe(0)
  await clock.advance(2000)
  expect(await started).toBe('failed')
  expect(calls.failures).toBe(1)
  expect(sentMs()).toBeUndefined()
})
