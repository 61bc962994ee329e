import { beforeEach, describe, expect, it } from 'vitest'
import { RuntimePulse, RuntimeWatch } from '../../../src/control/runtime/runtime-watch.ts'
import { SilentContainerd } from '../../../src/runtime/containerd/start.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { StallingClock } from './stalling-clock.ts'

/** A runtime that is asked, and answers when it is told to. */
class Asked {
  asked = 0
  /** It answers at once. */
  awake = true
  #open: { resolve(): void; reject(error: unknown): void } | undefined

  ask = (): Promise<void> => {
    this.asked += 1
    if (this.awake) return Promise.resolve()
    return new Promise((resolve, reject) => {
      this.#open = { resolve, reject }
    })
  }

  wake(): void {
    this.awake = true
    this.#open?.resolve()
  }

  die(): void {
    this.#open?.reject(new Error('no connection'))
  }
}

let runtime: Asked
beforeEach(() => {
  runtime = new Asked()
})

describe('the pulse of a runtime', () => {
  it('is felt only while somebody waits for it', async () => {
    const clock = new ManualClock()
    const pulse = new RuntimePulse(clock, runtime.ask)
    await clock.advance(60_000)
    expect(runtime.asked).toBe(0)
    const mark = pulse.enter()
    await clock.advance(400)
    pulse.leave()
    expect(pulse.silentMs(mark)).toBe(0)
    await clock.advance(60_000)
    expect(runtime.asked).toBe(0)
    expect(clock.pendingTimers).toBe(0)
  })

  it('tells how long it was silent, one question at a time', async () => {
    const clock = new ManualClock()
    const pulse = new RuntimePulse(clock, runtime.ask)
    const mark = pulse.enter()
    await clock.advance(2_000)
    expect(pulse.silentMs(mark)).toBe(0)
    const asked = runtime.asked
    runtime.awake = false
    await clock.advance(30_500)
    expect(runtime.asked).toBe(asked + 1)
    expect(pulse.silentMs(mark)).toBe(30_000)
    const later = pulse.enter()
    expect(pulse.silentMs(later)).toBe(0)
    await clock.advance(1_000)
    runtime.wake()
    await clock.advance(5_000)
    expect(pulse.silentMs(later)).toBe(1_000)
    expect(pulse.silentMs(mark)).toBe(31_000)
    pulse.leave()
    pulse.leave()
    expect(clock.pendingTimers).toBe(0)
  })

  it('proves that it answers, or not', async () => {
    const clock = new ManualClock()
    const pulse = new RuntimePulse(clock, runtime.ask)
    expect(await pulse.answer()).toBe(true)
    runtime.awake = false
    const answer = pulse.answer()
    expect(pulse.isAsking).toBe(true)
    runtime.die()
    expect(await answer).toBe(false)
    expect(pulse.isAsking).toBe(false)
  })
})

describe('the watch over a runtime', () => {
  function watchWith(clock: ManualClock, onSilence: (silentMs: number) => void) {
    const pulse = new RuntimePulse(clock, () => runtime.ask())
    const stop = new AbortController()
    const nothing = (): void => {}
    void new RuntimeWatch({ clock, pulse, onGap: nothing, onClockSet: nothing, onSilence }).run(stop.signal)
    return { pulse, stop }
  }

  function watch<C extends ManualClock | StallingClock>(clock: C, isOwn = true) {
    const gaps: string[] = []
    const silences: number[] = []
    let clockSets = 0
    const pulse = new RuntimePulse(clock, runtime.ask)
    const onSilence = (silentMs: number): void => void silences.push(silentMs)
    const watched = new RuntimeWatch({
      clock,
      pulse,
      onGap: (message) => void gaps.push(message),
      onClockSet: () => (clockSets += 1),
      onSilence: isOwn ? onSilence : undefined,
    })
    const stop = new AbortController()
    const running = watched.run(stop.signal)
    return { clock, gaps, sets: () => clockSets, silences, pulse, watched, stop, running }
  }

  it('says nothing while the runtime answers, and ends when it is told to', async () => {
    const { clock, gaps, silences, stop, running } = watch(new ManualClock())
    await clock.advance(600_000)
    expect([gaps, silences]).toEqual([[], []])
    expect(runtime.asked).toBe(60)
    stop.abort()
    await running
    expect(clock.pendingTimers).toBe(0)
  })

  it('tells once of a silence, and how long it is, until the runtime answers', async () => {
    const { clock, gaps, silences } = watch(new ManualClock())
    runtime.awake = false
    await clock.advance(14_900)
    expect(gaps).toEqual([])
    await clock.advance(55_000)
    expect(gaps).toEqual(['the container runtime does not answer'])
    expect(silences.at(-1)).toBe(55_000)
    await clock.advance(100)
    expect(silences.at(-1)).toBe(60_000)
    runtime.wake()
    await clock.advance(600_000)
    expect(gaps).toHaveLength(1)
    expect(silences).toHaveLength(12)
  })

  describe('counts a silence on, where each question has a deadline,', () => {
    const deadlineMs = 120_000
    /** The runtime leaves each question unanswered until its deadline. */
    const hang = (clock: ManualClock): void => {
      runtime.awake = false
      const { ask } = runtime
      runtime.ask = () => {
        const asked = ask()
        void clock.sleep(deadlineMs).then(() => runtime.die())
        return asked
      }
    }

    it('and kills a containerd that works all the time after ten minutes', async () => {
      const clock = new ManualClock()
      hang(clock)
      let looks = 0
      const silent = new SilentContainerd(() => ({ ticks: (looks += 1) * 500, waitedMs: 0, diskBytes: 0 }))
      const kills: (readonly number[])[] = []
      const { stop } = watchWith(clock, (silentMs) => {
        const itsSilentMs = silent.note(silentMs, 7)
        if (itsSilentMs !== undefined) kills.push([clock.monotonicMs(), itsSilentMs])
      })
      await clock.advance(900_000)
      stop.abort()
      expect(kills).toHaveLength(1)
      const [[atMs = 0, silentMs = 0] = []] = kills
      expect(silentMs).toBe(600_000)
      // The first question is asked ten seconds after the beginning, and ends with its last period of five seconds.
      expect(atMs - 10_000).toBeGreaterThanOrEqual(600_000)
      expect(atMs - 10_000).toBeLessThan(640_000)
    })

    it('until it answers anybody', async () => {
      const clock = new ManualClock()
      hang(clock)
      const silences: number[] = []
      const { pulse, stop } = watchWith(clock, (silentMs) => void silences.push(silentMs))
      await clock.advance(10_000 + deadlineMs)
      expect(silences.at(-1)).toBeGreaterThanOrEqual(deadlineMs - 5000)
      runtime.awake = true
      expect(await pulse.answer()).toBe(true)
      runtime.awake = false
      silences.length = 0
      await clock.advance(15_000)
      stop.abort()
      expect(silences).toEqual([5000])
    })
  })

  it("asks somebody else's runtime nothing, but sees that a question is open", async () => {
    const { clock, gaps, pulse } = watch(new ManualClock(), false)
    runtime.awake = false
    await clock.advance(60_000)
    expect(runtime.asked).toBe(0)
    pulse.enter()
    await clock.advance(16_000)
    expect(gaps).toEqual(['the container runtime does not answer'])
  })

  it('tells that podd was stopped, whoever looks first', async () => {
    const { clock, gaps, watched } = watch(new StallingClock())
    await clock.advance(25_000)
    clock.stall(14_000)
    watched.look()
    expect(gaps).toEqual([])
    clock.stall(30_000)
    watched.look()
    watched.look()
    await clock.advance(30_000)
    expect(gaps).toEqual(['podd did not run for a while'])
  })

  it('takes no note of what was before it began', async () => {
    const clock = new StallingClock()
    const pulse = new RuntimePulse(clock, runtime.ask)
    const gaps: string[] = []
    const late = new RuntimeWatch({
      clock,
      pulse,
      onGap: (gap) => void gaps.push(gap),
      onClockSet: () => {},
      onSilence: undefined,
    })
    clock.stall(60_000)
    void late.run(new AbortController().signal)
    late.look()
    expect(gaps).toEqual([])
  })

  it('tells that the host was suspended, and takes a clock that is set for none', async () => {
    const { clock, gaps, watched, sets } = watch(new ManualClock())
    await clock.advance(5_000)
    clock.suspend(3_600_000)
    watched.look()
    expect(gaps).toEqual(['the host was suspended'])
    expect(sets()).toBe(1)
    clock.setWall(clock.wallMs() - 7_200_000)
    await clock.advance(60_000)
    // A board without a battery learns the time some while after its boot.
    clock.setWall(clock.wallMs() + 86_400_000 * 20_000)
    await clock.advance(60_000)
    expect(gaps).toHaveLength(1)
    expect(sets()).toBe(3)
  })
})
