import { describe, expect, it } from 'vitest'
import { admitPod } from '../../../src/decide/admission/admit-pod.ts'
import type { Admission, Neighbour, HostLimits } from '../../../src/decide/admission/admit-pod.ts'
import { makePod, sidecar } from '../../support/pod-builders.ts'
import type { PodChanges } from '../../support/pod-builders.ts'

const roomy: HostLimits = { maxPods: 110 }

function neighbour(name: string, changes: PodChanges = {}): Neighbour {
  return { key: `default/${name}`, pod: makePod({ name, containers: ['a'], ...changes }) }
}

const port = (fields: object) => ({ containers: [{ name: 'a', ports: [{ containerPort: 80, ...fields }] }] })
const asks = (requests: Readonly<Record<string, string>>) => ({
  containers: [{ name: 'a', resources: { requests } }],
})

/** The resource that the host lacks. */
const lackOf = (admission: Admission): string | undefined =>
  'message' in admission ? /resource: ([^,]+)/u.exec(admission.message)?.[1] : undefined

describe('host ports', () => {
  it.each([
    ['the same port', port({ hostPort: 8080 }), port({ hostPort: 8080 }), true],
    ['another port', port({ hostPort: 8080 }), port({ hostPort: 8081 }), false],
    ['another protocol', port({ hostPort: 8080 }), port({ hostPort: 8080, protocol: 'UDP' }), false],
    ['no host port', port({}), port({}), false],
    ['host port 0', port({ hostPort: 0 }), port({ hostPort: 0 }), false],
    [
      'other addresses',
      port({ hostPort: 8080, hostIP: '127.0.0.1' }),
      port({ hostPort: 8080, hostIP: '10.0.0.1' }),
      false,
    ],
    [
      'the same address',
      port({ hostPort: 8080, hostIP: '10.0.0.1' }),
      port({ hostPort: 8080, hostIP: '10.0.0.1' }),
      true,
    ],
    [
      'one address and all of them',
      port({ hostPort: 8080, hostIP: '10.0.0.1' }),
      port({ hostPort: 8080 }),
      true,
    ],
    [
      'one address and 0.0.0.0',
      port({ hostPort: 8080, hostIP: '0.0.0.0' }),
      port({ hostPort: 8080, hostIP: '10.0.0.1' }),
      true,
    ],
    ['the host network', { ...port({}), spec: { hostNetwork: true } }, port({ hostPort: 80 }), true],
    [
      'that of a sidecar',
      port({ hostPort: 8080 }),
      { init: [sidecar('s', { ports: [{ containerPort: 1, hostPort: 8080 }] })] },
      true,
    ],
  ] as const satisfies readonly (readonly [string, PodChanges, PodChanges, boolean])[])(
    '%s: %s',
    (_title, mine, theirs, blocked) => {
      const admission = admitPod(makePod(mine), [neighbour('other', theirs)], roomy)
      expect(admission.kind).toBe(blocked ? 'blocked' : 'admitted')
    },
  )

  it('are told with the pod that holds them', () => {
    const others = [neighbour('first'), neighbour('second', port({ hostPort: 8080 }))]
    expect(admitPod(makePod(port({ hostPort: 8080 })), others, roomy)).toEqual({
      kind: 'blocked',
      reason: 'Blocked',
      message: 'host port 8080/TCP is held by pod default/second',
      at: ['spec', 'containers', 0, 'ports', 0, 'hostPort'],
    })
  })

  it('come before the room, for they may become free', () => {
    const others = [neighbour('other', port({ hostPort: 8080 }))]
    expect(admitPod(makePod(port({ hostPort: 8080 })), others, { maxPods: 1 }).kind).toBe('blocked')
  })
})

describe('room', () => {
  it.each([
    ['for the last pod', 3, 'admitted'],
    ['for none', 2, 'blocked'],
  ])('%s', (_title, maxPods, kind) => {
    const others = [neighbour('first'), neighbour('second')]
    expect(admitPod(makePod(), others, { maxPods }).kind).toBe(kind)
  })

  it('is told in the words of Kubernetes', () => {
    expect(admitPod(makePod(), [neighbour('other')], { maxPods: 1 })).toEqual({
      kind: 'blocked',
      reason: 'Blocked',
      message: "Node didn't have enough resource: pods, requested: 1, used: 1, capacity: 1",
    })
  })
})

describe('resources', () => {
  const limits: HostLimits = { maxPods: 110, allocatable: { cpu: '2', memory: '1Gi' } }
  it.each([
    ['what is left', asks({ cpu: '1500m' }), asks({ cpu: '500m' }), 'admitted'],
    ['more cpu than is left', asks({ cpu: '1501m' }), asks({ cpu: '500m' }), 'cpu'],
    ['more memory than there is', asks({ memory: '2Gi' }), {}, 'memory'],
    ['nothing, however full it is', {}, asks({ cpu: '4', memory: '4Gi' }), 'admitted'],
    ['memory while the cpu is given away', asks({ memory: '1Mi' }), asks({ cpu: '4' }), 'admitted'],
    [
      'huge pages that were not set aside',
      { containers: [{ name: 'a', resources: { limits: { 'hugepages-2Mi': '4Mi', memory: '1Mi' } } }] },
      {},
      'hugepages-2Mi',
    ],
  ] as const satisfies readonly (readonly [string, PodChanges, PodChanges, string])[])(
    '%s',
    (_title, mine, theirs, expected) => {
      const admission = admitPod(makePod(mine), [neighbour('other', theirs)], limits)
      expect(lackOf(admission) ?? admission.kind).toBe(expected)
    },
  )

  it('are told in the words of Kubernetes', () => {
    expect(
      admitPod(makePod(asks({ cpu: '1800m' })), [neighbour('other', asks({ cpu: '250m' }))], limits),
    ).toMatchObject({
      kind: 'blocked',
      message: "Node didn't have enough resource: cpu, requested: 1800, used: 250, capacity: 2000",
    })
  })

  it('are given freely where nothing is said of them', () => {
    expect(admitPod(makePod(asks({ cpu: '64' })), [], roomy).kind).toBe('admitted')
  })
})

describe('room that is not there for long, or not yet', () => {
  const limits: HostLimits = { maxPods: 110, allocatable: { cpu: '2' } }
  const ending = { ...neighbour('ending', asks({ cpu: '1500m' })), isEnding: true }
  const promised = { ...neighbour('promised', asks({ cpu: '1500m' })), isPromised: true }

  it.each<[string, Neighbour[], string]>([
    ['held by a pod that is ending', [ending], 'blocked'],
    ['promised to another pod', [promised], 'blocked'],
    ['held by one that is ending and promised to another', [ending, promised], 'blocked'],
    ['held by a pod that stays', [{ ...ending, isEnding: false }], 'blocked'],
    [
      'held by a pod whose next version asks for less',
      [{ ...ending, isEnding: false, next: makePod(asks({ cpu: '1' })) }],
      'blocked',
    ],
    [
      'held by a pod whose next version asks for as much',
      [{ ...ending, isEnding: false, next: makePod(asks({ cpu: '1500m' })) }],
      'blocked',
    ],
    ['nobody’s', [], 'admitted'],
  ])('%s', (_what, neighbours, kind) => {
    expect(admitPod(makePod(asks({ cpu: '1' })), neighbours, limits).kind).toBe(kind)
  })

  it.each([
    ['waits where the node has none', {}, 'example.com/gpu'],
    ['waits where others have them all', { 'example.com/gpu': '2' }, 'example.com/gpu'],
    ['is admitted where one is left', { 'example.com/gpu': '3' }, undefined],
  ])('of an extended resource %s', (_case, extended, lack) => {
    const gpu = asks({ 'example.com/gpu': '1' })
    const others = [neighbour('a', gpu), neighbour('b', gpu)]
    const admission = admitPod(makePod(gpu), others, { maxPods: 110, allocatable: { cpu: '2', ...extended } })
    expect(lackOf(admission)).toBe(lack)
  })

  it('is enough beside a pod and the one that takes its place', () => {
    const others = [
      { ...neighbour('web', asks({ cpu: '1' })), isEnding: true },
      { ...neighbour('web', asks({ cpu: '1' })), isPromised: true },
    ]
    expect(admitPod(makePod(asks({ cpu: '1' })), others, limits).kind).toBe('admitted')
  })

  it('leaves a promised port alone', () => {
    const others = [{ ...neighbour('next', port({ hostPort: 8080 })), isPromised: true }]
    expect(admitPod(makePod(port({ hostPort: 8080 })), others, roomy).kind).toBe('blocked')
  })
})
