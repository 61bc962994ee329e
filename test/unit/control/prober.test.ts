import { describe, expect, it } from 'vitest'
import type { ProbeKind } from '../../../src/decide/plan/pod-facts.ts'
import { Prober } from '../../../src/control/pod/prober.ts'
import type { ProbeResultEvent } from '../../../src/control/pod/prober.ts'
import type { ProbedContainer, ProbedPod, ProbedSpec } from '../../../src/control/pod/prober-worker.ts'
import type { PodEvent } from '../../../src/pod/state/pod-event.ts'
import type { Probe } from '../../../src/pod/schema/container-schema.ts'
import type { ProbeOutcome } from '../../../src/probes/probe-outcome.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { StallingClock } from './stalling-clock.ts'

const base: Probe = {
  initialDelaySeconds: 0,
  timeoutSeconds: 1,
  periodSeconds: 10,
  successThreshold: 1,
  failureThreshold: 3,
}
const good: ProbeOutcome = { result: 'success', output: '' }
const bad: ProbeOutcome = { result: 'failure', output: 'sick' }
const errored: ProbeOutcome = { result: 'unknown', output: 'no runtime' }

interface Sent {
  readonly kind: string
  readonly containerId: string
  readonly atMs: number
  readonly signal: AbortSignal
}

/** A prober over a clock, with probes told apart by what they exec and answered by `answer`. */
class Rig<C extends ManualClock | StallingClock> {
  readonly sent: Sent[] = []
  readonly results: ProbeResultEvent[] = []
  readonly events: PodEvent[] = []
  readonly prober: Prober
  readonly clock: C
  readonly answers: Record<string, ProbeOutcome | ((signal: AbortSignal) => Promise<ProbeOutcome>)> = {}

  /** `aged`: podd has run long enough to spread nothing any more. */
  constructor(clock: C, random: () => number = () => 0) {
    this.clock = clock
    this.prober = new Prober({
      clock,
      random,
      runProbe: async (probe, target, signal) => {
        const kind = probe.exec?.command[0] ?? ''
        this.sent.push({ kind, containerId: target.containerId, atMs: clock.monotonicMs(), signal })
        const answer = this.answers[kind] ?? good
        return typeof answer === 'function' ? answer(signal) : answer
      },
      events: { record: (event) => this.events.push(event) },
      onResult: (event) => this.results.push(event),
    })
  }

  pod(containers: readonly ProbedContainer[], change: Partial<ProbedPod> = {}): ProbedPod {
    return {
      pod: { namespace: 'default', name: 'web', uid: 'u1' },
      podIps: ['10.0.0.1'],
      ending: false,
      containers,
      ...change,
    }
  }

  set(spec: Partial<ProbedSpec>, containerId = 'c1', change: Partial<ProbedPod> = {}): void {
    const { wallMs } = { wallMs: this.startedWallMs ?? this.clock.wallMs() }
    const container = { name: 'app', containerId, startedAtMs: wallMs, spec: { ports: [], ...spec } }
    this.prober.setPod(this.pod([container], change))
  }

  startedWallMs: number | undefined

  times(kind: string): number[] {
    return this.sent.filter((one) => one.kind === kind).map((one) => one.atMs)
  }

  outcome(): string[] {
    return this.results.map(({ probe, result }) => `${probe} ${result}`)
  }
}

function probe(kind: string, change: Partial<Probe> = {}): Probe {
  return { ...base, exec: { command: [kind] }, ...change }
}

const liveness = (change: Partial<Probe> = {}) => ({ livenessProbe: probe('liveness', change) })
const readiness = (change: Partial<Probe> = {}) => ({ readinessProbe: probe('readiness', change) })
const startup = (change: Partial<Probe> = {}) => ({ startupProbe: probe('startup', change) })

describe('timing', () => {
  it('probes at once, then every period', async () => {
    const rig = new Rig(new ManualClock())
    rig.set(readiness())
    await rig.clock.advance(25_000)
    expect(rig.times('readiness')).toEqual([0, 10_000, 20_000])
    expect(rig.outcome()).toEqual(['readiness success'])
  })

  it('waits for the initial delay, counted from the start of the container', async () => {
    const rig = new Rig(new ManualClock())
    rig.startedWallMs = rig.clock.wallMs() - 2_000
    rig.set(liveness({ initialDelaySeconds: 5 }))
    await rig.clock.advance(14_000)
    expect(rig.times('liveness')).toEqual([3_000, 13_000])
  })

  it('waits no longer than the delay when the wall clock is wrong', async () => {
    const rig = new Rig(new ManualClock())
    rig.startedWallMs = rig.clock.wallMs() + 3_600_000
    rig.set(liveness({ initialDelaySeconds: 5 }))
    await rig.clock.advance(5_000)
    expect(rig.times('liveness')).toEqual([5_000])
  })

  it('spreads first probes only within the first period after the start of podd', async () => {
    const rig = new Rig(new ManualClock(), () => 0.5)
    rig.set(readiness())
    await rig.clock.advance(20_000)
    expect(rig.times('readiness')).toEqual([5_000, 15_000])
    const later = rig.pod([
      { name: 'b', containerId: 'c9', startedAtMs: rig.clock.wallMs(), spec: { ports: [], ...liveness() } },
    ])
    rig.prober.setPod({ ...later, pod: { ...later.pod, uid: 'u2' } })
    await rig.clock.advance(0)
    expect(rig.times('liveness')).toEqual([20_000])
  })

  it('sends no second probe while one is under way, and the next one right after it', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['readiness'] = async (signal) => {
      await rig.clock.sleep(2_500, signal)
      return good
    }
    rig.set(readiness({ periodSeconds: 1, timeoutSeconds: 5 }))
    await rig.clock.advance(6_000)
    expect(rig.times('readiness')).toEqual([0, 2_500, 5_000])
  })

  it('takes repeated tellings of the same pod calmly', async () => {
    const rig = new Rig(new ManualClock())
    rig.startedWallMs = rig.clock.wallMs()
    for (let i = 0; i < 19; i += 1) {
      rig.set({ ...readiness(), ...liveness() })
      await rig.clock.advance(1_000)
    }
    expect(rig.times('readiness')).toEqual([0, 10_000])
    expect(rig.times('liveness')).toEqual([0, 10_000])
  })

  it('needs one timer for each probe, and none once it is stopped', () => {
    const rig = new Rig(new ManualClock(), Math.random)
    for (let i = 0; i < 300; i += 1) {
      rig.prober.setPod({
        pod: { namespace: 'default', name: `p${i}`, uid: `u${i}` },
        podIps: ['10.0.0.1'],
        ending: false,
        containers: [
          { name: 'a', containerId: `c${i}`, startedAtMs: 0, spec: { ports: [], ...readiness() } },
        ],
      })
    }
    expect(rig.clock.pendingTimers).toBe(300)
    rig.prober.stop()
    expect(rig.clock.pendingTimers).toBe(0)
  })
})

describe('verdicts', () => {
  it('are there once there is something to probe', async () => {
    const rig = new Rig(new ManualClock())
    const verdict = (kind: ProbeKind, id: string) => rig.prober.verdicts('u1')[id]?.[kind]
    expect(verdict('readiness', 'c1')).toBeUndefined()
    rig.set(readiness())
    expect(verdict('readiness', 'c1')).toBe('failure')
    await rig.clock.advance(1)
    expect(verdict('readiness', 'c1')).toBe('success')
    rig.prober.removePod('u1')
    rig.set(readiness())
    expect(verdict('readiness', 'c1')).toBe('failure')
  })

  it('stand by container id, and only for what is probed', async () => {
    const rig = new Rig(new ManualClock())
    rig.set({ ...readiness({ initialDelaySeconds: 5 }), ...liveness({ initialDelaySeconds: 5 }) })
    const verdict = (kind: ProbeKind, id: string) => rig.prober.verdicts('u1')[id]?.[kind]
    expect(verdict('readiness', 'c1')).toBe('failure')
    expect(verdict('liveness', 'c1')).toBe('success')
    expect(verdict('startup', 'c1')).toBeUndefined()
    expect(verdict('readiness', 'c0')).toBeUndefined()
    expect(rig.prober.verdicts('other')['c1']?.readiness).toBeUndefined()
    await rig.clock.advance(5_000)
    expect(verdict('readiness', 'c1')).toBe('success')
    expect(rig.outcome()).toEqual(['readiness success'])
  })

  it('flip readiness both ways within its thresholds', async () => {
    const rig = new Rig(new ManualClock())
    rig.set(readiness({ periodSeconds: 1, failureThreshold: 2 }))
    await rig.clock.advance(0)
    rig.answers['readiness'] = bad
    await rig.clock.advance(2_000)
    rig.answers['readiness'] = good
    await rig.clock.advance(1_000)
    expect(rig.outcome()).toEqual(['readiness success', 'readiness failure', 'readiness success'])
    expect(rig.results[1]?.message).toBe('Readiness probe failed: sick')
  })

  it('hold liveness after its failure until there is a new container', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['liveness'] = bad
    rig.set(liveness({ periodSeconds: 1 }))
    await rig.clock.advance(10_000)
    expect(rig.times('liveness')).toEqual([0, 1_000, 2_000])
    rig.set(liveness({ periodSeconds: 1 }))
    await rig.clock.advance(5_000)
    expect(rig.times('liveness')).toHaveLength(3)
    rig.answers['liveness'] = good
    rig.startedWallMs = rig.clock.wallMs()
    rig.set(liveness({ periodSeconds: 1 }), 'c2')
    await rig.clock.advance(1_000)
    expect(rig.times('liveness')).toEqual([0, 1_000, 2_000, 15_000, 16_000])
    expect(rig.outcome()).toEqual(['liveness failure'])
    expect(rig.prober.verdicts('u1')['c2']?.liveness).toBe('success')
    expect(rig.prober.reports('u1')).toMatchObject([
      {
        containerId: 'c2',
        counts: { success: 2, failure: 3 },
        lastFailure: { containerId: 'c1', message: 'Liveness probe failed: sick' },
      },
    ])
  })

  it('of a new container begin with a clean count', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['liveness'] = bad
    rig.set(liveness({ periodSeconds: 1 }))
    await rig.clock.advance(1_000)
    rig.set(liveness({ periodSeconds: 1 }), 'c2')
    await rig.clock.advance(1_000)
    expect(rig.outcome()).toEqual([])
    await rig.clock.advance(1_000)
    expect(rig.outcome()).toEqual(['liveness failure'])
  })

  it('hold liveness and readiness off until the startup probe has passed, then ask them at once', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['startup'] = bad
    rig.set({
      ...startup({ periodSeconds: 1, failureThreshold: 30 }),
      ...readiness({ periodSeconds: 7 }),
      ...liveness({ periodSeconds: 7 }),
    })
    await rig.clock.advance(9_500)
    expect(rig.times('readiness')).toEqual([])
    expect(rig.times('liveness')).toEqual([])
    rig.answers['startup'] = good
    await rig.clock.advance(20_000)
    expect(rig.times('startup')).toHaveLength(11)
    expect(rig.times('readiness')).toEqual([10_000, 17_000, 24_000])
    expect(rig.times('liveness')).toEqual([10_000, 17_000, 24_000])
    expect(rig.outcome()).toEqual(['startup success', 'readiness success'])
  })

  it('kill a container whose startup never passes, and gate its successor anew', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['startup'] = bad
    const spec = { ...startup({ periodSeconds: 1 }), ...liveness() }
    rig.set(spec)
    await rig.clock.advance(5_000)
    expect(rig.outcome()).toEqual(['startup failure'])
    expect(rig.times('startup')).toHaveLength(3)
    rig.set(spec, 'c2')
    await rig.clock.advance(0)
    expect(rig.times('startup')).toHaveLength(4)
    expect(rig.times('liveness')).toEqual([])
  })

  // id: taken-over-before-restart
  it('are taken over from before a restart of podd', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['readiness'] = bad
    rig.prober.setPod(
      rig.pod([
        {
          name: 'app',
          containerId: 'c1',
          startedAtMs: 0,
          spec: { ports: [], ...startup(), ...readiness({ periodSeconds: 1 }) },
          adopted: { started: true, ready: true },
        },
      ]),
    )
    expect(rig.prober.verdicts('u1')['c1']?.readiness).toBe('success')
    await rig.clock.advance(5_000)
    expect(rig.times('startup')).toEqual([])
    expect(rig.outcome()).toEqual(['readiness failure'])
  })
})

describe('an ending pod', () => {
  // id: liveness-startup-stopped-once
  it('has liveness and startup stopped, at once and quietly, and readiness going on', async () => {
    const rig = new Rig(new ManualClock())
    const never = (signal: AbortSignal) =>
      new Promise<ProbeOutcome>((resolve) => {
        signal.addEventListener('abort', () => resolve(errored))
      })
    rig.answers['liveness'] = never
    const spec = { ...liveness({ periodSeconds: 1 }), ...readiness({ periodSeconds: 1 }) }
    rig.set(spec)
    await rig.clock.advance(500)
    rig.set(spec, 'c1', { ending: true })
    expect(rig.sent.find(({ kind }) => kind === 'liveness')?.signal.aborted).toBe(true)
    rig.answers['readiness'] = bad
    await rig.clock.advance(5_000)
    expect(rig.times('liveness')).toEqual([0])
    expect(rig.outcome()).toEqual(['readiness success', 'readiness failure'])
  })

  it('lets go of a startup probe without a failure', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['startup'] = bad
    rig.set(startup({ failureThreshold: 1, periodSeconds: 1, initialDelaySeconds: 1 }))
    rig.set(startup({ failureThreshold: 1, periodSeconds: 1, initialDelaySeconds: 1 }), 'c1', {
      ending: true,
    })
    await rig.clock.advance(5_000)
    expect(rig.times('startup')).toEqual([])
    expect(rig.outcome()).toEqual(['startup success'])
  })
})

describe('a probe of what has gone', () => {
  const hang = (signal: AbortSignal) =>
    new Promise<ProbeOutcome>((resolve) => {
      signal.addEventListener('abort', () => resolve(bad))
    })

  it.each<[string, (rig: Rig<ManualClock>) => void]>([
    ['pod', (rig) => rig.prober.removePod('u1')],
    ['container', (rig) => rig.prober.setPod(rig.pod([]))],
    ['probe', (rig) => rig.set({})],
    ['daemon', (rig) => rig.prober.stop()],
  ])('of a %s ends at once and counts for nothing', async (_what, remove) => {
    const rig = new Rig(new ManualClock())
    rig.answers['liveness'] = hang
    rig.set(liveness({ failureThreshold: 1 }))
    await rig.clock.advance(10)
    remove(rig)
    expect(rig.sent[0]?.signal.aborted).toBe(true)
    await rig.clock.advance(60_000)
    expect(rig.sent).toHaveLength(1)
    expect(rig.results).toEqual([])
    expect(rig.events).toEqual([])
    expect(rig.clock.pendingTimers).toBe(0)
  })

  it('leaves the next container of that name alone', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['liveness'] = hang
    rig.set(liveness({ failureThreshold: 1 }))
    await rig.clock.advance(10)
    rig.answers['liveness'] = good
    rig.set(liveness({ failureThreshold: 1 }), 'c2')
    await rig.clock.advance(10)
    expect(rig.sent.map(({ containerId }) => containerId)).toEqual(['c1', 'c2'])
    expect(rig.results).toEqual([])
  })
})

describe('probing that goes wrong', () => {
  it('is tried three times, told of, and counts for nothing', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['liveness'] = errored
    rig.set(liveness({ failureThreshold: 1 }))
    await rig.clock.advance(0)
    expect(rig.sent).toHaveLength(3)
    expect(rig.results).toEqual([])
    expect(rig.events).toEqual([
      {
        pod: { namespace: 'default', name: 'web', uid: 'u1' },
        container: 'app',
        type: 'Warning',
        reason: 'Unhealthy',
        message: 'Liveness probe errored and resulted in unknown state: no runtime',
      },
    ])
    expect(rig.prober.reports('u1')[0]?.counts).toEqual({ success: 0, failure: 0, unknown: 1, repeated: 0 })
  })

  it('may also throw', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['liveness'] = () => Promise.reject(new Error('boom'))
    rig.set(liveness())
    await rig.clock.advance(10_000)
    expect(rig.sent).toHaveLength(6)
    expect(rig.events[0]?.message).toContain('boom')
  })

  it('tells of a warning as such, and counts it as a success', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['readiness'] = { result: 'warning', output: 'elsewhere' }
    rig.set(readiness())
    await rig.clock.advance(0)
    expect(rig.events).toMatchObject([
      { reason: 'ProbeWarning', message: 'Readiness probe warning: elsewhere' },
    ])
    expect(rig.outcome()).toEqual(['readiness success'])
    expect(rig.prober.reports('u1')[0]).toMatchObject({ lastFailure: undefined, counts: { success: 1 } })
  })

  it('gives a bounded number of events', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['readiness'] = bad
    rig.set(readiness({ periodSeconds: 1 }))
    await rig.clock.advance(600_000)
    expect(rig.events.length).toBeGreaterThanOrEqual(25)
    expect(rig.events.length).toBeLessThanOrEqual(27)
    expect(rig.prober.reports('u1')[0]?.counts.failure).toBe(601)
  })
})

describe("podd's own lateness", () => {
  const slow: ProbeOutcome = { result: 'failure', output: 'slow', timedOut: true }

  it('repeats a probe that timed out while podd stalled', async () => {
    const rig = new Rig(new StallingClock())
    let stalls = 1
    rig.answers['liveness'] = async () => {
      if (stalls > 0) {
        stalls -= 1
        rig.clock.stall(1_100)
        return slow
      }
      return good
    }
    rig.set(liveness({ failureThreshold: 1 }))
    await rig.clock.advance(1)
    expect(rig.sent).toHaveLength(2)
    expect(rig.results).toEqual([])
    expect(rig.events).toEqual([])
    expect(rig.prober.reports('u1')[0]?.counts).toEqual({ success: 1, failure: 0, unknown: 0, repeated: 1 })
  })

  it('lets the period go when it stalls again and again', async () => {
    const rig = new Rig(new StallingClock())
    rig.answers['liveness'] = async () => {
      rig.clock.stall(1_100)
      return slow
    }
    rig.set(liveness({ failureThreshold: 1 }))
    await rig.clock.advance(1)
    expect(rig.sent).toHaveLength(4)
    expect(rig.results).toEqual([])
  })

  it('does not shield a container for ever that never answers, while podd stalls a little all the time', async () => {
    const rig = new Rig(new StallingClock())
    rig.answers['liveness'] = async () => {
      rig.clock.stall(150)
      return slow
    }
    rig.set(liveness({ failureThreshold: 1 }))
    await rig.clock.advance(1)
    expect(rig.outcome()).toEqual(['liveness failure'])
    expect(rig.prober.reports('u1')[0]?.counts).toEqual({ success: 0, failure: 1, unknown: 0, repeated: 3 })
  })

  it('is no excuse for a timeout without a stall, nor for an answer', async () => {
    const rig = new Rig(new StallingClock())
    rig.answers['liveness'] = slow
    rig.answers['readiness'] = async () => {
      rig.clock.stall(1_100)
      return bad
    }
    rig.set({ ...liveness({ failureThreshold: 1 }), ...readiness() })
    await rig.clock.advance(1)
    expect(rig.outcome()).toContain('liveness failure')
    expect(rig.sent).toHaveLength(2)
  })
})

describe('the silence of the runtime', () => {
  it.each([good, bad, { ...bad, timedOut: true }])(
    'has the probe sent again, whatever came of it',
    async (late) => {
      const rig = new Rig(new ManualClock())
      let silences = 1
      rig.answers['liveness'] = async () => ((silences -= 1) === 0 ? { ...late, silentMs: 30_000 } : good)
      rig.set(liveness({ failureThreshold: 1 }))
      await rig.clock.advance(1)
      expect(rig.sent).toHaveLength(2)
      expect(rig.results).toEqual([])
      expect(rig.prober.reports('u1')[0]?.counts).toEqual({ success: 1, failure: 0, unknown: 0, repeated: 1 })
    },
  )

  it('spreads the probes that are sent again', async () => {
    const rig = new Rig(new ManualClock(), () => 0.5)
    let silences = 1
    rig.answers['liveness'] = async () => ((silences -= 1) === 0 ? { ...good, silentMs: 30_000 } : good)
    rig.set(liveness({ periodSeconds: 4 }))
    await rig.clock.advance(5_000)
    expect(rig.times('liveness')).toEqual([2_000, 4_000])
    rig.prober.stop()
    expect(rig.clock.pendingTimers).toBe(0)
  })

  it('is no verdict, as often as it comes', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['liveness'] = { ...bad, timedOut: true, silentMs: 900 }
    rig.set(liveness({ failureThreshold: 1 }))
    await rig.clock.advance(60_000)
    expect(rig.results).toEqual([])
    expect(rig.events).toEqual([])
  })

  it('does not shield a container for ever that fails while the runtime is slow', async () => {
    const rig = new Rig(new ManualClock())
    rig.answers['liveness'] = { ...bad, timedOut: true, silentMs: 300 }
    rig.set(liveness({ failureThreshold: 1 }))
    await rig.clock.advance(1)
    expect(rig.outcome()).toEqual(['liveness failure'])
  })
})
