import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  aboutFile,
  isAtomicFileTemp,
  readIfExists,
  removeAtomicFileTemps,
  removeFileDurably,
  removeTree,
  writeFileAtomic,
  writeFileAtomicSync,
} from '../../../src/base/atomic-file.ts'

let directory = ''

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-atomic-'))
})

afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
})

it('says of a file that cannot be removed why, and removes what can be', async () => {
  await expect(removeTree('/proc/self/status')).rejects.toThrow(
    /^E(?:PERM|ACCES): .*unlink '\/proc\/self\/status'$/u,
  )
  await mkdir(join(directory, 'a', 'b'), { recursive: true })
  await writeFile(join(directory, 'a', 'b', 'c'), '')
  await removeTree(join(directory, 'a'))
  await removeTree(join(directory, 'a'))
  expect(await readdir(directory)).toEqual([])
})

it.each([
  ["EROFS: read-only file system, open '/d/.f.1.tmp'", "EROFS: read-only file system, open '/d/f'"],
  [
    "EISDIR: is a directory, rename '/d/.f.1.tmp' -> '/d/f'",
    "EISDIR: is a directory, rename '/d/f' -> '/d/f'",
  ],
  ['ENOSPC: no space left on device, write', "ENOSPC: no space left on device, write '/d/f'"],
])('names the file in place of a temp file: %s', (message, wanted) => {
  const error = Object.assign(new Error(message), { syscall: 'any' })
  expect(aboutFile(error, '/d/.f.1.tmp', '/d/f')).toMatchObject({ message: wanted })
})

describe('writeFileAtomic', () => {
  it('writes, replaces, and leaves nothing else in the directory', async () => {
    const path = join(directory, 'record.json')
    await writeFileAtomic(path, 'one')
    await writeFileAtomic(path, Buffer.from('two'))
    expect(await readFile(path, 'utf8')).toBe('two')
    expect(await readdir(directory)).toEqual(['record.json'])
  })

  it.each(['x'.repeat(213), 'x'.repeat(214), `${'é'.repeat(127)}x`])(
    'takes a name of any length that a file may have: %s',
    async (name) => {
      await writeFileAtomic(join(directory, name), 'one')
      writeFileAtomicSync(join(directory, name), 'two')
      expect(await readFile(join(directory, name), 'utf8')).toBe('two')
      expect(await readdir(directory)).toEqual([name])
    },
  )

  it.each([0o600, 0o640, 0o644, 0o666])('gives the file the mode %o whatever the umask', async (mode) => {
    const path = join(directory, 'file')
    const before = process.umask(0o077)
    try {
      await writeFileAtomic(path, 'x', mode)
    } finally {
      process.umask(before)
    }
    expect((await stat(path)).mode & 0o777).toBe(mode)
  })

  it('is private where no mode is given', async () => {
    await writeFileAtomic(join(directory, 'file'), 'x')
    expect((await stat(join(directory, 'file'))).mode & 0o777).toBe(0o600)
  })

  it('keeps the old file and cleans up when the rename fails', async () => {
    const path = join(directory, 'taken')
    await writeFileAtomic(join(directory, 'other'), 'x')
    await rm(join(directory, 'other'))
    // A directory that isn't empty can't be replaced by a file.
    await mkdir(path)
    await writeFile(join(path, 'inside'), '')
    await expect(writeFileAtomic(path, 'x')).rejects.toMatchObject({
      code: 'EISDIR',
      message: `EISDIR: illegal operation on a directory, rename '${path}' -> '${path}'`,
    })
    expect(await readdir(directory)).toEqual(['taken'])
  })

  it('throws the error of the system when the directory is missing', async () => {
    const path = join(directory, 'no', 'file')
    const message = `ENOENT: no such file or directory, open '${path}'`
    await expect(writeFileAtomic(path, 'x')).rejects.toMatchObject({ code: 'ENOENT', message })
    expect(() => writeFileAtomicSync(path, 'x')).toThrow(message)
  })

  it('survives writers that race: one of them wins whole', async () => {
    const path = join(directory, 'raced')
    const texts = Array.from({ length: 8 }, (_, index) => String(index).repeat(10_000))
    await Promise.all(texts.map((text) => writeFileAtomic(path, text)))
    expect(texts).toContain(await readFile(path, 'utf8'))
    expect(await readdir(directory)).toEqual(['raced'])
  })
})

describe('readIfExists', () => {
  it('gives undefined for a file that is not there, and throws the rest', async () => {
    expect(await readIfExists(join(directory, 'none'))).toBeUndefined()
    await expect(readIfExists(directory)).rejects.toMatchObject({ code: 'EISDIR' })
    await writeFile(join(directory, 'some'), 'text')
    expect(await readIfExists(join(directory, 'some'))).toBe('text')
  })
})

describe('removeFileDurably', () => {
  it('removes a file, and takes one that is not there for removed', async () => {
    const path = join(directory, 'file')
    await writeFile(path, '')
    await removeFileDurably(path)
    await removeFileDurably(path)
    expect(await readdir(directory)).toEqual([])
  })
})

describe('isAtomicFileTemp', () => {
  it.each([
    ['.a.json.7f.tmp', true],
    ['a.json', false],
    ['.hidden', false],
  ])('%s: %s', (name, expected) => {
    expect(isAtomicFileTemp(name)).toBe(expected)
  })
})

describe('removeAtomicFileTemps', () => {
  it('removes what interrupted writes of this one file left', async () => {
    const path = join(directory, 'events.json')
    for (const name of ['events.json', '.events.json.1.tmp', '.other.json.1.tmp', '.events.json.swp'])
      await writeFile(join(directory, name), 'x')
    await removeAtomicFileTemps(path)
    expect((await readdir(directory)).sort()).toEqual([
      '.events.json.swp',
      '.other.json.1.tmp',
      'events.json',
    ])
  })

  it('knows those of a name that leaves no room for more', async () => {
    const [name, other] = ['a', 'b'].map((end) => 'x'.repeat(254) + end)
    const tempOf = (of: string): string => `.${createHash('sha256').update(of).digest('hex')}.1.tmp`
    for (const of of [name, other]) await writeFile(join(directory, tempOf(of ?? '')), 'x')
    await removeAtomicFileTemps(join(directory, name ?? ''))
    expect(await readdir(directory)).toEqual([tempOf(other ?? '')])
  })

  it('takes a directory that is missing for one without remains', async () => {
    await expect(removeAtomicFileTemps(join(directory, 'none/file'))).resolves.toBeUndefined()
  })
})
