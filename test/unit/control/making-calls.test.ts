import { expect, it } from 'vitest'
import { MakingCalls } from '../../../src/control/runtime/runtime-access.ts'
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

it('leaves the queue when its signal is aborted, and awaits the result of a call that was sent', async () => {
  const clock = new ManualClock()
  const fake = new FakeRuntime({ clock, images: [] })
  fake.fault('RunPodSandbox', { kind: 'delays', delayMs: 1000 })
  const calls = new MakingCalls(fake.runtime, { clock, limit: 1 })
  const removed = new AbortController()
  const make = (uid: string, signal?: AbortSignal) =>
    calls.runtime.runPodSandbox({ config: { metadata: { name: uid, namespace: 'b', uid } } }, { signal })
  const sent = make('sent', removed.signal)
  const queued = make('queued', removed.signal)
  await clock.advance(500)
  removed.abort(new Error('removed'))
  await expect(queued).rejects.toThrow('removed')
  await clock.advance(1000)
  expect((await sent).podSandboxId).toBeDefined()
  expect(fake.calls('RunPodSandbox')).toHaveLength(1)
  expect(calls.failures).toBe(0)
})
