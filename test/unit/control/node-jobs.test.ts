import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import type { LogFields } from '../../../src/base/logger.ts'
import { NodeJobs } from '../../../src/control/node/node-jobs.ts'
import type { NodeJob } from '../../../src/control/node/node-jobs.ts'
import { ManualClock } from '../../support/manual-clock.ts'

function rig(...jobs: readonly NodeJob<string>[]) {
  const clock = new ManualClock(0)
  const warnings: LogFields[] = []
  const logger = { ...silentLogger, warn: (fields: LogFields) => void warnings.push(fields) }
  const nodeJobs = new NodeJobs<string>({ clock, logger })
  for (const job of jobs) nodeJobs.add(job)
  const stop = new AbortController()
  const running = nodeJobs.run(stop.signal)
  const end = async (): Promise<void> => {
    stop.abort(new Error('podd stops'))
    await running
  }
  return { clock, warnings, nodeJobs, end }
}

function job(name: string, run: NodeJob['run'], periodMs = 10_000): NodeJob<string> {
  return { name, periodMs, deadlineMs: 60_000, run }
}

describe('NodeJobs', () => {
  it('runs each job at its period, with one timer for all', async () => {
    const runs: string[] = []
    const note = (name: string) => async () => void runs.push(name)
    const { clock, nodeJobs, end } = rig(job('a', note('a')), job('b', note('b'), 15_000))
    expect(clock.pendingTimers).toBe(1)
    await clock.advance(30_000)
    expect(runs).toEqual(['a', 'b', 'a', 'a', 'b'])
    expect(clock.pendingTimers).toBe(1)
    expect(nodeJobs.reports()).toEqual([
      { name: 'a', periodMs: 10_000, running: false, runs: 3, lastStartMs: 30_000, lastDurationMs: 0 },
      { name: 'b', periodMs: 15_000, running: false, runs: 2, lastStartMs: 30_000, lastDurationMs: 0 },
    ])
    await end()
    expect(clock.pendingTimers).toBe(0)
  })

  it('lets a slow job delay no other, and never runs it twice at a time', async () => {
    const runs: string[] = []
    let slowAtOnce = 0
    const slow = job('slow', async () => {
      slowAtOnce += 1
      runs.push(`slow ${slowAtOnce}`)
      await clock.sleep(25_000)
      slowAtOnce -= 1
    })
    const { clock, nodeJobs, end } = rig(
      slow,
      job('quick', async () => void runs.push('quick')),
    )
    await clock.advance(30_000)
    expect(runs).toEqual(['slow 1', 'quick', 'quick', 'quick'])
    expect(nodeJobs.reports().map(({ running }) => running)).toEqual([true, false])
    await clock.advance(5000)
    expect(runs.at(-1)).toBe('slow 1')
    await end()
  })

  it('waits longer where the job asks for it', async () => {
    let runs = 0
    const { clock, end } = rig(
      job('resting', async () => {
        runs += 1
        return 40_000
      }),
    )
    await clock.advance(10_000 + 3 * 40_000)
    expect(runs).toBe(4)
    await end()
  })

  it('aborts a job at its deadline, tells why, and runs it again', async () => {
    const { clock, warnings, nodeJobs, end } = rig({
      ...job('stuck', (signal) => clock.sleep(1_000_000, signal)),
      deadlineMs: 5000,
    })
    await clock.advance(15_000)
    expect(nodeJobs.reports()[0]).toMatchObject({ runs: 1, error: 'not done after 5 s', running: false })
    await clock.advance(10_000)
    expect(nodeJobs.reports()[0]).toMatchObject({ runs: 2 })
    expect(warnings.map(({ job: name }) => name)).toEqual(['stuck'])
    await end()
  })

  it('logs a failure when it changes, and forgets it when the job succeeds', async () => {
    const failures = ['a', 'a', 'b', undefined, 'b']
    const { clock, warnings, nodeJobs, end } = rig(
      job('failing', async () => {
        const failure = failures.shift()
        if (failure !== undefined) throw new Error(failure)
      }),
    )
    await clock.advance(30_000)
    expect(warnings).toHaveLength(2)
    expect(nodeJobs.reports()[0]?.error).toBe('b')
    await clock.advance(10_000)
    expect(nodeJobs.reports()[0]?.error).toBeUndefined()
    await clock.advance(10_000)
    expect(warnings).toHaveLength(3)
    await end()
  })

  it('runs a job at once where it is woken, and once more after the run in flight', async () => {
    let runs = 0
    const { clock, nodeJobs, end } = rig(
      job('woken', async () => {
        runs += 1
        await clock.sleep(1000)
      }),
    )
    nodeJobs.wake('woken')
    nodeJobs.wake('woken')
    await clock.advance(0)
    expect(runs).toBe(1)
    await clock.advance(1000)
    expect(runs).toBe(2)
    await clock.advance(9999)
    expect(runs).toBe(2)
    await end()
  })

  it('notes when its timer came so late that podd was kept from its work', async () => {
    const { clock, nodeJobs, end } = rig(job('a', async () => {}))
    await clock.advance(15_000)
    await clock.freeze(19_999)
    expect(nodeJobs.blocked).toBeUndefined()
    await clock.advance(2000)
    await clock.freeze(28_000)
    expect(nodeJobs.blocked).toEqual({ untilMs: clock.monotonicMs(), durationMs: 20_001 - 1 })
    await end()
  })

  it('takes no second job of a name', () => {
    const nodeJobs = new NodeJobs<string>({ clock: new ManualClock(), logger: silentLogger })
    nodeJobs.add(job('one', async () => {}))
    expect(() => nodeJobs.add(job('one', async () => {}))).toThrow('there is a node job one already')
  })
})
