import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { Changes } from '../../../src/base/waits.ts'
import type { EvictionSignal, Thresholds } from '../../../src/config/node-options.ts'
import { NodeJobs } from '../../../src/control/node/node-jobs.ts'
import { NodePressure } from '../../../src/control/node/pressure.ts'
import type { EvictableWorker } from '../../../src/control/node/pressure.ts'
import type { Observation, PressureCondition } from '../../../src/decide/node/judge-pressure.ts'
import type { NodeEvent } from '../../../src/pod/state/pod-event.ts'
import { makePod } from '../../support/pod-builders.ts'
import { ManualClock } from '../../support/manual-clock.ts'

interface FakePod {
  readonly name: string
  readonly memory: number
  readonly isCritical?: boolean
  /** How long it takes to end; undefined: it never does. */
  readonly endsAfterMs?: number | undefined
}

interface RigOptions {
  readonly pods?: readonly FakePod[]
  readonly soft?: {
    readonly thresholds: Thresholds
    readonly graceMs: number
    readonly maxPodGraceSeconds: number
  }
  /** What is short; memory where it is left out. */
  readonly starved?: EvictionSignal
  /** What the removal of unused images does. */
  readonly reclaim?: (make: (available: number) => void) => void
  readonly transitionMs?: number
  /** Pods whose volumes are not removed yet when they have ended. */
  readonly slowVolumes?: readonly string[]
}

/** A host that has 1000 of a resource, of which 100 are to stay available; each pod that ends frees what it uses. */
async function rig(options: RigOptions = {}) {
  const { pods = [], soft, starved = 'memory.available', transitionMs = 30_000 } = options
  const clock = new ManualClock()
  const events: NodeEvent[] = []
  const log: string[] = []
  const warnings: string[] = []
  const shortages: (readonly PressureCondition[])[] = []
  let available = 500
  let relaxed = 0
  const ended = new Set<string>()
  const slowVolumes = new Set(options.slowVolumes)
  const none = {
    evictionHard: {},
    evictionSoft: {},
    evictionSoftGracePeriodMs: {},
    evictionMinimumReclaim: {},
  }
  const limit: Thresholds = { [starved]: { kind: 'amount', amount: 100 } }
  const changes = new Changes()
  const state = (name: string, isCritical: boolean): EvictableWorker['state'] => {
    const pod = makePod({ spec: { terminationGracePeriodSeconds: 30, priority: isCritical ? 2e9 : 0 } })
    return {
      stage: 'active',
      pod,
      classedPod: pod,
      get isOver() {
        return ended.has(name)
      },
      get isReleased() {
        return !slowVolumes.has(name)
      },
    }
  }
  const workers = pods.map(({ name, memory, isCritical = false, endsAfterMs }): EvictableWorker => ({
    ref: { namespace: 'default', name, uid: name },
    state: state(name, isCritical),
    end({ message, graceSeconds }) {
      log.push(`${clock.monotonicMs() / 1000} s: evict ${name}, grace ${graceSeconds} s: ${message}`)
      if (endsAfterMs === undefined) return
      clock.startTimer(endsAfterMs, () => {
        ended.add(name)
        available += memory
        changes.note()
      })
    },
  }))
  const pressure = new NodePressure({
    settings: {
      ...none,
      ...(soft === undefined
        ? { evictionHard: limit }
        : { evictionSoft: soft.thresholds, evictionSoftGracePeriodMs: { 'memory.available': soft.graceMs } }),
      mergeDefaultEvictionSettings: false,
      evictionPressureTransitionPeriodMs: transitionMs,
      evictionMaxPodGracePeriod: soft?.maxPodGraceSeconds ?? 0,
    },
    meter: {
      observe: async () => new Map<EvictionSignal, Observation>([[starved, { available, capacity: 1000 }]]),
      diskOf: async () => 'both',
      listContainerStats: async () => [],
      listPodStats: async () => [],
      podMemoryBytes: ({ uid }) => pods.find(({ name }) => name === uid)?.memory,
      logDirectory: () => '/none',
      volumeDirectories: () => [],
      measureDirectory: () => Promise.reject(new Error('not asked for')),
    },
    workers: () => workers,
    collectImages: async () => {
      log.push(`${clock.monotonicMs() / 1000} s: reclaim`)
      options.reclaim?.((amount) => void (available = amount))
    },
    onShortages: (now) => void shortages.push(now),
    onRelaxed: () => void (relaxed += 1),
    changes,
    events: { recordNode: (event) => void events.push(event) },
    clock,
    logger: { ...silentLogger, warn: (_, message) => void warnings.push(message) },
  })
  const jobs = new NodeJobs({ clock, logger: silentLogger })
  jobs.add(pressure.job())
  const stop = new AbortController()
  const running = jobs.run(stop.signal)
  return {
    clock,
    pressure,
    log,
    warnings,
    shortages,
    relaxed: () => relaxed,
    reasons: () => events.map(({ reason }) => reason),
    removeVolumes: (name: string) => {
      slowVolumes.delete(name)
      changes.note()
    },
    setAvailable: (amount: number) => void (available = amount),
    reports: () => jobs.reports(),
    end: async () => {
      stop.abort(new Error('podd stops'))
      await running
    },
  }
}

const low = 'The node was low on resource: memory. Threshold quantity: 100, available:'

describe('NodePressure', () => {
  it('evicts nobody when reclaiming was enough', async () => {
    const { clock, log, shortages, reasons, setAvailable, end } = await rig({
      pods: [{ name: 'web', memory: 300, endsAfterMs: 10 }],
      starved: 'nodefs.available',
      reclaim: (make) => make(400),
    })
    await clock.advance(10_000)
    expect(log).toEqual([])
    setAvailable(50)
    await clock.advance(10_000)
    expect(log).toEqual(['20 s: reclaim'])
    await clock.advance(1000)
    expect(shortages).toEqual([['DiskPressure'], []])
    expect(reasons()).toEqual(['NodeHasDiskPressure', 'EvictionThresholdMet'])
    await end()
  })

  it('evicts one pod after the other, the largest first, until enough is available', async () => {
    const { clock, log, setAvailable, end } = await rig({
      pods: [
        { name: 'small', memory: 10, endsAfterMs: 500 },
        { name: 'medium', memory: 30, endsAfterMs: 500 },
        { name: 'large', memory: 60, endsAfterMs: 500 },
      ],
    })
    setAvailable(20)
    await clock.advance(12_000)
    expect(log.filter((line) => line.includes('evict'))).toEqual([
      `10 s: evict large, grace 1 s: ${low} 20. `,
      `10.5 s: evict medium, grace 1 s: ${low} 80. `,
    ])
    await end()
  })

  it('evicts no other pod while one is ending, for half a minute at most', async () => {
    const { clock, log, setAvailable, end } = await rig({
      pods: [
        { name: 'stuck', memory: 60 },
        { name: 'next', memory: 90, endsAfterMs: 60_000 },
      ],
    })
    setAvailable(20)
    await clock.advance(40_000)
    expect(log.filter((line) => line.includes('evict'))).toEqual([`10 s: evict next, grace 1 s: ${low} 20. `])
    await clock.advance(10_000)
    expect(log.filter((line) => line.includes('evict'))).toHaveLength(2)
    await end()
  })

  it('evicts no other pod while the volumes of one that has ended are being removed', async () => {
    const { clock, log, removeVolumes, setAvailable, end } = await rig({
      pods: [
        { name: 'large', memory: 60, endsAfterMs: 500 },
        { name: 'next', memory: 30, endsAfterMs: 500 },
      ],
      slowVolumes: ['large'],
    })
    setAvailable(20)
    await clock.advance(60_000)
    expect(log.filter((line) => line.includes('evict'))).toHaveLength(1)
    removeVolumes('large')
    await clock.advance(1000)
    expect(log.filter((line) => line.includes('evict next'))).toHaveLength(1)
    await end()
  })

  it('spares critical pods, and says that nothing can be evicted', async () => {
    const { clock, log, reports, setAvailable, end } = await rig({
      pods: [{ name: 'vital', memory: 900, isCritical: true, endsAfterMs: 10 }],
    })
    setAvailable(20)
    await clock.advance(20_000)
    expect(log).toEqual([])
    expect(reports()).toMatchObject([{ name: 'relieve-pressure', runs: 1 }])
    await end()
  })

  it('says once an hour, and in each shortage, that nothing can be evicted', async () => {
    const { clock, warnings, setAvailable, end } = await rig()
    const unable = () => warnings.filter((message) => message.includes('no pod can be evicted')).length
    setAvailable(50)
    await clock.advance(3_500_000)
    expect(unable()).toBe(1)
    await clock.advance(200_000)
    expect(unable()).toBe(2)
    setAvailable(500)
    await clock.advance(60_000)
    setAvailable(50)
    await clock.advance(60_000)
    expect(unable()).toBe(3)
    await end()
  })

  // id: soft-threshold-grace
  it('waits out a soft threshold, and gives its pods a grace', async () => {
    const { clock, log, shortages, setAvailable, end } = await rig({
      pods: [{ name: 'web', memory: 300, endsAfterMs: 10 }],
      soft: {
        thresholds: { 'memory.available': { kind: 'amount', amount: 100 } },
        graceMs: 20_000,
        maxPodGraceSeconds: 20,
      },
    })
    setAvailable(50)
    await clock.advance(20_000)
    expect(log).toEqual([])
    expect(shortages).toEqual([['MemoryPressure']])
    await clock.advance(10_000)
    expect(log).toEqual([`30 s: evict web, grace 20 s: ${low} 50. `])
    await end()
  })

  it('lets a condition go after the transition period, and says so once', async () => {
    const { clock, pressure, relaxed, reasons, setAvailable, end } = await rig({ transitionMs: 30_000 })
    setAvailable(50)
    await clock.advance(10_000)
    setAvailable(500)
    await clock.advance(20_000)
    expect(pressure.conditions).toEqual(['MemoryPressure'])
    expect(relaxed()).toBe(0)
    await clock.advance(20_000)
    expect(pressure.conditions).toEqual([])
    const before = relaxed()
    await clock.advance(20_000)
    expect(relaxed()).toBe(before + 2)
    expect(reasons()).toEqual([
      'NodeHasInsufficientMemory',
      'EvictionThresholdMet',
      'NodeHasSufficientMemory',
    ])
    await end()
  })

  it('refuses new pods meanwhile: under memory pressure the best-effort ones, otherwise all but critical ones', async () => {
    const { clock, pressure, setAvailable, end } = await rig()
    const bestEffort = makePod()
    const requests = { cpu: '100m' }
    const burstable = makePod({ containers: [{ name: 'main', resources: { requests } }] })
    const critical = makePod({ spec: { priority: 2_000_000_000 } })
    expect(pressure.refusal(bestEffort)).toBeUndefined()
    setAvailable(50)
    await clock.advance(10_000)
    expect(pressure.refusal(bestEffort)).toEqual({
      reason: 'NodeUnderPressure',
      message: 'The node had condition: [MemoryPressure]. ',
    })
    expect(pressure.refusal(burstable)).toBeUndefined()
    expect(pressure.refusal(critical)).toBeUndefined()
    // The condition lasts, but nothing is short any more.
    setAvailable(500)
    await clock.advance(1000)
    expect(pressure.conditions).toEqual(['MemoryPressure'])
    expect(pressure.refusal(bestEffort)).toBeUndefined()
    await end()
  })
})
