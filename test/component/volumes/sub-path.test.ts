import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { mountsBelow, readMounts, unmount } from '../../../src/host/mounts.ts'
import type { MissingSubPath } from '../../../src/translate/mounts.ts'
import { writeVolumeFiles } from '../../../src/volumes/atomic-writer.ts'
import { bindSubPath } from '../../../src/volumes/sub-path.ts'
import { teardownVolumes } from '../../../src/volumes/prepare-volumes.ts'
import { slowness } from '../../support/slowness.ts'
import { swapForLink, tryUntil } from './swap-directory.ts'

// mount(2) is root's.
const rootOnly = process.getuid?.() !== 0
const uid = '3f6a1c52-0000-4000-8000-000000000001'

let scratch = ''
let volume = ''

beforeEach(async () => {
  scratch = await realpath(await mkdtemp(join(tmpdir(), 'podd-sub-')))
  volume = `${scratch}/volume`
  await mkdir(`${volume}/spot`, { recursive: true })
  await writeFile(`${volume}/spot/file`, 'mine')
  await mkdir(`${scratch}/host`)
  await writeFile(`${scratch}/host/file`, 'secret')
})

afterEach(async () => {
  for (const mountPoint of mountsBelow(scratch, readMounts())) await unmount(mountPoint)
  await rm(scratch, { recursive: true })
})

const bind = (subPath: string, index = 0, whenMissing: MissingSubPath = { kind: 'make' }): Promise<string> =>
  bindSubPath({
    rootDir: `${scratch}/root`,
    uid,
    container: 'app',
    volume: 'v',
    index,
    volumePath: volume,
    subPath,
    whenMissing,
  })

/** Writes the volume's files as those of a ConfigMap. */
async function writeKeys(keys: Readonly<Record<string, string>>): Promise<void> {
  const files = Object.entries(keys).map(
    ([key, text]) => [key, { data: Buffer.from(text), mode: 0o644 }] as const,
  )
  await writeVolumeFiles(volume, new Map(files), { nowMs: Date.now() })
}

describe.skipIf(rootOnly)('bindSubPath', () => {
  it('shows a directory or a file, makes a directory where nothing is, and goes with the pod', async () => {
    expect(await readFile(`${await bind('spot')}/file`, 'utf8')).toBe('mine')
    expect(await readFile(await bind('spot/file', 1), 'utf8')).toBe('mine')
    const made = await bind('new/er', 2)
    await writeFile(`${made}/here`, '')
    expect(await readdir(`${volume}/new/er`)).toEqual(['here'])
    await teardownVolumes(`${scratch}/root`, uid)
    expect(mountsBelow(scratch, readMounts())).toEqual([])
    expect(await readdir(`${volume}/new/er`)).toEqual(['here'])
  })

  it('makes directories that belong to the volume’s group, as the volume says', async () => {
    await chown(volume, 0, 4321)
    await chmod(volume, 0o2770)
    await bind('new/er')
    for (const path of ['new', 'new/er']) {
      const { gid, mode } = await stat(`${volume}/${path}`)
      expect([path, gid, (mode & 0o7777).toString(8)]).toEqual([path, 4321, '2770'])
    }
  })

  it('stays bound, once, until something else is at the path', async () => {
    const target = await bind('spot')
    await bind('spot')
    expect(mountsBelow(target, readMounts())).toEqual([target])
    await rename(`${volume}/spot`, `${volume}/was`)
    await mkdir(`${volume}/spot`)
    await bind('spot')
    expect(mountsBelow(target, readMounts())).toEqual([target])
    expect(await readdir(target)).toEqual([])
  })

  it.each(['while it is mounted', 'after a reboot'])(
    'shows a file where a directory was, and a directory where a file was, %s',
    async (when) => {
      const forget = async (target: string): Promise<void> => {
        if (when === 'after a reboot') await unmount(target)
      }
      const target = await bind('spot')
      await forget(target)
      await rename(`${volume}/spot`, `${volume}/was`)
      await writeFile(`${volume}/spot`, 'a file')
      expect(await bind('spot')).toBe(target)
      expect(await readFile(target, 'utf8')).toBe('a file')
      await forget(target)
      await rm(`${volume}/spot`)
      await rename(`${volume}/was`, `${volume}/spot`)
      await bind('spot')
      expect(await readFile(`${target}/file`, 'utf8')).toBe('mine')
      expect(mountsBelow(target, readMounts())).toEqual([target])
    },
  )

  it('makes nothing among files that podd writes: a missing one is waited for', async () => {
    const whenMissing = { kind: 'fail', message: 'no file "late"' } as const
    await writeKeys({ early: '1', '.hidden': '2' })
    for (const path of ['late', 'late/er', 'early/er'])
      await expect(bind(path, 0, whenMissing)).rejects.toThrow('no file "late"')
    expect((await readdir(volume)).filter((name) => !name.startsWith('..')).sort()).toEqual([
      '.hidden',
      'early',
      'spot',
    ])
    expect(await readFile(await bind('.hidden', 1, whenMissing), 'utf8')).toBe('2')
    // What an earlier podd has made.
    await mkdir(`${volume}/late`)
    await expect(bind('late', 0, whenMissing)).rejects.toThrow('no file "late"')
    await writeKeys({ late: 'here' })
    expect(await readFile(await bind('late', 0, whenMissing), 'utf8')).toBe('here')
    expect(await readdir(await bind('.', 2, whenMissing))).toContain('late')
  })

  it('makes nothing below /dev: what is missing there is waited for', async () => {
    const subPath = `podd-test-${process.pid}/deep`
    const mount = { rootDir: `${scratch}/root`, uid, container: 'main', volume: 'devices', index: 0 }
    const whenMissing = { kind: 'make' } as const
    await expect(bindSubPath({ ...mount, volumePath: '/dev', subPath, whenMissing })).rejects.toMatchObject({
      message: `/dev/${subPath} does not exist, and nothing is made below /dev: waiting for it`,
      awaitedPath: `/dev/${subPath}`,
    })
    expect(await readdir('/dev')).not.toContain(`podd-test-${process.pid}`)
  })

  it('shows an empty directory for an optional file, and the file once it is there', async () => {
    await writeKeys({})
    const target = await bind('late', 0, { kind: 'empty' })
    expect(await readdir(target)).toEqual([])
    expect(((await stat(target)).mode & 0o777).toString(8)).toBe('755')
    await writeKeys({ late: 'here' })
    expect(await bind('late', 0, { kind: 'empty' })).toBe(target)
    expect(await readFile(target, 'utf8')).toBe('here')
    await writeKeys({})
    expect(await readdir(await bind('late', 0, { kind: 'empty' }))).toEqual([])
  })

  it('refuses a path that leads out by now, and shows nothing new', async () => {
    const target = await bind('spot')
    await rename(`${volume}/spot`, `${volume}/was`)
    await symlink(`${scratch}/host`, `${volume}/spot`)
    await expect(bind('spot')).rejects.toThrow('leads out of its volume')
    expect(await readFile(`${target}/file`, 'utf8')).toBe('mine')
  })

  it(
    'never binds the host while the path is swapped for a link, again and again',
    { timeout: 120_000 * slowness },
    async () => {
      await symlink(`${scratch}/host`, `${volume}/trap`)
      const stopSwapping = await swapForLink(volume)
      const shown: string[] = []
      let refused = 0
      await tryUntil(
        60,
        () => shown.length > 0 && refused > 0,
        async () => {
          try {
            const target = await bind('spot/file')
            shown.push(await readFile(target, 'utf8'))
            await unmount(target)
          } catch {
            refused += 1
          }
        },
      )
      await stopSwapping()
      expect(new Set(shown)).toEqual(new Set(['mine']))
      expect(refused).toBeGreaterThan(0)
    },
  )
})
