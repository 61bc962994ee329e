import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { planLogRotation } from '../../../../src/decide/node/plan-logs.ts'
import type { LogAction, LogFacts } from '../../../../src/decide/node/plan-logs.ts'
import { parseLogFileName } from '../../../../src/translate/identity.ts'

const limits = { maxSizeBytes: 1000, maxFiles: 4 }
const nowMs = Date.UTC(2026, 5, 1, 12, 30, 15)
const base: LogFacts = { live: '0.log', liveSizeBytes: 1000, rotated: [] }

describe('planLogRotation', () => {
  it.each<[string, Partial<LogFacts>, readonly LogAction[]]>([
    ['nothing below the limit', { liveSizeBytes: 999, rotated: ['0.log.20260101-000000'] }, []],
    ['the first rotation', {}, [{ kind: 'rotate', to: '0.log.20260601-123015' }]],
    [
      'compresses what was put aside before',
      { rotated: ['0.log.20260601-110000', '0.log.20260601-100000.gz'] },
      [
        { kind: 'compress', name: '0.log.20260601-110000' },
        { kind: 'rotate', to: '0.log.20260601-123015' },
      ],
    ],
    [
      'removes the oldest, so that no more than four are left',
      { rotated: ['0.log.20260601-110000', '0.log.20260601-100000.gz', '0.log.20260601-090000.gz'] },
      [
        { kind: 'remove', name: '0.log.20260601-090000.gz' },
        { kind: 'compress', name: '0.log.20260601-110000' },
        { kind: 'rotate', to: '0.log.20260601-123015' },
      ],
    ],
    [
      'removes what a killed podd left of compressing',
      { rotated: ['0.log.20260601-100000', '0.log.20260601-100000.gz', '0.log.20260601-110000.tmp'] },
      [
        { kind: 'remove', name: '0.log.20260601-100000' },
        { kind: 'remove', name: '0.log.20260601-110000.tmp' },
        { kind: 'rotate', to: '0.log.20260601-123015' },
      ],
    ],
    ['a live file that is missing', { liveSizeBytes: undefined }, [{ kind: 'reopen' }]],
    [
      'a second rotation within a second',
      { rotated: ['0.log.20260601-123015'] },
      [
        { kind: 'compress', name: '0.log.20260601-123015' },
        { kind: 'rotate', to: '0.log.20260601-123016' },
      ],
    ],
    [
      'a clock that was put back by years',
      { rotated: ['0.log.20311231-235959.gz'] },
      [{ kind: 'rotate', to: '0.log.20320101-000000' }],
    ],
  ])('plans %s', (_title, change, expected) => {
    expect(planLogRotation({ ...base, ...change }, limits, nowMs)).toEqual(expected)
  })

  it('keeps the order of lines and the number of files, whatever the clock does', () => {
    const times = fc.array(fc.integer({ min: 0, max: Date.UTC(2100, 0) }), { minLength: 1, maxLength: 12 })
    fc.assert(
      fc.property(times, fc.integer({ min: 2, max: 6 }), (clock, maxFiles) => {
        let files: string[] = []
        let written: string[] = []
        for (const atMs of clock) {
          const actions = planLogRotation({ ...base, rotated: files }, { ...limits, maxFiles }, atMs)
          for (const action of actions) {
            if (action.kind === 'remove') files = files.filter((name) => name !== action.name)
            if (action.kind === 'compress')
              files = files.map((name) => (name === action.name ? `${name}.gz` : name))
            if (action.kind === 'rotate') {
              files.push(action.to)
              written.push(action.to)
            }
          }
          expect(files.length).toBeLessThanOrEqual(maxFiles - 1)
        }
        written = written.slice(-files.length)
        expect(files.map((name) => name.replace('.gz', '')).toSorted()).toEqual(written)
        for (const name of files) expect(parseLogFileName(name)).toBe(0)
      }),
    )
  })
})
