import { execFileSync } from 'node:child_process'
import { lstat, mkdtemp, readFile, readdir, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { VolumeFiles } from '../../../src/translate/volume-files.ts'
import { writeVolumeFiles } from '../../../src/volumes/atomic-writer.ts'

// Giving files away is root's.
const rootOnly = process.getuid?.() !== 0

const startMs = Date.UTC(2026, 0, 2, 3, 4, 5)
let directory = ''
let nowMs = startMs

beforeEach(async () => {
  nowMs = startMs
  directory = await mkdtemp(join(tmpdir(), 'podd-writer-'))
})

afterEach(async () => {
  await rm(directory, { recursive: true })
})

function files(content: Readonly<Record<string, string>>, mode = 0o644): VolumeFiles {
  return new Map(Object.entries(content).map(([path, text]) => [path, { data: Buffer.from(text), mode }]))
}

const write = (content: Readonly<Record<string, string>>, mode?: number, group?: number): Promise<boolean> =>
  writeVolumeFiles(directory, files(content, mode), { nowMs, group })

/** What a container sees: no names that begin with a dot. */
async function shown(): Promise<readonly string[]> {
  return (await readdir(directory)).filter((name) => !name.startsWith('.')).sort()
}

describe('the files of a volume', () => {
  it('stand behind links through ..data, directories included', async () => {
    expect(await write({ a: '1', 'deep/er/b': '2', 'deep/c': '3' })).toBe(true)
    expect(await shown()).toEqual(['a', 'deep'])
    expect(await readlink(`${directory}/a`)).toBe('..data/a')
    expect(await readlink(`${directory}/..data`)).toMatch(/^\.\.2026_01_02_03_04_05\.[0-9a-f]{8}$/u)
    expect(await readFile(`${directory}/deep/er/b`, 'utf8')).toBe('2')
    expect((await stat(`${directory}/deep`)).mode & 0o7777).toBe(0o755)
  })

  it('stay as they are where nothing changed, and change all at once else', async () => {
    await write({ a: '1', b: '1' })
    const before = await readlink(`${directory}/..data`)
    expect(await write({ a: '1', b: '1' })).toBe(false)
    expect(await readlink(`${directory}/..data`)).toBe(before)
    expect(await write({ a: '2', 'c/d': '2' })).toBe(true)
    expect(await shown()).toEqual(['a', 'c'])
    expect(await readFile(`${directory}/a`, 'utf8')).toBe('2')
    // Who followed the link a moment ago still finds the old files.
    nowMs += 500
    await write({ a: '2', 'c/d': '2' })
    expect(await readFile(`${directory}/${before}/b`, 'utf8')).toBe('1')
    nowMs += 1000
    await write({ a: '2', 'c/d': '2' })
    await expect(lstat(`${directory}/${before}`)).rejects.toThrow('ENOENT')
  })

  it.each([
    ['another mode', { a: '1' }, 0o600],
    ['another content of the same size', { a: '2' }, 0o644],
    ['a file more', { a: '1', b: '' }, 0o644],
    ['no file at all', {}, 0o644],
  ])('change with %s', async (_what, content, mode) => {
    await write({ a: '1' })
    expect(await write(content, mode)).toBe(true)
    expect(await write(content, mode)).toBe(false)
  })

  it.skipIf(rootOnly)('change with a group', async () => {
    await write({ a: '1' })
    expect(await write({ a: '1' }, 0o644, 2000)).toBe(true)
    expect(await write({ a: '1' }, 0o644, 2000)).toBe(false)
  })

  it.skipIf(rootOnly)('belong to the pod’s group, which may read what the owner may', async () => {
    await write({ 'deep/a': '1' }, 0o400, 2000)
    const file = await stat(`${directory}/deep/a`)
    expect([file.gid, file.mode & 0o7777]).toEqual([2000, 0o440])
    const parent = await stat(`${directory}/deep`)
    expect([parent.gid, parent.mode & 0o7777]).toEqual([2000, 0o2755])
  })

  it.each(['../a', '..a', 'a/../b', '/a', 'a//b', './a', 'a/..'])('never stand at %s', async (path) => {
    await expect(write({ [path]: '1' })).rejects.toThrow('invalid path')
    expect(await readdir(directory)).toEqual([])
  })

  it('name themselves where they cannot be written, and no directory of their own', async () => {
    const name = 'x'.repeat(300)
    await expect(write({ [name]: '1' })).rejects.toThrow(
      `ENAMETOOLONG: name too long, open '${directory}/${name}'`,
    )
  })

  it('never stand where others need a directory', async () => {
    await expect(write({ a: '1', 'a/b/c': '2' })).rejects.toThrow(
      'a file stands at "a", where "a/b/c" needs a directory',
    )
    expect(await readdir(directory)).toEqual([])
  })

  it('are mended where a podd was killed while it wrote', async () => {
    await write({ a: '1' })
    execFileSync('sh', [
      '-c',
      `cd ${directory} && mkdir ..half && echo x >..half/a && ln -s ..half ..data_tmp && rm a`,
    ])
    nowMs += 100_000_000_000
    expect(await write({ a: '1' })).toBe(true)
    expect(await shown()).toEqual(['a'])
    await write({ a: '2' })
    expect(await shown()).toEqual(['a'])
    expect((await readdir(directory)).filter((name) => name === '..half' || name === '..data_tmp')).toEqual(
      [],
    )
  })

  it('are all shown, and no others, where a podd was killed right after the swap', async () => {
    await write({ a: '1', b: '1' })
    execFileSync('sh', ['-c', `cd ${directory} && rm a && ln -s ..data/gone gone`])
    expect(await write({ a: '1', b: '1' })).toBe(true)
    expect(await shown()).toEqual(['a', 'b'])
    expect(await readFile(`${directory}/a`, 'utf8')).toBe('1')
    const { mtimeMs } = await stat(directory)
    expect(await write({ a: '1', b: '1' })).toBe(false)
    expect((await stat(directory)).mtimeMs).toBe(mtimeMs)
  })
})
