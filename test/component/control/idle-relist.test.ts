import { expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { RuntimeObserver } from '../../../src/control/runtime/runtime-observer.ts'
import type { ObserverCalls } from '../../../src/control/runtime/runtime-observer.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'

function labelsOf(pod: number): Record<string, string> {
  return {
    'io.kubernetes.pod.uid': `u${pod}`,
    'io.kubernetes.pod.name': `p${pod}`,
    'io.kubernetes.pod.namespace': 'default',
  }
}

function makeObserver(calls: ObserverCalls, changed: string[] = []): RuntimeObserver {
  return new RuntimeObserver({
    calls,
    events: undefined,
    clock: new ManualClock(),
    random: () => 0,
    logger: silentLogger,
    relistMs: 60_000,
    instance: '',
    onChange: (uid) => void changed.push(uid),
    onHealth: () => {},
    hasOomKills: async () => false,
  })
}

/** What a container's status tells beside what is listed of it. */
const plainStatus = {
  startedAt: 1,
  finishedAt: 0,
  exitCode: 0,
  reason: '',
  message: '',
  mounts: [],
  logPath: '',
  resources: null,
  user: null,
  stopSignal: 'SIGNAL_RUNTIME_DEFAULT' as const,
}

/** The calls of a runtime with so many pods of three containers each, in which nothing changes, and how often each was sent. */
function idleRuntime(pods: number) {
  const items = Array.from({ length: pods }, (_, pod) => ({
    id: `s${pod}`,
    metadata: { name: `p${pod}`, uid: `u${pod}`, namespace: 'default', attempt: 0 },
    state: 'SANDBOX_READY' as const,
    createdAt: 1,
    labels: labelsOf(pod),
    annotations: {},
    runtimeHandler: '',
  }))
  const containers = items.flatMap(({ id, labels }) =>
    ['one', 'two', 'three'].map((name) => ({
      id: `${name}-${id}`,
      podSandboxId: id,
      metadata: { name, attempt: 0 },
      image: null,
      imageRef: 'app:1',
      imageId: '',
      state: 'CONTAINER_RUNNING' as const,
      createdAt: 1,
      labels,
      annotations: {},
    })),
  )
  const statusOf = new Map(items.map((item) => [item.id, { ...item, network: null, linux: null }]))
  const containerStatusOf = new Map(
    containers.map((container) => [container.id, { ...plainStatus, ...container }] as const),
  )
  const sent = { sandboxes: 0, containers: 0, statuses: 0 }
  const listed = { items }
  const listedContainers = { containers }
  const calls: ObserverCalls = {
    listPodSandbox: async () => {
      sent.sandboxes += 1
      return listed
    },
    listContainers: async () => {
      sent.containers += 1
      return listedContainers
    },
    podSandboxStatus: async ({ podSandboxId = '' }) => {
      sent.statuses += 1
      const status = statusOf.get(podSandboxId) ?? null
      return { status, info: {}, timestamp: 0 }
    },
    containerStatus: async ({ containerId = '' }) => {
      sent.statuses += 1
      return { status: containerStatusOf.get(containerId) ?? null, info: {} }
    },
  }
  return { calls, sent }
}

it('a relist of 1,000 idle pods is one list of each kind, and leaves every pod as it was', async () => {
  const { calls, sent } = idleRuntime(1000)
  const changed: string[] = []
  const observer = makeObserver(calls, changed)
  await observer.relist()
  expect(sent).toEqual({ sandboxes: 1, containers: 1, statuses: 4000 })
  const before = [...observer.pods().values()]
  expect(before).toHaveLength(1000)
  changed.length = 0
  await observer.relist()
  expect(sent).toEqual({ sandboxes: 2, containers: 2, statuses: 4000 })
  expect(changed).toEqual([])
  const after = [...observer.pods().values()]
  expect(after.every((pod, index) => pod === before[index])).toBe(true)
})

interface Changing {
  readonly fake: FakeRuntime
  readonly sandboxId: string
}

it.each<[string, (host: Changing) => Promise<unknown>]>([
  ['a container that has ended', async ({ fake }) => fake.exitContainer('main', 1)],
  [
    'a sandbox that was stopped',
    ({ fake: { runtime }, sandboxId }) => runtime.stopPodSandbox({ podSandboxId: sandboxId }),
  ],
  [
    'a pod that was removed',
    async ({ fake: { runtime }, sandboxId }) => {
      await runtime.stopPodSandbox({ podSandboxId: sandboxId })
      await runtime.removePodSandbox({ podSandboxId: sandboxId })
    },
  ],
])('a relist finds %s that no event told of', async (_, change) => {
  const fake = new FakeRuntime({ clock: new ManualClock(), images: ['app:1'] })
  const { runtime } = fake
  const labels = labelsOf(0)
  const sandboxConfig = { metadata: { name: 'p0', namespace: 'default', uid: 'u0' }, labels }
  const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig })
  const config = { metadata: { name: 'main' }, labels, image: { image: 'app:1' } }
  const { containerId } = await runtime.createContainer({ podSandboxId, sandboxConfig, config })
  await runtime.startContainer({ containerId })
  const changed: string[] = []
  const observer = makeObserver(runtime, changed)
  await observer.relist()
  await observer.relist()
  expect(changed.splice(0)).toEqual(['u0'])
  await change({ fake, sandboxId: podSandboxId })
  await observer.relist()
  expect(changed.splice(0)).toEqual(['u0'])
  await observer.relist()
  expect(changed).toEqual([])
})
