import { describe, expect, it } from 'vitest'
import { countCrashes, mayHold, selectHeld } from '../../../../src/decide/sources/judge-trial.ts'
import type { TrialRecord } from '../../../../src/decide/sources/judge-trial.ts'

const location = '/etc/pods'
const record: TrialRecord = {
  bootId: 'boot-1',
  running: true,
  crashes: 2,
  reports: [7],
  worked: { file: { location, fingerprint: 'old', digest: 'd' } },
  held: {},
}
const held: TrialRecord = { ...record, held: { file: { location, fingerprint: 'bad', podd: '1.0' } } }

describe('countCrashes', () => {
  it.each([
    ['a first start', undefined, [7], 0],
    ['a crash', record, [7, 9], 3],
    ['a crash under a clock that was set back', record, [3, 7], 3],
    ['a crash that made room for its report', record, [9], 3],
    ['an end without a report', record, [7], 2],
    ['an end without a report, and the old one removed', record, [], 2],
    ['an end by itself', { ...record, running: false }, [7, 9], 0],
    ['an end by a reboot or a power cut', { ...record, bootId: 'boot-0' }, [7, 9], 0],
  ])('after %s', (_title, before, reports, crashes) => {
    expect(countCrashes(before, { bootId: 'boot-1', reports })).toBe(crashes)
  })
})

describe('mayHold', () => {
  it.each([
    ['a first start has nothing to go back to', undefined, 3, false],
    ['after two crashes nothing is held yet', record, 2, false],
    ['after three crashes a source may be held', record, 3, true],
    ['one that is held may stay so without a crash', held, 0, true],
  ])('%s', (_title, before, crashes, expected) => {
    expect(mayHold(before, crashes)).toBe(expected)
  })
})

describe('selectHeld', () => {
  it.each([
    ['two crashes are an accident', record, { crashes: 2, fingerprint: 'bad' }, false],
    ['three after a change hold the source', record, { crashes: 3, fingerprint: 'bad' }, true],
    ['three without a change have another cause', record, { crashes: 3, fingerprint: 'old' }, false],
    ['one that cannot be read has not changed', record, { crashes: 3, fingerprint: undefined }, false],
    ['no set has worked yet', { ...record, worked: {} }, { crashes: 3, fingerprint: 'bad' }, false],
    [
      'the set that worked was of another place',
      record,
      { crashes: 3, fingerprint: 'bad', location: '/x' },
      false,
    ],
    ['a held one stays held over clean starts', held, { crashes: 0, fingerprint: 'bad' }, true],
    ['and while it cannot be read', held, { crashes: 0, fingerprint: undefined }, true],
    ['a held one that changed is tried', held, { crashes: 0, fingerprint: 'mended' }, false],
    ['another podd tries it', held, { crashes: 0, fingerprint: 'bad', podd: '1.1' }, false],
    ['and holds it where that crashes too', held, { crashes: 3, fingerprint: 'bad', podd: '1.1' }, true],
  ])('%s', (_title, before, { crashes, fingerprint, ...other }, isHeld) => {
    const at = { podd: '1.0', location, ...other }
    const sources = [{ name: 'file' as const, location: at.location, fingerprint }]
    const expected = { file: { location, fingerprint: 'bad', podd: at.podd } }
    expect(selectHeld(before, { crashes, podd: at.podd, sources })).toEqual(isHeld ? expected : {})
  })
})
