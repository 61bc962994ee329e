import { describe, expect, it } from 'vitest'
import {
  admitPod,
  exclusiveClaimProblem,
  findPortClash,
  findShortage,
  hostShares,
  HostTally,
  smallerShares,
  totalShares,
  withoutShares,
} from '../../../../src/decide/admission/admit-pod.ts'
import type { Admission, HostLimits, Neighbour } from '../../../../src/decide/admission/admit-pod.ts'
import { podFromManifest } from '../../../../src/pod/schema/default-pod.ts'
import type { Pod } from '../../../../src/pod/schema/pod-schema.ts'
import { makePod, sidecar } from '../../../support/pod-builders.ts'
import type { PodChanges } from '../../../support/pod-builders.ts'
import { pick, seededRandom } from '../../../support/seeded-random.ts'

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
  ])('of an extended resource %s', (_case, extended, shortage) => {
    const gpu = asks({ 'example.com/gpu': '1' })
    const others = [neighbour('a', gpu), neighbour('b', gpu)]
    const admission = admitPod(makePod(gpu), others, { maxPods: 110, allocatable: { cpu: '2', ...extended } })
    expect(lackOf(admission)).toBe(shortage)
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

/** What `admitPod` says, by a look at each neighbour. */
function admitByEach(pod: Pod, neighbours: readonly Neighbour[], limits: HostLimits): Admission {
  const wanted = hostShares(pod)
  for (const { key, pod: other } of neighbours) {
    const port = findPortClash(wanted, hostShares(other))
    if (port !== undefined)
      return {
        kind: 'blocked',
        reason: 'Blocked',
        message: `host port ${port.port}/${port.protocol} is held by pod ${key}`,
      }
  }
  const living = neighbours.filter(({ hasEnded }) => hasEnded !== true)
  const lasting = living.flatMap(({ pod: other, next, isEnding }) => {
    if (isEnding === true) return []
    const shares = hostShares(other)
    return [next === undefined ? shares : smallerShares(shares, hostShares(next))]
  })
  const present = living.flatMap(({ pod: other, isPromised }) =>
    isPromised === true ? [] : hostShares(other),
  )
  const shortage =
    findShortage(wanted, totalShares(lasting), limits) ?? findShortage(wanted, totalShares(present), limits)
  return shortage === undefined
    ? { kind: 'admitted' }
    : { kind: 'blocked', reason: 'Blocked', message: shortage.message }
}

it('admits each of many pods as a look at all of its neighbours does, also one that is among them', () => {
  const random = seededRandom(18)
  const is = (chance: number): boolean => random() < chance
  const draw = (name: string): Pod =>
    makePod({
      name,
      containers: [
        {
          name: 'a',
          resources: {
            requests: { cpu: pick(random, ['1m', '250m', '1']), memory: pick(random, ['1Mi', '1Gi']) },
          },
          ports: is(0.3)
            ? [
                {
                  containerPort: 80,
                  hostPort: pick(random, [1, 2, 3]),
                  hostIP: pick(random, ['', '127.0.0.1', '10.0.0.1', '0.0.0.0']),
                  protocol: pick(random, ['TCP', 'UDP']),
                },
              ]
            : [],
        },
      ],
    })
  const seen = new Set<string>()
  for (let round = 0; round < 200; round += 1) {
    const limits = { maxPods: 8, allocatable: { cpu: '3', memory: '4Gi' } }
    const neighbours: Neighbour[] = Array.from({ length: Math.floor(random() * 6) }, (_, at) => ({
      key: `default/old${at}`,
      pod: draw(`old${at}`),
      hasEnded: is(0.1),
      isEnding: is(0.2),
      isPromised: is(0.1),
      next: is(0.2) ? draw(`old${at}`) : undefined,
    }))
    const tally = new HostTally(neighbours)
    for (let at = 0; at < 8; at += 1) {
      const pod = draw(`new${at}`)
      const admission = admitPod(pod, neighbours, limits, tally)
      expect(admission).toMatchObject(admitByEach(pod, neighbours, limits))
      expect(admission).toEqual(admitPod(pod, neighbours, limits))
      seen.add(
        admission.kind === 'admitted'
          ? admission.kind
          : (/port|resource: \w+/u.exec(admission.message)?.[0] ?? ''),
      )
      if (admission.kind !== 'admitted') continue
      const neighbour = { key: `default/new${at}`, pod }
      neighbours.push(neighbour)
      tally.add(neighbour)
      const taken = pick(random, neighbours)
      const others = neighbours.filter((each) => each !== taken)
      tally.remove(taken)
      expect(admitPod(taken.pod, others, limits, tally)).toEqual(admitPod(taken.pod, others, limits))
      tally.add(taken)
    }
  }
  expect([...seen].toSorted()).toEqual([
    'admitted',
    'port',
    'resource: cpu',
    'resource: memory',
    'resource: pods',
  ])
})

const podUsing = (name: string, claims: readonly string[], namespace = 'default'): Pod =>
  podFromManifest({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: {
      containers: [{ name: 'app', image: 'a' }],
      volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
    },
  })

const beside = (pod: Pod): { readonly key: string; readonly pod: Pod } => ({
  key: `${pod.metadata.namespace}/${pod.metadata.name}`,
  pod,
})

const isExclusive = (name: string): boolean => name.startsWith('own')

describe('a claim for one pod alone', () => {
  it('keeps a second pod waiting, and names the first', () => {
    const neighbours = [beside(podUsing('bystander', ['all'])), beside(podUsing('first', ['all', 'own']))]
    expect(exclusiveClaimProblem(podUsing('second', ['all', 'own']), neighbours, isExclusive)).toEqual({
      kind: 'blocked',
      reason: 'Blocked',
      message:
        'persistentvolumeclaim "own" uses the ReadWriteOncePod access mode and is already in use by pod default/first',
      at: ['spec', 'volumes', 1, 'persistentVolumeClaim', 'claimName'],
    })
  })

  it.each<[string, Pod]>([
    ['a pod that uses another claim', podUsing('first', ['own-other'])],
    ['a pod that uses none', podUsing('first', [])],
    ['a pod with a claim of that name elsewhere', podUsing('first', ['own'], 'elsewhere')],
    ['the version of the pod before', podUsing('second', ['own'])],
  ])('is free beside %s', (_what, other) => {
    expect(exclusiveClaimProblem(podUsing('second', ['own']), [beside(other)], isExclusive)).toBeUndefined()
  })

  it('is no matter where it is for all', () => {
    const first = beside(podUsing('first', ['all']))
    expect(exclusiveClaimProblem(podUsing('second', ['all']), [first], isExclusive)).toBeUndefined()
  })
})

describe('what a pod that does not fit is told', () => {
  const twoPorts = makePod({
    name: 'dns',
    containers: [
      { name: 'a', ports: [{ containerPort: 1, hostPort: 53, protocol: 'TCP' }] },
      {
        name: 'b',
        ports: [
          { containerPort: 2, hostPort: 54, protocol: 'UDP' },
          { containerPort: 3, hostPort: 53, protocol: 'UDP' },
        ],
      },
    ],
  })

  it('names the port of the same protocol that is held, where it is asked for', () => {
    const held = neighbour('other', port({ hostPort: 53, protocol: 'UDP' }))
    expect(admitPod(twoPorts, [held], roomy)).toMatchObject({
      kind: 'blocked',
      message: expect.stringContaining('host port 53/UDP is held by pod default/other'),
      at: ['spec', 'containers', 1, 'ports', 1, 'hostPort'],
    })
  })

  it('names the first container that requests what is short, also where that is the first of all', () => {
    const limits: HostLimits = { maxPods: 110, allocatable: { cpu: '1' } }
    const wants = makePod({ name: 'big', ...asks({ cpu: '2' }) })
    expect(admitPod(wants, [], limits)).toMatchObject({
      at: ['spec', 'containers', 0, 'resources', 'requests', 'cpu'],
    })
  })

  it('is how much is missing, of pods and of what they request', () => {
    const shares = hostShares(makePod({ name: 'big', ...asks({ cpu: '2' }) }))
    const total = totalShares([shares, shares])
    expect(findShortage(shares, total, { maxPods: 2 })?.missing).toBe(1n)
    expect(findShortage(shares, total, { maxPods: 1 })?.missing).toBe(2n)
    const { missing } = findShortage(shares, total, { maxPods: 9, allocatable: { cpu: '5' } }) ?? {}
    expect(missing).toBe(1_000_000_000n)
    expect(findShortage(shares, total, { maxPods: 9, allocatable: { cpu: '6' } })).toBeUndefined()
  })

  it('counts a resource of its own that the host does not have as 0, and no other', () => {
    const limits: HostLimits = { maxPods: 110, allocatable: {} }
    const lacks = (name: string): string | undefined =>
      findShortage(hostShares(makePod({ name: 'p', ...asks({ [name]: '1' }) })), totalShares([]), limits)
        ?.resource
    expect(['example.com/gpu', 'hugepages-2Mi', 'cpu'].map((name) => lacks(name))).toEqual([
      'example.com/gpu',
      'hugepages-2Mi',
      undefined,
    ])
  })

  it('is nothing about ports that are 0 or none', () => {
    expect(hostShares(makePod({ name: 'p', ...port({ hostPort: 0 }) })).ports).toEqual([])
    expect(hostShares(makePod({ name: 'p', ...port({}) })).ports).toEqual([])
    expect(hostShares(makePod({ name: 'p', ...port({ hostPort: 80 }) })).ports).toMatchObject([{ port: 80 }])
  })
})

it('takes what one pod requests out of a total, and the pod', () => {
  const [small, big] = ['1', '3'].map((cpu) => hostShares(makePod({ name: 'p', ...asks({ cpu }) })))
  if (small === undefined || big === undefined) throw new Error('there are two')
  expect(withoutShares(totalShares([small, big]), small)).toEqual(totalShares([big]))
})
