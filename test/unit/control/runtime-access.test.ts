import { describe, expect, it } from 'vitest'
import { MakingCalls, StartGate } from '../../../src/control/runtime/runtime-access.ts'
import type { StartStage } from '../../../src/control/runtime/runtime-access.ts'
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

it('has the runtime take down no more at a time than the bound, also beside calls that create', async () => {
  const clock = new ManualClock()
  const fake = new FakeRuntime({ clock, images: [] })
  for (const method of ['StopPodSandbox', 'RemovePodSandbox', 'RemoveContainer'] as const)
    fake.fault(method, { kind: 'delays', delayMs: 1000 })
  const { runtime } = new MakingCalls(fake.runtime, { clock, limit: 2 })
  const sent = () =>
    fake.calls('StopPodSandbox').length +
    fake.calls('RemovePodSandbox').length +
    fake.calls('RemoveContainer').length
  const { podSandboxId } = await runtime.runPodSandbox({
    config: { metadata: { name: 'a', namespace: 'b', uid: 'c' } },
  })
  const all = Promise.all([
    runtime.stopPodSandbox({ podSandboxId }),
    runtime.removeContainer({ containerId: 'none' }),
    runtime.removePodSandbox({ podSandboxId }),
  ])
  await clock.advance(500)
  expect(sent()).toBe(2)
  await clock.advance(1000)
  expect(sent()).toBe(3)
  await clock.advance(1000)
  await all
  expect(fake.world.sandboxes.size).toBe(0)
})

function rig(limit: number) {
  const clock = new ManualClock()
  const gate = new StartGate(limit, clock)
  const sent: string[] = []
  const endings = new Map<string, (failure?: Error) => void>()
  const call = (name: string, stage: StartStage = 'sandbox', signal?: AbortSignal): Promise<string> =>
    gate.run(
      stage,
      () => {
        sent.push(name)
        return new Promise((resolve, reject) => {
          endings.set(name, (failure) => (failure === undefined ? resolve(name) : reject(failure)))
        })
      },
      signal,
    )
  const end = async (name: string, failure?: Error): Promise<void> => {
    endings.get(name)?.(failure)
    await settle()
  }
  return { clock, sent, call, end }
}

/** Lets all that is due by promises run. */
const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('StartGate', () => {
  it('sends at once below its limit', () => {
    const { sent, call, clock } = rig(2)
    void call('a')
    void call('b')
    expect(sent).toEqual(['a', 'b'])
    expect(clock.pendingTimers).toBe(0)
  })

  it('sends a further one when another has ended, and gives each its reply', async () => {
    const { sent, call, end } = rig(1)
    const a = call('a')
    const b = call('b')
    await settle()
    expect(sent).toEqual(['a'])
    await end('a')
    expect(sent).toEqual(['a', 'b'])
    await end('b')
    expect(await Promise.all([a, b])).toEqual(['a', 'b'])
  })

  it('sends a further one when another has failed, and passes the failure on', async () => {
    const { sent, call, end } = rig(1)
    const a = call('a').catch((error: unknown) => String(error))
    void call('b')
    await end('a', new Error('no room'))
    expect(await a).toBe('Error: no room')
    expect(sent).toEqual(['a', 'b'])
  })

  it('ends what was begun before it begins more: processes, then containers, then sandboxes', async () => {
    const { sent, call, end } = rig(1)
    void call('first')
    void call('sandbox')
    void call('sandbox 2')
    void call('container', 'container')
    void call('start', 'start')
    for (const name of ['first', 'start', 'container', 'sandbox', 'sandbox 2']) await end(name)
    expect(sent).toEqual(['first', 'start', 'container', 'sandbox', 'sandbox 2'])
  })

  it('never has more than its limit in flight, however many come and go', async () => {
    const clock = new ManualClock()
    const gate = new StartGate(3, clock)
    let inFlight = 0
    let most = 0
    await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        gate.run(index % 2 === 0 ? 'sandbox' : 'start', async () => {
          inFlight += 1
          most = Math.max(most, inFlight)
          await settle()
          inFlight -= 1
        }),
      ),
    )
    expect(most).toBe(3)
    expect(clock.pendingTimers).toBe(0)
  })

  it('does not count a stuck call after 5 s, neither then nor when it ends', async () => {
    const { sent, call, end, clock } = rig(1)
    void call('stuck')
    void call('a')
    void call('b')
    await clock.advance(4999)
    expect(sent).toEqual(['stuck'])
    await clock.advance(1)
    await settle()
    expect(sent).toEqual(['stuck', 'a'])
    await end('stuck')
    expect(sent).toEqual(['stuck', 'a'])
    await end('a')
    expect(sent).toEqual(['stuck', 'a', 'b'])
    expect(clock.pendingTimers).toBe(0)
  })

  it('lets further ones pass one limit after another while all are stuck', async () => {
    const { sent, call, clock } = rig(2)
    for (let index = 0; index < 6; index += 1) void call(`${index}`)
    await clock.advance(5000)
    await settle()
    expect(sent).toHaveLength(4)
    await clock.advance(5000)
    await settle()
    expect(sent).toHaveLength(6)
  })

  it('sends nothing for whoever has left the queue, and the next one comes in its turn', async () => {
    const { sent, call, end, clock } = rig(1)
    const leaves = new AbortController()
    void call('a')
    const b = call('b', 'sandbox', leaves.signal).catch((error: unknown) => String(error))
    void call('c')
    leaves.abort(new Error('removed'))
    expect(await b).toBe('Error: removed')
    await end('a')
    expect(sent).toEqual(['a', 'c'])
    const late = call('d', 'start', leaves.signal).catch((error: unknown) => String(error))
    expect(await late).toBe('Error: removed')
    await end('c')
    expect(sent).toEqual(['a', 'c'])
    expect(clock.pendingTimers).toBe(0)
  })
})
