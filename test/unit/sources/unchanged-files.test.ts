import { lstatSync, mkdtempSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { fingerprintOf } from '../../../src/sources/read-manifest-file.ts'
import { leaveOutUnchanged } from '../../../src/sources/directory/directory-files.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const names = ['same', 'touched', 'gone', 'link', 'unknown']
let directory: string
let fingerprints: Map<string, string>

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-unchanged-'))
  for (const name of ['same', 'touched', 'gone', 'unknown']) writeFileSync(join(directory, name), '{}')
  symlinkSync('same', join(directory, 'link'))
  fingerprints = new Map(
    names.map((name) => [name, fingerprintOf(lstatSync(join(directory, name), { bigint: true }))]),
  )
  fingerprints.delete('unknown')
  utimesSync(join(directory, 'touched'), 1, 1)
  rmSync(join(directory, 'gone'))
})
afterEach(() => rmSync(directory, { recursive: true }))

it('leaves out regular files that look as they did, and nothing else', () => {
  const left = leaveOutUnchanged(names, (name) => fingerprints.get(name), directory, new ManualClock())
  expect(left).toEqual(['touched', 'gone', 'link', 'unknown'])
})

it('leaves out no more once it has taken 5 ms', () => {
  let looks = 0
  class SlowClock extends ManualClock {
    // 2 ms pass from one reading of the clock to the next.
    override monotonicMs(): number {
      looks += 1
      return super.monotonicMs() + 2 * looks
    }
  }
  const clock = new SlowClock()
  const known = fingerprints.get('same')
  expect(leaveOutUnchanged(['same', 'same', 'same', 'same'], () => known, directory, clock)).toEqual([
    'same',
    'same',
  ])
})
