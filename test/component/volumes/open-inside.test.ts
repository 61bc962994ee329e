import { mkdir, mkdtemp, readFile, readdir, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { handlePath, makeInside, openInside, readInside } from '../../../src/volumes/open-inside.ts'
import { swapForLink, tryUntil } from './swap-directory.ts'
import { slowness } from '../../support/slowness.ts'

let scratch = ''
let volume = ''

beforeEach(async () => {
  scratch = await realpath(await mkdtemp(join(tmpdir(), 'podd-inside-')))
  volume = `${scratch}/volume`
  await mkdir(`${volume}/in/deep`, { recursive: true })
  await mkdir(`${scratch}/outside`)
  await writeFile(`${scratch}/outside/secret`, 'secret')
  await writeFile(`${volume}/in/deep/file`, 'mine')
})

afterEach(async () => {
  await rm(scratch, { recursive: true })
})

async function pathOf(opened: ReturnType<typeof openInside>): Promise<string> {
  const handle = await opened
  try {
    return await realpath(handlePath(handle))
  } finally {
    await handle.close()
  }
}

describe('openInside', () => {
  it.each([
    ['', ''],
    ['in/deep/file', '/in/deep/file'],
    ['./in//deep', '/in/deep'],
  ])('opens %j', async (path, expected) => {
    expect(await pathOf(openInside(volume, path))).toBe(volume + expected)
  })

  it('follows links that stay inside', async () => {
    await symlink('in', `${volume}/relative`)
    await symlink(`${volume}/in`, `${volume}/absolute`)
    expect(await pathOf(openInside(volume, 'relative/deep'))).toBe(`${volume}/in/deep`)
    expect(await pathOf(openInside(volume, 'absolute/deep'))).toBe(`${volume}/in/deep`)
  })

  it.each([
    ['a step up', '../outside/secret', undefined],
    ['a step up from below', 'in/../../outside/secret', undefined],
    ['an absolute link', 'link', 'ABSOLUTE'],
    ['a relative link', 'link', '../outside/secret'],
    ['a link on the way', 'link/secret', '../outside'],
    ['a link to the root', 'link/etc/passwd', '/'],
    ['a link beside the volume', 'link', `VOLUME-too`],
  ])('refuses %s', async (_what, path, target) => {
    await mkdir(`${volume}-too`)
    if (target !== undefined) {
      const names: Record<string, string> = {
        ABSOLUTE: `${scratch}/outside/secret`,
        'VOLUME-too': `${volume}-too`,
      }
      await symlink(names[target] ?? target, `${volume}/link`)
    }
    await expect(openInside(volume, path)).rejects.toThrow('leads out of its volume')
    await expect(readInside(volume, path)).rejects.toThrow('leads out of its volume')
  })

  it(
    'never opens what is outside while the path is swapped for a link, again and again',
    { timeout: 60_000 * slowness },
    async () => {
      await mkdir(`${volume}/spot`)
      await writeFile(`${volume}/spot/secret`, 'mine')
      await symlink(`${scratch}/outside`, `${volume}/trap`)
      const stopSwapping = await swapForLink(volume)
      const outcomes = { inside: 0, refused: 0 }
      const hasMetBoth = (): boolean => outcomes.inside > 0 && outcomes.refused > 0
      await tryUntil(500, hasMetBoth, async () => {
        try {
          const handle = await openInside(volume, 'spot/secret')
          const text = await readFile(handlePath(handle), 'utf8')
          await handle.close()
          expect(text).toBe('mine')
          outcomes.inside += 1
        } catch (error) {
          if (!(error instanceof Error) || error.name === 'AssertionError') throw error
          outcomes.refused += 1
        }
      })
      await stopSwapping()
      expect(outcomes.inside).toBeGreaterThan(0)
      expect(outcomes.refused).toBeGreaterThan(0)
    },
  )
})

describe('makeInside', () => {
  it('makes what is missing, whatever the umask', async () => {
    expect(await pathOf(makeInside(volume, 'in/new/er', 0o777))).toBe(`${volume}/in/new/er`)
    expect((await stat(`${volume}/in/new`)).mode & 0o7777).toBe(0o777)
  })

  it.each([
    ['a step up', '../new', undefined],
    ['a link out', 'link/new', 'outside'],
  ])('makes nothing through %s', async (_what, path, target) => {
    if (target !== undefined) await symlink(`${scratch}/${target}`, `${volume}/link`)
    await expect(makeInside(volume, path, 0o777)).rejects.toThrow('leads out of its volume')
    expect(await readdir(scratch)).toEqual(['outside', 'volume'])
    expect(await readdir(`${scratch}/outside`)).toEqual(['secret'])
  })

  it('makes nothing through a link to what is not there', async () => {
    await symlink(`${scratch}/outside/new`, `${volume}/dangling`)
    await expect(makeInside(volume, 'dangling/er', 0o777)).rejects.toThrow(/leads out|ENOTDIR|EEXIST/u)
    expect(await readdir(`${scratch}/outside`)).toEqual(['secret'])
  })
})
