import { expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { RuntimeObserver } from '../../../src/control/runtime/runtime-observer.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'

it('does not ask again for the status of a sandbox that a start has read, until its state changes', async () => {
  const clock = new ManualClock()
  const { runtime } = new FakeRuntime({ clock, images: [] })
  let asked = 0
  const observer = new RuntimeObserver({
    calls: {
      ...runtime,
      podSandboxStatus: (request) => {
        asked += 1
        return runtime.podSandboxStatus(request)
      },
    },
    events: undefined,
    clock,
    random: () => 0,
    logger: silentLogger,
    relistMs: 60_000,
    instance: '',
    onChange: () => {},
    onHealth: () => {},
    hasOomKills: async () => false,
  })
  const labels = {
    'io.kubernetes.pod.uid': 'u',
    'io.kubernetes.pod.name': 'a',
    'io.kubernetes.pod.namespace': 'default',
  }
  const metadata = { name: 'a', namespace: 'default', uid: 'u' }
  const { podSandboxId } = await runtime.runPodSandbox({ config: { metadata, labels } })
  const { status } = await runtime.podSandboxStatus({ podSandboxId })
  if (status === null) throw new Error('the sandbox has no status')
  observer.noteSandbox(status)
  expect((await observer.read('u'))?.sandboxes).toMatchObject([{ id: podSandboxId, ready: true }])
  expect(asked).toBe(0)
  await runtime.stopPodSandbox({ podSandboxId })
  expect((await observer.read('u'))?.sandboxes).toMatchObject([{ id: podSandboxId, ready: false }])
  expect(asked).toBe(1)
})

it('observes again what has changed alone, and leaves all other pods the same objects', async () => {
  const clock = new ManualClock()
  const fake = new FakeRuntime({ clock, images: ['app:1'] })
  const { runtime } = fake
  const changed: string[] = []
  const observer = new RuntimeObserver({
    calls: runtime,
    events: undefined,
    clock,
    random: () => 0,
    logger: silentLogger,
    relistMs: 60_000,
    instance: '',
    onChange: (uid) => void changed.push(uid),
    onHealth: () => {},
    hasOomKills: async () => false,
  })
  const labelsOf = (name: string): Record<string, string> => ({
    'io.kubernetes.pod.uid': name,
    'io.kubernetes.pod.name': name,
    'io.kubernetes.pod.namespace': 'default',
  })
  for (const name of ['a', 'b', 'c']) {
    const config = { metadata: { name, namespace: 'default', uid: name }, labels: labelsOf(name) }
    const { podSandboxId } = await runtime.runPodSandbox({ config })
    const { containerId } = await runtime.createContainer({
      podSandboxId,
      config: { metadata: { name, attempt: 0 }, image: { image: 'app:1' }, labels: labelsOf(name) },
      sandboxConfig: config,
    })
    await runtime.startContainer({ containerId })
  }
  const first = await observer.relist()
  changed.length = 0
  fake.exitContainer('b', 3)
  const { podSandboxId } = await runtime.runPodSandbox({
    config: { metadata: { name: 'd', namespace: 'default', uid: 'd' }, labels: labelsOf('d') },
  })
  const second = await observer.relist()
  expect(second.get('a')).toBe(first.get('a'))
  expect(second.get('c')).toBe(first.get('c'))
  expect(second.get('b')?.containers).toMatchObject([{ state: 'exited', exitCode: 3 }])
  expect(second.get('d')?.sandboxes).toMatchObject([{ id: podSandboxId }])
  expect(changed.toSorted()).toEqual(['b', 'd'])
  fake.world.removeSandbox(fake.world.getSandbox(second.get('a')?.sandboxes[0]?.id ?? ''))
  expect([...(await observer.relist()).keys()].toSorted()).toEqual(['b', 'c', 'd'])
  expect(observer.podsNamed('default/c')).toHaveLength(1)
})

it('reads so many pods at a time that their answers don’t hold podd, and every one of thousands', async () => {
  const clock = new ManualClock()
  const { runtime } = new FakeRuntime({ clock, images: [] })
  let inFlight = 0
  let most = 0
  const observer = new RuntimeObserver({
    calls: {
      ...runtime,
      listPodSandbox: async (request) => {
        inFlight += 1
        most = Math.max(most, inFlight)
        await new Promise((resolve) => void setImmediate(resolve))
        inFlight -= 1
        return runtime.listPodSandbox(request)
      },
    },
    events: undefined,
    clock,
    random: () => 0,
    logger: silentLogger,
    relistMs: 60_000,
    instance: '',
    onChange: () => {},
    onHealth: () => {},
    hasOomKills: async () => false,
  })
  const read = await Promise.all(Array.from({ length: 2000 }, (_, index) => observer.read(`u${index}`)))
  expect(read).toHaveLength(2000)
  expect(most).toBe(32)
})
