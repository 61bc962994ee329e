import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import {
  computeOomScoreAdj,
  burstableMilliCpu,
  containerResources,
  hugePageSizeName,
  largerPodResources,
  milliCpuToQuotaUs,
  milliCpuToShares,
  podCgroupResources,
  sharesToWeight,
} from '../../../src/translate/resources.ts'
import { podLimits, podRequests } from '../../../src/pod/schema/pod-resources.ts'
import type { ResourceFacts } from '../../../src/translate/resources.ts'
import { appOf, gib, hostFacts, podWith, resources, testPod } from './pods.ts'

const main = (name: string, more: JsonObject = {}): JsonObject => ({ name, image: 'i', ...more })
const sidecar = (name: string, more: JsonObject): JsonObject =>
  main(name, { restartPolicy: 'Always', ...more })

function podOf(requests: JsonObject, limits: JsonObject = {}) {
  return testPod({ containers: [main('app', resources(requests, limits))] })
}

describe('milliCpuToShares', () => {
  it.each([
    [0, 2],
    [1, 2],
    [100, 102],
    [1000, 1024],
    [1500, 1536],
    [1_000_000, 262_144],
  ])('%dm is %d', (milliCpu, shares) => {
    expect(milliCpuToShares(milliCpu)).toBe(shares)
  })
})

describe('milliCpuToQuotaUs', () => {
  it.each([
    [0, 100_000, 0],
    [5, 100_000, 1000],
    [250, 100_000, 25_000],
    [2000, 100_000, 200_000],
    [500, 5000, 2500],
  ])('%dm of %d µs is %d µs', (milliCpu, periodUs, quotaUs) => {
    expect(milliCpuToQuotaUs(milliCpu, periodUs)).toBe(quotaUs)
  })
})

describe('sharesToWeight', () => {
  it.each([
    [2, 1],
    [1024, 39],
    [262_144, 10_000],
  ])('%d is %d', (shares, weight) => {
    expect(sharesToWeight(shares)).toBe(weight)
  })
})

describe('hugePageSizeName', () => {
  it.each([
    ['64Ki', '64KB'],
    ['2Mi', '2MB'],
    ['2048Ki', '2MB'],
    ['1Gi', '1GB'],
    ['1536Ki', '1536KB'],
  ])('%s is %s', (quantity, name) => {
    expect(hugePageSizeName(quantity)).toBe(name)
  })
})

describe('podRequests', () => {
  const cases: readonly (readonly [string, JsonObject, JsonObject])[] = [
    ['of one container', { containers: [main('a', resources({ cpu: '1' }))] }, { cpu: '1' }],
    [
      'of several are added',
      {
        containers: [
          main('a', resources({ cpu: '1' })),
          main('b', resources({ cpu: '500m', memory: '1Mi' })),
        ],
      },
      { cpu: '1500m', memory: '1Mi' },
    ],
    [
      'are those of a needier init container',
      {
        containers: [main('a', resources({ cpu: '1' }))],
        initContainers: [main('i', resources({ cpu: '3' }))],
      },
      { cpu: '3' },
    ],
    [
      'count a sidecar beside the main containers and beside the init containers after it',
      {
        containers: [main('a', resources({ cpu: '1' }))],
        initContainers: [
          main('early', resources({ cpu: '3' })),
          sidecar('side', resources({ cpu: '2' })),
          main('late', resources({ cpu: '2500m' })),
        ],
      },
      { cpu: '4500m' },
    ],
    [
      'are the limits where only these are given',
      { containers: [main('a', resources({}, { cpu: '2' }))] },
      { cpu: '2' },
    ],
  ]
  it.each(cases)('%s', (_, spec, expected) => {
    expect(podRequests(testPod(spec).spec, 'without-overhead')).toEqual(expected)
  })

  it('count overhead when asked to; limits only where there is one', () => {
    const { spec } = podWith(podOf({ cpu: '1' }, { memory: '1Gi' }), {
      overhead: { cpu: '250m', memory: '64Mi' },
    })
    expect(podRequests(spec, 'with-overhead')).toEqual({ cpu: '1250m', memory: '1088Mi' })
    expect(podRequests(spec, 'without-overhead')).toEqual({ cpu: '1', memory: '1Gi' })
    expect(podLimits(spec, 'with-overhead')).toEqual({ memory: '1088Mi' })
  })

  it('are the pod’s own where it has them', () => {
    const { spec } = podWith(podOf({ cpu: '1' }), {
      resources: { requests: { cpu: '2' }, limits: { memory: '1Gi' } },
    })
    expect(podRequests(spec, 'with-overhead')).toEqual({ cpu: '2', memory: '1Gi' })
    expect(podLimits(spec, 'with-overhead')).toEqual({ memory: '1Gi' })
  })
})

describe('computeOomScoreAdj', () => {
  const scoreOf = (requests: JsonObject, limits?: JsonObject): number => {
    const pod = podOf(requests, limits)
    return computeOomScoreAdj(pod.spec, appOf(pod), 8 * gib)
  }

  it.each<[JsonObject, JsonObject, number]>([
    [{}, {}, 1000],
    [{ cpu: '1', memory: '1Gi' }, { cpu: '1', memory: '1Gi' }, -997],
    [{ memory: '2Gi' }, {}, 750],
    [{ memory: '1Mi' }, {}, 999],
    [{ cpu: '1' }, {}, 999],
    [{ memory: '8Gi' }, {}, 3],
    [{ memory: '80Gi' }, {}, 3],
  ])('of requests %j and limits %j is %d', (requests, limits, expected) => {
    expect(scoreOf(requests, limits)).toBe(expected)
  })

  it('spares a node-critical pod', () => {
    const pod = testPod()
    expect(
      computeOomScoreAdj(podWith(pod, { priorityClassName: 'system-node-critical' }).spec, appOf(pod), gib),
    ).toBe(-997)
  })

  it('kills no sidecar before the containers it serves', () => {
    const { spec } = testPod({
      containers: [main('app', resources({ memory: '4Gi' }))],
      initContainers: [sidecar('side', resources({ memory: '1Gi' }))],
    })
    const [side] = spec.initContainers
    if (side === undefined) throw new Error('no sidecar')
    expect(computeOomScoreAdj(spec, side, 8 * gib)).toBe(500)
  })

  it.each([
    ['its share beside its own request', 'app', 750 - 125],
    ['its share alone', 'free', 1000 - 125],
    ['as much as the containers that it serves', 'side', 1000 - 125],
  ])('counts of what the pod as a whole requests %s', (_what, name, expected) => {
    const { spec } = testPod({
      // 2 of 5 GiB are asked for by a container, so that each of the three has one more.
      resources: { requests: { memory: '5Gi' } },
      containers: [main('app', resources({ memory: '2Gi' })), main('free', resources({}))],
      initContainers: [sidecar('side', resources({ memory: '0' }))],
    })
    const container = [...spec.containers, ...spec.initContainers].find((one) => one.name === name)
    if (container === undefined) throw new Error(`no ${name}`)
    expect(computeOomScoreAdj(spec, container, 8 * gib)).toBe(expected)
  })

  it('is no lower than what the host can set', () => {
    const least = { cpu: '1', memory: '1Gi' }
    const scores = [podOf(least, least), podOf({})].flatMap((pod) =>
      [0, -1000].map(
        (minOomScoreAdj) =>
          containerResources(pod.spec, appOf(pod), { ...hostFacts, minOomScoreAdj }).oomScoreAdj,
      ),
    )
    expect(scores).toEqual([0, -997, 1000, 1000])
  })
})

describe('containerResources', () => {
  const of = (requests: JsonObject, limits: JsonObject, facts = hostFacts) => {
    const pod = podOf(requests, limits)
    return containerResources(pod.spec, appOf(pod), facts)
  }

  it('of nothing asked are the least shares and no limit', () => {
    expect(of({}, {})).toEqual({
      cpuShares: 2,
      cpuPeriod: 100_000,
      cpuQuota: 0,
      unified: { 'memory.oom.group': '1' },
      oomScoreAdj: 1000,
      hugepageLimits: [],
    })
  })

  it('take the shares from the request and the rest from the limits', () => {
    expect(of({ cpu: '250m', memory: '1Gi' }, { cpu: '1', memory: '2Gi' })).toMatchObject({
      cpuShares: 256,
      cpuQuota: 100_000,
      memoryLimitInBytes: 2 * gib,
      oomScoreAdj: 875,
    })
  })

  it('set no quota where CPU limits are not enforced', () => {
    const asked = of({}, { cpu: '1' }, { ...hostFacts, cpuCfsQuota: false })
    expect(asked).not.toHaveProperty('cpuQuota')
    expect(asked).not.toHaveProperty('cpuPeriod')
  })

  it('leave no swap, where it is counted', () => {
    const counted = { ...hostFacts, swapController: true }
    expect(of({}, { memory: '1Gi' }, counted).unified).toEqual({
      'memory.oom.group': '1',
      'memory.swap.max': '0',
    })
    const version1 = of({}, { memory: '1Gi' }, { ...counted, cgroupVersion: 1 })
    expect(version1.memorySwapLimitInBytes).toBe(gib)
    expect(version1).not.toHaveProperty('unified')
  })

  it('give huge pages only of the sizes asked for', () => {
    const facts = { ...hostFacts, hugePageSizes: ['2MB', '1GB'] }
    expect(of({}, { 'hugepages-2Mi': '100Mi', memory: '1Gi' }, facts).hugepageLimits).toEqual([
      { pageSize: '2MB', limit: 100 * 1024 ** 2 },
      { pageSize: '1GB', limit: 0 },
    ])
  })

  it('bind a container by the pod’s limit where it has none', () => {
    const pod = podOf({ cpu: '1' })
    const { spec } = podWith(pod, { resources: { requests: {}, limits: { cpu: '2', memory: '1Gi' } } })
    expect(containerResources(spec, appOf(pod), hostFacts)).toMatchObject({
      cpuQuota: 200_000,
      memoryLimitInBytes: gib,
    })
  })
})

describe('podCgroupResources', () => {
  const of = (spec: JsonObject) => podCgroupResources(testPod(spec).spec, hostFacts, 64)

  it('limit the pod when each container is limited', () => {
    const limited = resources({ cpu: '250m' }, { cpu: '500m', memory: '1Gi' })
    expect(of({ containers: [main('a', limited), main('b', limited)] })).toEqual({
      cpuShares: 512,
      cpuQuotaUs: 100_000,
      cpuPeriodUs: 100_000,
      memoryLimitBytes: 2 * gib,
      pidsLimit: 64,
      hugepageLimits: [],
    })
  })

  it('don’t limit the pod when one container isn’t', () => {
    const limited = resources({}, { cpu: '500m', memory: '1Gi' })
    expect(of({ containers: [main('a', limited), main('b', resources({ memory: '1Mi' }))] })).toMatchObject({
      cpuQuotaUs: undefined,
      memoryLimitBytes: undefined,
    })
  })

  it('don’t limit a pod of its own resources that ask for neither cpu nor memory', () => {
    const limited = resources({ cpu: '0', memory: '0' }, { cpu: '500m', memory: '1Gi' })
    const own = { resources: { limits: { 'hugepages-2Mi': '4Mi' } } }
    expect(of({ ...own, containers: [main('a', limited)] })).toMatchObject({
      cpuShares: 2,
      cpuQuotaUs: undefined,
      memoryLimitBytes: undefined,
    })
  })

  it('of a pod that asks for nothing are the least shares', () => {
    expect(of({})).toMatchObject({ cpuShares: 2, cpuQuotaUs: undefined, memoryLimitBytes: undefined })
  })
})

describe('largerPodResources', () => {
  const of = (change: object) => ({
    ...podCgroupResources(testPod({}).spec, hostFacts, 64),
    ...change,
  })

  it('are the larger of each', () => {
    const one = of({ cpuShares: 10, cpuQuotaUs: 200, memoryLimitBytes: 30 })
    const other = of({ cpuShares: 20, cpuQuotaUs: 100, memoryLimitBytes: 40 })
    const larger = { cpuShares: 20, cpuQuotaUs: 200, memoryLimitBytes: 40 }
    expect(largerPodResources(one, other)).toMatchObject(larger)
    expect(largerPodResources(other, one)).toMatchObject(larger)
  })

  it('have no limit where one of both has none', () => {
    const limited = of({ cpuQuotaUs: 200, memoryLimitBytes: 30 })
    for (const [one, other] of [
      [limited, of({})],
      [of({}), limited],
    ] as const)
      expect(largerPodResources(one, other)).toMatchObject({
        cpuQuotaUs: undefined,
        memoryLimitBytes: undefined,
      })
  })
})

describe('the shares', () => {
  it('are those of the burstable pods together', () => {
    const guaranteed = podOf({ cpu: '4', memory: '1Gi' }, { cpu: '4', memory: '1Gi' })
    const pods = [podOf({ cpu: '1' }), podOf({ cpu: '500m' }), podOf({}), guaranteed]
    const milliCpu = pods.reduce((sum, { spec }) => sum + burstableMilliCpu(spec), 0)
    expect(milliCpuToShares(milliCpu)).toBe(1536)
    expect(milliCpuToShares(0)).toBe(2)
  })
})

describe('swap', () => {
  const host = { ...hostFacts, swapController: true, memoryCapacityBytes: 8 * gib }
  const swapOf = (requests: JsonObject, limits: JsonObject, facts: ResourceFacts, spec: JsonObject = {}) => {
    const pod = testPod({
      containers: [{ name: 'app', image: 'a', resources: { requests, limits } }],
      ...spec,
    })
    const { unified, memorySwapLimitInBytes } = containerResources(pod.spec, appOf(pod), facts)
    return unified?.['memory.swap.max'] ?? memorySwapLimitInBytes
  }

  it.each<[JsonObject, JsonObject, Partial<ResourceFacts>, number | string | undefined]>([
    [{ memory: '2Gi' }, {}, {}, '0'],
    [{ memory: '2Gi' }, {}, { swapBytes: 4 * gib }, String(gib)],
    [{ memory: '2Gi' }, { memory: '4Gi' }, { swapBytes: 4 * gib }, String(gib)],
    // Guaranteed, best effort, or what has all the memory that it may have: none.
    [{ memory: '2Gi', cpu: '1' }, { memory: '2Gi', cpu: '1' }, { swapBytes: 4 * gib }, '0'],
    [{}, {}, { swapBytes: 4 * gib }, '0'],
    [{ memory: '2Gi', cpu: '1' }, { memory: '2Gi' }, { swapBytes: 4 * gib }, '0'],
    // Version 1 can't share swap out.
    [{ memory: '1Gi' }, { memory: '2Gi' }, { swapBytes: 4 * gib, cgroupVersion: 1 }, 2 * gib],
    [{ memory: '2Gi' }, {}, { swapController: false }, undefined],
  ])('of requests %j and limits %j with %j is %j', (requests, limits, facts, expected) => {
    expect(swapOf(requests, limits, { ...host, ...facts })).toBe(expected)
  })

  it('is not for critical pods', () => {
    const spec = { priority: 2_000_000_000 }
    expect(swapOf({ memory: '2Gi' }, {}, { ...host, swapBytes: 4 * gib }, spec)).toBe('0')
  })
})

describe('a container out of memory', () => {
  it.each([
    [true, { 'memory.oom.group': '1' }],
    [false, undefined],
  ])('ends as a whole: %j', (oomKillsGroup, unified) => {
    const pod = testPod()
    expect(containerResources(pod.spec, appOf(pod), { ...hostFacts, oomKillsGroup }).unified).toEqual(unified)
  })
})
