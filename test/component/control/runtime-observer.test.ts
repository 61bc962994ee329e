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
    isNotFound: () => false,
    isTimeout: () => false,
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
