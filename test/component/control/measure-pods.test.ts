import { describe, expect, it } from 'vitest'
import { measurePods } from '../../../src/control/node/measure-pods.ts'
import type { PodMeter } from '../../../src/control/node/measure-pods.ts'
import type * as cri from '../../../src/cri-types/cri-v1.ts'
import { makePod } from '../../support/pod-builders.ts'

const { signal } = new AbortController()
const pods = ['hung', 'other'].map((uid) => ({
  ref: { namespace: 'default', name: uid, uid },
  pod: makePod(),
}))

function meter(parts: Partial<PodMeter> = {}): PodMeter {
  const attributes = { id: 'id', metadata: null, annotations: {} }
  const labels = { 'io.kubernetes.pod.uid': 'other', 'io.kubernetes.container.name': 'main' }
  const stats = {
    attributes: { ...attributes, labels },
    memory: { workingSetBytes: { value: 300 } },
  } as unknown as cri.ContainerStats
  return {
    listContainerStats: async () => [stats],
    listPodStats: async () => [],
    podMemoryBytes: () => undefined,
    logDirectory: () => '/none',
    volumeDirectories: () => [],
    measureDirectory: () => Promise.reject(new Error('not asked for')),
    ...parts,
  }
}

describe('what pods use of the memory', () => {
  const memory = { resource: 'memory', disk: 'both' } as const

  it('is read from the cgroup of a pod that the runtime tells nothing of', async () => {
    const podMemoryBytes: PodMeter['podMemoryBytes'] = ({ uid }) => (uid === 'hung' ? 5000 : undefined)
    const found = await measurePods(meter({ podMemoryBytes }), pods, memory, signal)
    expect([...found.values()].map(({ name, used }) => [name, used])).toEqual([
      ['hung', { memory: 5000 }],
      ['other', { memory: 300 }],
    ])
  })

  it('is the whole pod’s where the runtime tells of that', async () => {
    const whole = {
      attributes: { metadata: { uid: 'other' } },
      linux: { memory: { workingSetBytes: { value: 900 } } },
    } as unknown as cri.PodSandboxStats
    const podMemoryBytes = () => 1
    const surroundings = meter({ podMemoryBytes, listPodStats: async () => [whole] })
    const found = await measurePods(surroundings, pods, memory, signal)
    expect([...found.values()].map(({ used }) => used)).toEqual([{ memory: 1 }, { memory: 900 }])
  })
})
