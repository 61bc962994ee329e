import { describe, expect, it } from 'vitest'
import { RuntimeStats } from '../../../src/control/runtime/runtime-stats.ts'
import type * as cri from '../../../src/cri-types/cri-v1.ts'
import { CriError } from '../../../src/runtime/cri-runtime.ts'
import type { RuntimeService } from '../../../src/runtime/cri-runtime.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const { signal } = new AbortController()
const stats = (id: string) => ({ attributes: { id } }) as unknown as cri.PodSandboxStats
const sandbox = (id: string) => ({ id }) as unknown as cri.PodSandbox
const failed = new CriError('RUNTIME_FAILED', 'cgroups: cgroup deleted')

function statsOf(parts: Partial<RuntimeService>): RuntimeStats {
  const unasked = () => Promise.reject(new Error('not asked for'))
  const calls = {
    containerStats: unasked,
    listContainers: unasked,
    listContainerStats: unasked,
    listMetricDescriptors: unasked,
    listPodSandboxMetrics: unasked,
    listPodSandboxStats: unasked,
    listPodSandbox: unasked,
    podSandboxStats: unasked,
    ...parts,
  }
  return new RuntimeStats(calls as unknown as RuntimeService)
}

describe('what sandboxes use', () => {
  it('is the whole list where there is one', async () => {
    const read = statsOf({ listPodSandboxStats: () => Promise.resolve({ stats: [stats('a')] }) })
    expect((await read.sandboxes(signal)).stats).toEqual([stats('a')])
  })

  it('is asked of each ready sandbox where one fails the whole list, and what fails is left out', async () => {
    const filters: unknown[] = []
    const read = statsOf({
      listPodSandboxStats: () => Promise.reject(failed),
      listPodSandbox: (request) => {
        filters.push(request?.filter)
        return Promise.resolve({ items: [sandbox('a'), sandbox('b')] })
      },
      podSandboxStats: ({ podSandboxId }) =>
        podSandboxId === 'b' ? Promise.reject(failed) : Promise.resolve({ stats: stats('a') }),
    })
    expect(await read.sandboxes(signal)).toEqual({ stats: [stats('a')], unanswered: new Set(['b']) })
    expect(filters).toEqual([{ state: { state: 'SANDBOX_READY' } }])
  })

  it.each(['RUNTIME_UNSUPPORTED', 'RUNTIME_UNAVAILABLE'] as const)(
    'is asked for nowhere else after %s',
    async (code) => {
      const error = new CriError(code, 'no')
      const read = statsOf({ listPodSandboxStats: () => Promise.reject(error) })
      await expect(read.sandboxes(signal)).rejects.toBe(error)
    },
  )
})

describe('the runtime’s own metrics', () => {
  const metric = (name: string, labelValues: readonly string[], value: number): cri.Metric => ({
    name,
    timestamp: 0,
    metricType: name.endsWith('_total') ? 'COUNTER' : 'GAUGE',
    labelValues,
    value: { value },
  })
  const podLabels = {
    'io.kubernetes.pod.uid': 'u1',
    'io.kubernetes.pod.name': 'web',
    'io.kubernetes.pod.namespace': 'shop',
  }
  const containerLabels = { ...podLabels, 'io.kubernetes.container.name': 'main' }
  const descriptors = [
    { name: 'container_network_receive_packets_total', help: 'packets', labelKeys: ['id', 'interface'] },
    { name: 'container_processes', help: 'processes', labelKeys: ['id', 'pod'] },
    { name: 'container_processes', help: 'told twice', labelKeys: ['id', 'pod'] },
    { name: 'container_files', help: 'not reported', labelKeys: [] },
    { name: 'no metric', help: 'no name for Prometheus', labelKeys: [] },
  ]
  const podMetrics = [
    {
      podSandboxId: 's1',
      metrics: [
        metric('container_network_receive_packets_total', ['s1', 'eth0'], 5),
        metric('no metric', [], 1),
      ],
      containerMetrics: [
        {
          containerId: 'c1',
          metrics: [metric('container_processes', ['c1', 'named'], 3), metric('undescribed', [], 1)],
        },
      ],
    },
    {
      podSandboxId: 'other',
      metrics: [],
      containerMetrics: [{ containerId: 'c2', metrics: [metric('container_processes', ['c2', ''], 9)] }],
    },
  ]
  const calls = {
    listMetricDescriptors: async () => ({ descriptors }),
    listPodSandboxMetrics: async () => ({ podMetrics }),
    listPodSandbox: async () => ({
      items: [
        { id: 's1', labels: podLabels },
        { id: 'other', labels: {} },
      ] as unknown as cri.PodSandbox[],
    }),
    listContainers: async () => ({
      containers: [{ id: 'c1', labels: containerLabels }] as unknown as cri.Container[],
    }),
  }

  it('are told with their descriptors, and by pod and container, of podd’s pods', async () => {
    expect(await statsOf(calls).metrics(signal)).toEqual({
      failed: false,
      families: [
        {
          name: 'container_network_receive_packets_total',
          help: 'packets',
          type: 'counter',
          series: [
            {
              labels: { namespace: 'shop', pod: 'web', container: '', id: 's1', interface: 'eth0' },
              value: 5,
            },
          ],
        },
        {
          name: 'container_processes',
          help: 'told twice',
          type: 'gauge',
          series: [{ labels: { namespace: 'shop', pod: 'named', container: 'main', id: 'c1' }, value: 3 }],
        },
      ],
    })
  })

  it.each([
    ['there are none', { listMetricDescriptors: async () => ({ descriptors: [] }) }, false],
    [
      'the runtime has no such call',
      { listMetricDescriptors: () => Promise.reject(new CriError('RUNTIME_UNSUPPORTED', 'no')) },
      false,
    ],
    ['it can’t tell', { ...calls, listPodSandboxMetrics: () => Promise.reject(failed) }, true],
  ])('are missing, and nothing else, where %s', async (_, parts, hasFailed) => {
    expect(await statsOf(parts).metrics(signal)).toEqual({ families: [], failed: hasFailed })
  })
})

/** A runtime with three pods, of which the shims of some hang. */
async function runThree() {
  const clock = new ManualClock()
  const fake = new FakeRuntime({ clock, images: ['image'] })
  const [pods, ids]: [string[], string[]] = [[], []]
  for (const name of ['a', 'b', 'c']) {
    const config = { metadata: { name, uid: name, namespace: 'default', attempt: 0 } }
    const { podSandboxId } = await fake.runtime.runPodSandbox({ config })
    const { containerId } = await fake.runtime.createContainer({
      podSandboxId,
      config: { metadata: { name, attempt: 0 }, image: { image: 'image' } },
      sandboxConfig: config,
    })
    await fake.runtime.startContainer({ containerId })
    pods.push(podSandboxId)
    ids.push(containerId)
  }
  const hang = (...hung: readonly string[]): void => {
    const lists = { times: 1000, when: () => hung.length > 0 }
    fake.fault('ListContainerStats', { kind: 'hangs' }, lists)
    fake.fault('ListPodSandboxStats', { kind: 'hangs' }, lists)
    const isHung = (id: string): boolean => hung.includes(id)
    fake.fault(
      'ContainerStats',
      { kind: 'hangs' },
      { times: 1000, when: ({ containerId }) => isHung(containerId) },
    )
    fake.fault(
      'PodSandboxStats',
      { kind: 'hangs' },
      { times: 1000, when: ({ podSandboxId }) => isHung(podSandboxId) },
    )
  }
  return { clock, fake, pods, ids, hang, read: new RuntimeStats(fake.runtime) }
}

describe.each([
  ['containers', 'ListContainerStats', 'ContainerStats'],
  ['sandboxes', 'ListPodSandboxStats', 'PodSandboxStats'],
] as const)('one of the %s that gives no answer', (kind, list, one) => {
  const run = async () => {
    const rig = await runThree()
    const [first = '', second = '', third = ''] = kind === 'containers' ? rig.ids : rig.pods
    const ask = async (waitedMs: number) => {
      const reading = rig.read[kind](signal)
      let isDone = false
      void reading.then(() => (isDone = true))
      await rig.clock.advance(waitedMs)
      expect(isDone).toBe(true)
      const { stats: found, unanswered } = await reading
      return { ids: found.map(({ attributes }) => attributes?.id), unanswered: [...unanswered] }
    }
    return { ...rig, ask, first, second, third }
  }

  it('is waited for once, and the others are told of', async () => {
    const { fake, hang, ask, first, second, third } = await run()
    hang(second)
    const others = { ids: [first, third], unanswered: [second] }
    expect(await ask(6000)).toEqual(others)
    expect(await ask(0)).toEqual(others)
    expect(await ask(0)).toEqual(others)
    expect(fake.calls(list)).toHaveLength(1)
    expect(fake.calls(one).filter(({ cancelled }) => !cancelled)).toHaveLength(7)
  })

  it('is asked again and again, and taken back once it answers', async () => {
    const { clock, fake, hang, ask, first, second, third } = await run()
    hang(second)
    await ask(6000)
    await ask(0)
    await clock.advance(60_000)
    expect(await ask(0)).toMatchObject({ unanswered: [second] })
    fake.clearFaults()
    await clock.advance(60_000)
    expect(await ask(0)).toMatchObject({ ids: [first, third] })
    expect(await ask(0)).toEqual({ ids: [first, second, third], unanswered: [] })
    expect(fake.calls(list)).toHaveLength(2)
  })

  it('is forgotten with its pod', async () => {
    const { clock, fake, ids, pods, hang, ask, first, second, third } = await run()
    hang(second)
    await ask(6000)
    await fake.runtime.stopContainer({ containerId: ids[1] })
    await fake.runtime.removePodSandbox({ podSandboxId: pods[1] })
    expect(await ask(0)).toEqual({ ids: [first, third], unanswered: [] })
    fake.clearFaults()
    await clock.settle()
    expect(await ask(0)).toEqual({ ids: [first, third], unanswered: [] })
    expect(fake.calls(list)).toHaveLength(2)
  })

  it('is told of as unanswered where its call fails, which says nothing of the runtime as a whole', async () => {
    const { fake, hang, ask, first, second, third } = await run()
    hang(second)
    await ask(6000)
    const isOf =
      (id: string) =>
      ({ containerId, podSandboxId }: Partial<Record<string, string>>) =>
        containerId === id || podSandboxId === id
    // UNKNOWN and UNAVAILABLE.
    for (const grpcCode of [2, 14]) {
      fake.fault(one, { kind: 'fails', grpcCode }, { times: 2, when: isOf(first) })
      expect(await ask(6000)).toEqual({ ids: [third], unanswered: [second, first] })
    }
  })

  it('is no reason to wait for a list again and again that takes too long', async () => {
    const { clock, fake, ask, first, second, third } = await run()
    const all = { ids: [first, second, third], unanswered: [] }
    fake.fault(list, { kind: 'hangs' }, { times: 1000 })
    expect(await ask(4000)).toEqual(all)
    for (let times = 0; times < 30; times += 1) expect(await ask(0)).toEqual(all)
    expect(fake.calls(list)).toHaveLength(1)
    fake.clearFaults()
    await clock.settle()
    expect(await ask(0)).toEqual(all)
    expect(fake.calls(list)).toHaveLength(2)
  })

  it('hides no error of the runtime as a whole', async () => {
    const { fake, ask, clock, read, hang, second } = await run()
    hang(second)
    await ask(6000)
    fake.goDown()
    const outcome = read[kind](signal).catch((error: unknown) => error)
    await clock.advance(4000)
    expect(await outcome).toMatchObject({ code: expect.stringMatching(/^RUNTIME_(UNAVAILABLE|TIMEOUT)$/u) })
  })
})
