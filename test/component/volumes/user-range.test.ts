import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { teardownVolumes } from '../../../src/volumes/prepare-volumes.ts'
import { claimUserRange } from '../../../src/volumes/pod-directory.ts'

let rootDir = ''

beforeEach(async () => {
  rootDir = await mkdtemp(join(tmpdir(), 'podd-users-'))
})

afterEach(async () => {
  await rm(rootDir, { recursive: true })
})

const firstIdOf = (uid: string): number => claimUserRange(rootDir, uid).firstId

describe('the users of a pod', () => {
  it('are no other pod’s, stay the same, and are free again when it is gone', async () => {
    expect(claimUserRange(rootDir, 'a')).toEqual({ firstId: 65_536, length: 65_536 })
    expect([firstIdOf('b'), firstIdOf('c')]).toEqual([2 * 65_536, 3 * 65_536])
    expect([firstIdOf('a'), firstIdOf('b')]).toEqual([65_536, 2 * 65_536])
    await teardownVolumes(rootDir, 'b')
    expect([firstIdOf('d'), firstIdOf('e')]).toEqual([2 * 65_536, 4 * 65_536])
  })

  it('are given beside pods that have none, and what a podd left that was killed', async () => {
    await mkdir(`${rootDir}/pods/plain`, { recursive: true })
    await mkdir(`${rootDir}/pods/half`)
    await writeFile(`${rootDir}/pods/half/user-range.new`, '')
    await writeFile(`${rootDir}/pods/stray`, '')
    expect([firstIdOf('a'), firstIdOf('half')]).toEqual([65_536, 2 * 65_536])
  })

  it.each(['', '0\n', '-1\n', '1', '123456\n', 'x\n'])(
    'are never guessed from a file that says %j',
    async (text) => {
      await mkdir(`${rootDir}/pods/odd`, { recursive: true })
      await writeFile(`${rootDir}/pods/odd/user-range`, text)
      expect(() => claimUserRange(rootDir, 'odd')).toThrow('cannot read the range of user ids of pod odd')
      expect(() => claimUserRange(rootDir, 'other')).toThrow('cannot read the range of user ids of pod odd')
    },
  )
})
