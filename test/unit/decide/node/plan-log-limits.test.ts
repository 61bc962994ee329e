import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { planLogLimits } from '../../../../src/decide/node/plan-logs.ts'
import type { LogsOfRemovedPod, LogFileFacts } from '../../../../src/decide/node/plan-logs.ts'

const nowMs = Date.UTC(2026, 0, 10)
const hourMs = 3_600_000

/** A file of 100 bytes, so many hours old. */
function file(log: string, name: string, hoursOld: number): LogFileFacts {
  const order = /\.log\.(.*\d)/u.exec(name)?.[1] ?? '~'
  return { path: `${log}/${name}`, log, order, sizeBytes: 100, modifiedMs: nowMs - hoursOld * hourMs }
}

const web = [
  file('web', '0.log.20260101-000000.gz', 30),
  file('web', '0.log.20260102-000000', 10),
  file('web', '0.log', 0),
]
const job = [file('job', '0.log.20260101-120000.gz', 20), file('job', '0.log', 90)]
const gone: LogsOfRemovedPod = {
  directory: 'gone',
  removedAtMs: nowMs - 5 * hourMs,
  files: [file('gone', '0.log.20260101-000000', 15), file('gone', '0.log', 6)],
}
const noLimits = { totalBytes: undefined, keptMs: 24 * hourMs }

describe('planLogLimits', () => {
  it.each<[totalBytes: number | undefined, removed: readonly string[]]>([
    [undefined, []],
    [700, []],
    [699, ['web/0.log.20260101-000000.gz']],
    [600, ['web/0.log.20260101-000000.gz']],
    [500, ['web/0.log.20260101-000000.gz', 'job/0.log.20260101-120000.gz']],
    [400, ['web/0.log.20260101-000000.gz', 'job/0.log.20260101-120000.gz', 'gone/0.log.20260101-000000']],
    [
      1,
      [
        'web/0.log.20260101-000000.gz',
        'job/0.log.20260101-120000.gz',
        'gone/0.log.20260101-000000',
        'web/0.log.20260102-000000',
        'gone/0.log',
      ],
    ],
  ])('keeps seven files of 100 bytes to %s', (totalBytes, removed) => {
    const facts = { files: [...web, ...job], kept: [gone] }
    const plan = planLogLimits(facts, { ...noLimits, totalBytes }, nowMs)
    expect(plan.files).toEqual(removed)
    expect(plan.leftBytes).toBe(700 - removed.length * 100)
    expect(plan.directories).toEqual([])
  })

  it('never removes the file that is written to, also where it is still to be made again', () => {
    const plan = planLogLimits(
      { files: [...web.slice(0, 2), ...job], kept: [] },
      { ...noLimits, totalBytes: 1 },
      nowMs,
    )
    expect(plan.files).toEqual(['web/0.log.20260101-000000.gz', 'job/0.log.20260101-120000.gz'])
    expect(plan.leftBytes).toBe(200)
  })

  it('takes the oldest of a log first although the clock was set back', () => {
    const files = [
      file('web', '0.log.20260101-000000', 1),
      file('web', '0.log.20260101-000100', 50),
      file('web', '0.log', 0),
    ]
    const plan = planLogLimits({ files, kept: [] }, { ...noLimits, totalBytes: 200 }, nowMs)
    expect(plan.files).toEqual(['web/0.log.20260101-000000'])
  })

  it.each<[what: string, keptMs: number, removedAtMs: number, directories: readonly string[]]>([
    ['keeps them before their time', 24 * hourMs, nowMs - 23 * hourMs, []],
    ['removes them when it has come', 24 * hourMs, nowMs - 24 * hourMs, ['gone']],
    ['removes them where none are kept any more', 0, nowMs - 1, ['gone']],
    ['removes them where none are kept any more, whenever that was', 0, nowMs + hourMs, ['gone']],
    ['keeps those of a removal that lies in the future', hourMs, nowMs + 1000 * hourMs, []],
  ])('%s', (_, keptMs, removedAtMs, directories) => {
    const plan = planLogLimits(
      { files: web, kept: [{ ...gone, removedAtMs }] },
      { totalBytes: undefined, keptMs },
      nowMs,
    )
    expect(plan).toEqual({ directories, files: [], leftBytes: directories.length === 0 ? 500 : 300 })
  })

  it('removes what has no log left', () => {
    const plan = planLogLimits({ files: [], kept: [{ ...gone, files: [] }] }, noLimits, nowMs)
    expect(plan.directories).toEqual(['gone'])
  })

  it('is settled with what it leaves', () => {
    const anyFile = fc.record({
      log: fc.constantFrom('a', 'b', 'c'),
      order: fc.constantFrom('20260101-000000', '20260102-000000', '20260103-000000', '~'),
      sizeBytes: fc.nat(1000),
      modifiedMs: fc.nat(1000),
    })
    const anyFiles = fc
      .uniqueArray(anyFile, { selector: ({ log, order }) => `${log} ${order}`, maxLength: 12 })
      .map((files) => files.map((each) => ({ ...each, path: `${each.log}/${each.order}` })))
    fc.assert(
      fc.property(anyFiles, fc.nat(4000), (files, totalBytes) => {
        const plan = planLogLimits({ files, kept: [] }, { totalBytes, keptMs: 0 }, nowMs)
        const left = files.filter(({ path }) => !plan.files.includes(path))
        expect(planLogLimits({ files: left, kept: [] }, { totalBytes, keptMs: 0 }, nowMs).files).toEqual([])
        // Each log keeps an unbroken run of its newest files.
        for (const [log, all] of Map.groupBy(files, (each) => each.log)) {
          const orders = all.map(({ order }) => order).toSorted()
          const kept = left
            .filter((each) => each.log === log)
            .map(({ order }) => order)
            .toSorted()
          expect(kept.length).toBeGreaterThan(0)
          expect(kept).toEqual(orders.slice(-kept.length))
        }
      }),
    )
  })
})
