import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import type { LogFields } from '../../../src/base/logger.ts'
import { NodeJobs } from '../../../src/control/node/node-jobs.ts'
import { followProgramJob, selfCheckJob } from '../../../src/daemon/watch-self.ts'
import type { HealthCheck } from '../../../src/decide/node/judge-health.ts'
import type { NodeEvent } from '../../../src/pod/state/pod-event.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const mi = 1024 * 1024

/** The job over a clock that the test moves. */
function begin({ isWatched = true, restarts = 0 } = {}) {
  const clock = new ManualClock()
  const state = {
    failure: undefined as string | undefined,
    residentBytes: 90 * mi,
    isBusy: false,
    feedFails: false,
    fed: [] as number[],
    restarts: [] as number[],
    events: [] as NodeEvent[],
    logged: [] as string[],
  }
  const note = ({ reason = '' }: LogFields, message: string): void =>
    void state.logged.push([message, reason].filter((word) => word !== '').join(' | '))
  const jobs = new NodeJobs({ clock, logger: silentLogger })
  jobs.add(
    selfCheckJob({
      checks: (): readonly HealthCheck[] => [
        { name: 'ping', about: 'live' },
        {
          name: 'sync-loop',
          about: 'live',
          ...(state.failure === undefined ? {} : { failure: state.failure }),
        },
        { name: 'runtime', about: 'ready', failure: 'it is away' },
      ],
      watchdog: isWatched
        ? {
            periodMs: 180_000,
            async feed() {
              if (state.feedFails) throw new Error('not taken')
              state.fed.push(clock.monotonicMs() / 1000)
            },
          }
        : undefined,
      memory: {
        residentBytes: () => state.residentBytes,
        limitBytes: 256 * mi,
        restarts,
        isBusy: () => state.isBusy,
        restart: (count) => void state.restarts.push(count),
      },
      events: { recordNode: (event) => void state.events.push(event) },
      clock,
      logger: { ...silentLogger, error: note, info: note, warn: note },
    }),
  )
  void jobs.run(new AbortController().signal)
  return { clock, state, jobs }
}

describe('the watchdog', () => {
  it('is fed once in half of its period', async () => {
    const { clock, state } = begin()
    await clock.advance(3_600_000)
    expect(state.fed.slice(0, 3)).toEqual([45, 135, 225])
    expect(state.fed).toHaveLength(40)
  })

  it('is not fed while a check of podd itself fails, and in time when it passes again', async () => {
    const { clock, state } = begin()
    state.failure = 'an event has waited for 121 s'
    await clock.advance(91_000)
    expect(state.fed).toEqual([])
    state.failure = undefined
    await clock.advance(50_000)
    expect(state.fed).toEqual([135])
    expect(state.logged).toEqual([
      'the self-check fails | sync-loop: an event has waited for 121 s',
      'the self-check passes again',
    ])
  })

  it('is fed again soon where that failed', async () => {
    const { clock, state, jobs } = begin()
    state.feedFails = true
    await clock.advance(91_000)
    expect(jobs.reports()[0]?.error).toBe('not taken')
    state.feedFails = false
    await clock.advance(45_000)
    expect(state.fed).toEqual([135])
  })

  it('is none where nobody waits for a sign of life; podd is looked at each minute', async () => {
    const { clock, jobs } = begin({ isWatched: false })
    await clock.advance(3_600_000)
    expect(jobs.reports()[0]).toMatchObject({ name: 'self-check', runs: 60 })
  })
})

describe("podd's memory", () => {
  it('above its limit restarts podd, once, with an event', async () => {
    const { clock, state } = begin({ isWatched: false, restarts: 0 })
    state.residentBytes = 300 * mi
    await clock.advance(540_000)
    expect(state.restarts).toEqual([])
    await clock.advance(60_000)
    expect(state.restarts).toEqual([1])
    expect(state.events).toEqual([
      {
        type: 'Warning',
        reason: 'DaemonMemoryLimit',
        message:
          'podd takes 300.0 MiB of memory, more than daemonMemoryLimit (256.0 MiB): it restarts itself, and the pods keep running',
      },
    ])
  })

  it('above it for a moment does not', async () => {
    const { clock, state } = begin({ isWatched: false })
    await clock.advance(3_600_000)
    state.residentBytes = 300 * mi
    await clock.advance(120_000)
    state.residentBytes = 200 * mi
    await clock.advance(60_000)
    state.residentBytes = 300 * mi
    await clock.advance(120_000)
    expect(state.restarts).toEqual([])
  })

  it('waits for a drain of the host, and longer after each restart that did not help', async () => {
    const { clock, state } = begin({ isWatched: false, restarts: 3 })
    state.residentBytes = 300 * mi
    state.isBusy = true
    await clock.advance(80 * 60_000)
    state.isBusy = false
    expect(state.restarts).toEqual([])
    await clock.advance(60_000)
    expect(state.restarts).toEqual([4])
    const { clock: other, state: early } = begin({ isWatched: false, restarts: 3 })
    early.residentBytes = 300 * mi
    await other.advance(79 * 60_000)
    expect(early.restarts).toEqual([])
  })
})

/** Source: openclaw/openclaw#71348, eltmon/overdeck#2422. */
describe('a program that is replaced', () => {
  const follow = () => {
    const directory = mkdtempSync(join(tmpdir(), 'podd-program-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const path = join(directory, 'main.js')
    writeFileSync(path, "import './cli-1.js'")
    const clock = new ManualClock()
    const state = { restarts: 0, isBusy: false, reasons: [] as string[] }
    const jobs = new NodeJobs({ clock, logger: silentLogger })
    jobs.add(
      followProgramJob({
        path,
        isBusy: () => state.isBusy,
        restart: () => void (state.restarts += 1),
        events: { recordNode: ({ reason }) => void state.reasons.push(reason) },
        logger: silentLogger,
      }),
    )
    void jobs.run(new AbortController().signal)
    return { path, clock, state }
  }

  it('by another version restarts podd when it has stayed so for a minute, but not in a drain', async () => {
    const { path, clock, state } = follow()
    await clock.advance(600_000)
    state.isBusy = true
    writeFileSync(path, "import './cli-22.js'")
    await clock.advance(300_000)
    expect([state.restarts, state.reasons]).toEqual([0, ['ProgramReplaced']])
    state.isBusy = false
    await clock.advance(60_000)
    expect(state.restarts).toBe(1)
  })

  it('by the same version, or that is gone for a time, restarts nothing', async () => {
    const { path, clock, state } = follow()
    await clock.advance(90_000)
    rmSync(path)
    await clock.advance(120_000)
    writeFileSync(path, "import './cli-1.js'")
    await clock.advance(600_000)
    expect([state.restarts, state.reasons]).toEqual([0, []])
  })

  it('by one version after the other restarts podd when the last one is there', async () => {
    const { path, clock, state } = follow()
    for (const version of ['two', 'three', 'fours']) {
      writeFileSync(path, version)
      await clock.advance(60_000)
      expect(state.restarts).toBe(0)
    }
    await clock.advance(60_000)
    expect(state.restarts).toBe(1)
  })
})
