import { beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { CriError } from '../../../src/runtime/cri-runtime.ts'
import type { HeldContainer } from '../../../src/decide/node/compare-runtime.ts'
import { RuntimeComparison } from '../../../src/control/runtime/runtime-comparison.ts'
import type { ComparisonEnv } from '../../../src/control/runtime/runtime-comparison.ts'
import type { PodEvent } from '../../../src/pod/state/pod-event.ts'
import { FakeRuntime } from '../../support/fake-runtime.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const pod = { namespace: 'default', name: 'web', uid: 'uid-web' }
const forgotten: HeldContainer = { id: 'lost', kind: 'container', pod, name: 'main' }

/** A containerd whose own containers a test sets; its CRI knows none. */
class Rig {
  readonly clock = new ManualClock()
  readonly events: PodEvent[] = []
  readonly problems: string[] = []
  readonly restarts: string[] = []
  readonly ended: string[] = []
  held: readonly HeldContainer[] = [forgotten]
  failure: Error | undefined
  roomProblem: string | undefined
  isReady = true
  connections = 1
  /** What containerd has after a restart. */
  heldNext: readonly HeldContainer[] = []
  endFailure: Error | undefined
  /** It has no task, and CRI no files of it. */
  isRemains = false
  readonly stop = new AbortController()
  readonly #own: boolean

  constructor(own = true) {
    this.#own = own
  }

  async ready(): Promise<void> {}

  begin(): RuntimeComparison {
    const comparison = new RuntimeComparison(this.#deps())
    void comparison.run((problem) => this.problems.push(problem), this.stop.signal)
    return comparison
  }

  #deps(): ComparisonEnv {
    const { clock } = this
    return {
      connection: this,
      calls: new FakeRuntime({ clock, images: [] }).runtime,
      held: {
        list: async () => {
          if (this.failure !== undefined) throw this.failure
          return this.held
        },
        hasTask: async () => !this.isRemains,
        end: async (id) => {
          if (this.endFailure !== undefined) throw this.endFailure
          this.ended.push(id)
          this.held = this.held.filter((container) => container.id !== id)
        },
      },
      own: this.#own
        ? {
            hasFiles: () => !this.isRemains,
            findRoomProblem: async () => this.roomProblem,
            restart: async (reason) => {
              this.restarts.push(reason)
              this.held = this.heldNext
              this.connections += 1
            },
          }
        : undefined,
      events: { record: (event) => void this.events.push(event) },
      clock,
      logger: silentLogger,
    }
  }
}

let rig: Rig

/** How a call that asks to pass ends, when the second look has been taken. */
async function outcome(comparison: RuntimeComparison): Promise<string> {
  const passing = comparison.pass(new AbortController().signal).then(
    () => 'passed',
    (error: unknown) => (error instanceof CriError ? `${error.code}: ${error.message}` : String(error)),
  )
  await rig.clock.advance(500)
  return passing
}

beforeEach(() => {
  rig = new Rig()
})

it('opens where CRI knows all, for this connection alone', async () => {
  rig.held = []
  const comparison = rig.begin()
  expect(comparison.isOpen()).toBe(false)
  expect(await outcome(comparison)).toBe('passed')
  expect(comparison.isOpen()).toBe(true)
  rig.isReady = false
  expect(comparison.isOpen()).toBe(false)
  rig.isReady = true
  rig.connections = 2
  expect(comparison.isOpen()).toBe(false)
  expect(await outcome(comparison)).toBe('passed')
  expect(rig.problems).toEqual([])
})

it('opens where a failed call has left a container', async () => {
  rig.isRemains = true
  expect(await outcome(rig.begin())).toBe('passed')
})

it('opens where the runtime is no containerd, and says so', async () => {
  rig.failure = new CriError('RUNTIME_UNSUPPORTED', 'unknown service')
  const comparison = rig.begin()
  expect(await outcome(comparison)).toBe('passed')
  expect(comparison.isContainerd).toBe(false)
  rig.failure = undefined
  rig.held = []
  rig.connections += 1
  expect(await outcome(comparison)).toBe('passed')
  expect(comparison.isContainerd).toBe(true)
})

it('opens where what was being made at the first look is known at the second', async () => {
  const comparison = rig.begin()
  const passing = comparison.pass(new AbortController().signal)
  await rig.clock.settle()
  rig.held = []
  await rig.clock.advance(500)
  await passing
  expect(rig.restarts).toEqual([])
})

it('stays closed, and is asked again, where containerd does not tell what it has', async () => {
  rig.failure = new Error('no answer')
  const comparison = rig.begin()
  expect(await outcome(comparison)).toBe('RUNTIME_UNAVAILABLE: no answer')
  rig.failure = undefined
  rig.held = []
  expect(await outcome(comparison)).toBe('passed')
})

it('does not open for a containerd that came while the one before was asked', async () => {
  rig.held = []
  const comparison = rig.begin()
  const passing = comparison.pass(new AbortController().signal)
  rig.isReady = false
  await expect(passing).rejects.toMatchObject({ code: 'RUNTIME_UNAVAILABLE' })
  expect(comparison.isOpen()).toBe(false)
})

it('leaves who stops waiting with its own reason', async () => {
  const comparison = rig.begin()
  const stop = new AbortController()
  const passing = comparison.pass(stop.signal)
  stop.abort(new Error('not needed any more'))
  await expect(passing).rejects.toThrow('not needed any more')
})

describe('of a containerd that has forgotten a container', () => {
  it('waits for room, then restarts it, and ends nothing that it finds again', async () => {
    rig.roomProblem = 'ENOSPC'
    const comparison = rig.begin()
    expect(await outcome(comparison)).toMatch(
      /^RUNTIME_UNAVAILABLE: .*container main of default\/web.*ENOSPC$/u,
    )
    await rig.clock.advance(60_000)
    expect(rig.problems).toEqual([expect.stringMatching(/ENOSPC$/u)])
    expect(rig.restarts).toEqual([])
    expect(comparison.isOpen()).toBe(false)
    rig.roomProblem = undefined
    await rig.clock.advance(10_000)
    expect(rig.restarts).toHaveLength(1)
    expect(comparison.isOpen()).toBe(true)
    expect([rig.ended, rig.events]).toEqual([[], []])
  })

  it('waits again where the disk is full once more when it is restarted', async () => {
    const comparison = rig.begin()
    rig.heldNext = [forgotten]
    await outcome(comparison)
    rig.roomProblem = 'ENOSPC'
    await rig.clock.advance(60_000)
    expect(rig.restarts).toHaveLength(1)
    expect(rig.ended).toEqual([])
    rig.roomProblem = undefined
    rig.heldNext = []
    await rig.clock.advance(10_000)
    expect(rig.restarts).toHaveLength(2)
    expect(rig.ended).toEqual([])
    expect(comparison.isOpen()).toBe(true)
  })

  it('ends what it does not find again, with an event, and opens', async () => {
    rig.heldNext = [forgotten]
    const comparison = rig.begin()
    await outcome(comparison)
    await rig.clock.advance(10_000)
    expect(rig.restarts).toHaveLength(1)
    expect(rig.ended).toEqual(['lost'])
    expect(rig.events).toEqual([
      expect.objectContaining({ pod, container: 'main', type: 'Warning', reason: 'Killing' }),
    ])
    expect(comparison.isOpen()).toBe(true)
  })

  it('tries again to end what does not end, and stays closed', async () => {
    rig.heldNext = [forgotten]
    rig.endFailure = new Error('it does not end')
    const comparison = rig.begin()
    await outcome(comparison)
    await rig.clock.advance(20_000)
    expect(comparison.isOpen()).toBe(false)
    rig.endFailure = undefined
    await rig.clock.advance(5000)
    expect(rig.ended).toEqual(['lost'])
    expect(rig.events).toHaveLength(1)
    expect(comparison.isOpen()).toBe(true)
  })

  it('does not restart another one that came by itself and knows it', async () => {
    rig.roomProblem = 'ENOSPC'
    const comparison = rig.begin()
    await outcome(comparison)
    rig.roomProblem = undefined
    rig.held = []
    rig.connections += 1
    await rig.clock.advance(10_000)
    expect(rig.restarts).toEqual([])
    expect(comparison.isOpen()).toBe(true)
  })

  it("leaves somebody else's alone, and says what to do", async () => {
    rig = new Rig(false)
    const comparison = rig.begin()
    expect(await outcome(comparison)).toMatch(/restart containerd$/u)
    await rig.clock.advance(60_000)
    expect([rig.restarts, rig.ended]).toEqual([[], []])
    rig.held = []
    rig.connections += 1
    expect(await outcome(comparison)).toBe('passed')
  })
})
