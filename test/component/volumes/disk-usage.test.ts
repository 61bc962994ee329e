import { link, mkdir, mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { measureDiskUsage } from '../../../src/volumes/open-inside.ts'
import { slowness } from '../../support/slowness.ts'
import { swapForLink, tries } from './swap-directory.ts'

const mib = 1024 ** 2

let scratch = ''
let volume = ''

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'podd-usage-'))
  volume = `${scratch}/volume`
  await mkdir(`${volume}/deep`, { recursive: true })
  await mkdir(`${scratch}/host`)
  await writeFile(`${scratch}/host/large`, Buffer.alloc(4 * mib, 'x'))
})

afterEach(async () => {
  await rm(scratch, { recursive: true })
})

async function blocksOf(...paths: readonly string[]): Promise<number> {
  const found = await Promise.all(paths.map((path) => stat(path)))
  return found.reduce((sum, { blocks }) => sum + blocks * 512, 0)
}

describe('measureDiskUsage', () => {
  it('counts what is there, a file of two names once', async () => {
    await writeFile(`${volume}/deep/file`, Buffer.alloc(mib, 'x'))
    await link(`${volume}/deep/file`, `${volume}/again`)
    const expected = await blocksOf(volume, `${volume}/deep`, `${volume}/deep/file`)
    expect(expected).toBeGreaterThanOrEqual(mib)
    expect(await measureDiskUsage(volume)).toBe(expected)
  })

  it.each([
    ['a file', 'large'],
    ['a directory', ''],
  ])('counts nothing behind a link to %s of the host', async (_what, target) => {
    await symlink(`${scratch}/host/${target}`, `${volume}/deep/link`)
    expect(await measureDiskUsage(volume)).toBeLessThan(mib)
  })

  it('gives nothing for a directory that is gone', async () => {
    expect(await measureDiskUsage(`${volume}/none`)).toBe(0)
  })

  it(
    'never looks into the host while a directory is swapped for a link, again and again',
    { timeout: 60_000 * slowness },
    async () => {
      await mkdir(`${volume}/spot`)
      await symlink(`${scratch}/host`, `${volume}/trap`)
      const stopSwapping = await swapForLink(volume)
      const found: number[] = []
      for (let round = 0; round < tries(60); round += 1) found.push(await measureDiskUsage(volume))
      await stopSwapping()
      expect(Math.max(...found)).toBeLessThan(mib)
    },
  )
})
