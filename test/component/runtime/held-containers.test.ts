import { beforeEach, expect, it } from 'vitest'
import { PoddError } from '../../../src/base/errors.ts'
import { HeldContainers } from '../../../src/runtime/containerd/records.ts'
import type { ContainerdChannel } from '../../../src/runtime/containerd/records.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** Containers by id, each with its labels, its task and how that takes signals. */
interface FakeContainer {
  readonly labels: Readonly<Record<string, string>>
  task: 'RUNNING' | 'STOPPED' | 'none'
  readonly endsBy: number
}

const clock = new ManualClock()
const containers = new Map<string, FakeContainer>()
let calls: string[] = []
let hangs = false

function read(request: object, key: string): unknown {
  return (request as Record<string, unknown>)[key]
}

function answer(method: string, request: object): object {
  const id = String(read(request, 'containerId') ?? read(request, 'id'))
  const container = containers.get(id)
  if (method === 'Delete' && read(request, 'id') !== undefined) {
    containers.delete(id)
    return {}
  }
  if (container === undefined || container.task === 'none') throw new PoddError('RUNTIME_NOT_FOUND', id)
  if (method === 'Get') return { process: { status: container.task } }
  if (method === 'Delete') container.task = 'none'
  if (method === 'Kill' && read(request, 'signal') === container.endsBy) container.task = 'STOPPED'
  return {}
}

const channel: ContainerdChannel = {
  ready: async () => {},
  async unary({ path }, request, _signal, headers) {
    expect(headers).toEqual({ 'containerd-namespace': 'k8s.io' })
    const method = path.slice(path.lastIndexOf('/') + 1)
    if (method !== 'Get') calls.push([method, read(request, 'signal')].join(' ').trim())
    return answer(method, request)
  },
  stream(_method, _request, onMessage, signal) {
    if (hangs)
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    for (const [id, { labels }] of containers) onMessage({ container: { id, labels } })
    return Promise.resolve()
  },
}

function held(instance = ''): HeldContainers {
  return new HeldContainers(channel, instance, clock)
}

const labels = {
  'io.cri-containerd.kind': 'container',
  'io.kubernetes.pod.name': 'web',
  'io.kubernetes.pod.namespace': 'default',
  'io.kubernetes.pod.uid': 'uid-web',
  'io.kubernetes.container.name': 'main',
}

function hold(id: string, change: Partial<FakeContainer> = {}): void {
  containers.set(id, { labels, task: 'RUNNING', endsBy: 15, ...change })
}

beforeEach(() => {
  containers.clear()
  calls = []
  hangs = false
})

it('lists what is CRI’s, with its pod', async () => {
  const pod = { namespace: 'default', name: 'web', uid: 'uid-web' }
  hold('c1')
  hold('s1', { labels: { 'io.cri-containerd.kind': 'sandbox' } })
  hold('by-ctr', { labels: {} })
  expect(await held().list()).toEqual([
    { id: 'c1', kind: 'container', pod, name: 'main' },
    { id: 's1', kind: 'sandbox', pod: undefined, name: '' },
  ])
})

it('lists what is of one instance alone', async () => {
  hold('c1', { labels: { ...labels, 'podd.dev/instance': 'a' } })
  hold('c2', { labels: { ...labels, 'podd.dev/instance': 'b' } })
  hold('c3')
  expect((await held('a').list()).map(({ id }) => id)).toEqual(['c1'])
})

it('does not wait for ever for the list', async () => {
  hangs = true
  const failure = held()
    .list()
    .then(
      () => undefined,
      (error: unknown) => error,
    )
  await clock.advance(10_000)
  expect(await failure).toMatchObject({ code: 'RUNTIME_TIMEOUT' })
})

it.each<[string, Partial<FakeContainer>, readonly string[]]>([
  ['that ends when it is asked to', {}, ['Kill 15', 'Delete', 'Delete']],
  ['that ends by force alone', { endsBy: 9 }, ['Kill 15', 'Kill 9', 'Delete', 'Delete']],
  ['whose task is gone', { task: 'none' }, ['Delete']],
])('ends and removes one %s', async (_, change, expected) => {
  hold('c1', change)
  const ending = held().end('c1', new AbortController().signal)
  await clock.advance(30_000)
  await ending
  expect(calls).toEqual(expected)
  expect(containers.size).toBe(0)
})
