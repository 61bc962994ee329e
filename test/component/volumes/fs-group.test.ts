import { execFileSync } from 'node:child_process'
import { chmod, lstat, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { applyFsGroup } from '../../../src/volumes/open-inside.ts'
import { slowness } from '../../support/slowness.ts'
import { swapForLink, tries } from './swap-directory.ts'

// Giving files away is root's.
const rootOnly = process.getuid?.() !== 0
const gid = 4321

let scratch = ''
let volume = ''

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'podd-group-'))
  volume = `${scratch}/volume`
  await mkdir(`${volume}/deep/er`, { recursive: true })
  await writeFile(`${volume}/deep/er/file`, 'mine', { mode: 0o600 })
  await mkdir(`${scratch}/host`, { mode: 0o700 })
  await writeFile(`${scratch}/host/secret`, 'secret', { mode: 0o600 })
})

afterEach(async () => {
  await rm(scratch, { recursive: true })
})

const give = (changePolicy: 'Always' | 'OnRootMismatch' = 'Always'): Promise<string | undefined> =>
  applyFsGroup(volume, { gid, changePolicy })

async function ownership(path: string): Promise<string> {
  const { gid: group, mode } = await lstat(path)
  return `${group}:${(mode & 0o7777).toString(8)}`
}

const hostState = (): Promise<readonly string[]> =>
  Promise.all([ownership(`${scratch}/host`), ownership(`${scratch}/host/secret`)])
const asMade = ['0:700', '0:600']

describe.skipIf(rootOnly)('applyFsGroup', () => {
  it('gives away all that is in a volume', async () => {
    await writeFile(`${volume}/run`, '', { mode: 0o755 })
    await give()
    const found = ['', '/deep', '/deep/er', '/deep/er/file', '/run'].map((path) => ownership(volume + path))
    expect(await Promise.all(found)).toEqual(['4321:2775', '4321:2775', '4321:2775', '4321:660', '4321:775'])
  })

  it('keeps set-id bits', async () => {
    await chmod(`${volume}/deep/er/file`, 0o4700)
    await give()
    expect(await ownership(`${volume}/deep/er/file`)).toBe('4321:4760')
  })

  it('leaves a volume alone whose top is right, where the policy says so', async () => {
    await give()
    await writeFile(`${volume}/new`, '', { mode: 0o600 })
    await chmod(`${volume}/new`, 0o600)
    await give('OnRootMismatch')
    expect((await stat(`${volume}/new`)).mode & 0o7777).toBe(0o600)
  })

  it.each([
    ['a directory', 'host'],
    ['a file', 'host/secret'],
    ['nothing', 'host/none'],
  ])('gives away a link to %s of the host, and nothing behind it', async (_what, target) => {
    await symlink(`${scratch}/${target}`, `${volume}/deep/link`)
    await give()
    expect((await lstat(`${volume}/deep/link`)).gid).toBe(gid)
    expect(await hostState()).toEqual(asMade)
  })

  it(
    'never reaches the host while a directory is swapped for a link, again and again',
    { timeout: 60_000 * slowness },
    async () => {
      await mkdir(`${volume}/spot`)
      await writeFile(`${volume}/spot/secret`, 'mine')
      await symlink(`${scratch}/host`, `${volume}/trap`)
      const stopSwapping = await swapForLink(volume)
      try {
        for (let round = 0; round < tries(100); round += 1) await give()
      } finally {
        await stopSwapping()
      }
      expect(await hostState()).toEqual(asMade)
    },
  )

  it(
    'goes on where directories are nested beyond reason, and says so',
    { timeout: 60_000 * slowness },
    async () => {
      await mkdir(`${volume}/${Array.from({ length: 600 }, () => 'd').join('/')}`, { recursive: true })
      expect(await give()).toBe(
        'cannot give all of it to group 4321: its directories are nested more than 512 levels deep',
      )
      expect(await ownership(volume)).toBe('4321:2775')
    },
  )

  it('goes on where something can’t be given away, and says so', async () => {
    // A name in it that no filesystem gives away: that of a file of the kernel's.
    await mkdir(`${volume}/deep/sys`)
    execFileSync('mount', ['--bind', '/proc/sys/kernel/random', `${volume}/deep/sys`])
    try {
      expect(await give()).toMatch(/^cannot give all of it to group 4321: E\w+: .*, and \d+ more$/)
      const found = ['', '/deep', '/deep/er/file'].map((path) => ownership(volume + path))
      expect(await Promise.all(found)).toEqual(['4321:2775', '4321:2775', '4321:660'])
    } finally {
      execFileSync('umount', [`${volume}/deep/sys`])
    }
  })
})
