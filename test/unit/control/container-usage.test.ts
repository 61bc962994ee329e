import { describe, expect, it } from 'vitest'
import { usageMeter } from '../../../src/control/serving/usage.ts'
import type * as cri from '../../../src/cri-types/cri-v1.ts'
import type { ContainerUsage } from '../../../src/pod/state/usage.ts'
import { ManualClock } from '../../support/manual-clock.ts'

/** A runtime whose containers use CPU as the test says; it counts how often it is asked. */
class FakeStats {
  readonly clock = new ManualClock()
  readonly meter = usageMeter(
    {
      containers: async () => {
        this.asked += 1
        const all = [...this.#used]
        return {
          stats: all.filter(([name]) => !this.hung.has(name)).map(([name, used]) => this.#stats(name, used)),
          unanswered: new Set([...this.hung].map((name) => `id-${name}`)),
        }
      },
    },
    this.clock,
  )
  asked = 0
  readonly hung = new Set<string>()
  readonly #used = new Map<string, { readonly cores: number; readonly sinceMs: number }>()

  run(name: string, cores: number): void {
    this.#used.set(name, { cores, sinceMs: this.clock.monotonicMs() })
  }

  #stats(name: string, { cores, sinceMs }: { cores: number; sinceMs: number }): cri.ContainerStats {
    const nowMs = this.clock.monotonicMs()
    const labels = { 'io.kubernetes.pod.uid': 'uid-web', 'io.kubernetes.container.name': name }
    return {
      attributes: { id: `id-${name}`, metadata: null, labels, annotations: {} },
      cpu: {
        timestamp: this.clock.wallMs() * 1e6,
        usageCoreNanoSeconds: { value: (nowMs - sinceMs) * 1e6 * cores },
        usageNanoCores: null,
      },
      memory: { workingSetBytes: { value: 4096 } } as cri.MemoryUsage,
      writableLayer: null,
      swap: null,
    }
  }

  async read(): Promise<readonly ContainerUsage[]> {
    const reading = this.meter(new AbortController().signal)
    await this.clock.advance(1000)
    return reading
  }
}

describe('the usage meter', () => {
  it('takes two readings a second apart the first time', async () => {
    const fake = new FakeStats()
    fake.run('main', 0.25)
    await fake.clock.advance(50_000)
    expect(await fake.read()).toEqual([
      {
        uid: 'uid-web',
        container: 'main',
        atMs: fake.clock.wallMs(),
        windowMs: 1000,
        cpuNanoCores: 250_000_000,
        memoryBytes: 4096,
      },
    ])
    expect(fake.asked).toBe(2)
  })

  it('goes by the reading before, while that tells of the present', async () => {
    const fake = new FakeStats()
    fake.run('main', 2)
    await fake.read()
    await fake.clock.advance(30_000)
    const [usage] = await fake.meter(new AbortController().signal)
    expect(usage).toMatchObject({ windowMs: 30_000, cpuNanoCores: 2e9 })
    expect(fake.asked).toBe(3)
    await fake.clock.advance(61_000)
    await fake.read()
    expect(fake.asked).toBe(5)
  })

  it('counts all that a container has used which was not there before', async () => {
    const fake = new FakeStats()
    await fake.read()
    await fake.clock.advance(6000)
    fake.run('young', 1)
    await fake.clock.advance(4000)
    const [usage] = await fake.meter(new AbortController().signal)
    expect(usage).toMatchObject({ container: 'young', windowMs: 10_000, cpuNanoCores: 4e8 })
  })

  it('does not take a container for new that gave no answer the time before', async () => {
    const fake = new FakeStats()
    fake.run('main', 1)
    await fake.clock.advance(500_000)
    fake.hung.add('main')
    expect(await fake.read()).toEqual([])
    fake.hung.clear()
    await fake.clock.advance(10_000)
    expect(await fake.read()).toEqual([])
    await fake.clock.advance(10_000)
    expect(await fake.read()).toMatchObject([{ container: 'main', cpuNanoCores: 1e9 }])
  })

  it('leaves out what does not run and what is of no pod', async () => {
    const clock = new ManualClock()
    const attributes = { id: 'x', metadata: null, annotations: {} }
    const labels = { 'io.kubernetes.pod.uid': 'uid', 'io.kubernetes.container.name': 'main' }
    const none = { cpu: null, memory: null, writableLayer: null, swap: null, io: null }
    const cpu = { timestamp: 1, usageCoreNanoSeconds: { value: 1 }, usageNanoCores: null }
    const stats: cri.ContainerStats[] = [
      { ...none, attributes: { ...attributes, labels } },
      { ...none, attributes: { ...attributes, id: 'y', labels: {} }, cpu },
      { ...none, attributes: null, cpu },
    ]
    const meter = usageMeter({ containers: async () => ({ stats, unanswered: new Set() }) }, clock)
    const reading = meter(new AbortController().signal)
    await clock.advance(1000)
    expect(await reading).toEqual([])
  })

  it('never tells of less than nothing, should a runtime count anew', async () => {
    const fake = new FakeStats()
    fake.run('main', 1)
    await fake.read()
    fake.run('main', 1)
    await fake.clock.advance(200)
    const reading = fake.meter(new AbortController().signal)
    await fake.clock.advance(800)
    expect(await reading).toMatchObject([{ cpuNanoCores: 0 }])
  })
})
