import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeDirectory, writeInto } from '../../../src/base/atomic-file.ts'

let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-make-directory-'))
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

describe('makeDirectory', () => {
  it('makes a directory and those above it, each with its mode', async () => {
    const path = join(directory, 'a/b/c')
    await makeDirectory(path, 0o711)
    expect(statSync(path).mode & 0o777).toBe(0o711)
    expect(statSync(join(directory, 'a')).mode & 0o777).toBe(0o711)
  })

  it('leaves one that is there as it is, a link to one too', async () => {
    mkdirSync(join(directory, 'there'), { mode: 0o700 })
    symlinkSync(join(directory, 'there'), join(directory, 'link'))
    await makeDirectory(join(directory, 'there'), 0o755)
    await makeDirectory(join(directory, 'link'), 0o755)
    await makeDirectory(join(directory, 'link/below'), 0o755)
    expect(statSync(join(directory, 'there')).mode & 0o777).toBe(0o700)
    expect(statSync(join(directory, 'there/below')).isDirectory()).toBe(true)
  })

  it('may be asked twice at a time', async () => {
    const path = join(directory, 'a/b/c/d')
    await Promise.all(Array.from({ length: 8 }, () => makeDirectory(path, 0o755)))
    expect(statSync(path).isDirectory()).toBe(true)
  })

  it.each([
    ['a file', 'file', /ENOTDIR.*file'$/u],
    ['something below a file', 'file/x', /ENOTDIR/u],
    ['a link to nowhere', 'lost', /ENOTDIR.*lost'$/u],
    ['something below a link to nowhere', 'lost/x/y', /ENOTDIR.*lost'$/u],
  ])('says what is in the way of %s', async (_title, name, message) => {
    writeFileSync(join(directory, 'file'), '')
    symlinkSync(join(directory, 'nowhere'), join(directory, 'lost'))
    await expect(makeDirectory(join(directory, name), 0o755)).rejects.toThrow(message)
  })

  it.each(['/proc/podd/directory', '/proc/self/podd'])(
    'gives up on %s, where nothing can be made',
    async (path) => {
      await expect(makeDirectory(path, 0o755)).rejects.toThrow(/ENOENT.*podd'$/u)
    },
  )
})

describe('writeInto', () => {
  const noSpace = Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' })

  it.each([
    ['makes the directory where it is missing', 'a/b', 2],
    ['writes once where it is there', '.', 1],
  ])('%s', async (_title, name, expected) => {
    const path = join(directory, name)
    let writes = 0
    await writeInto(path, 0o700, async () => {
      writes += 1
      writeFileSync(join(path, 'file'), 'text')
    })
    expect(writes).toBe(expected)
    expect(statSync(join(path, 'file')).size).toBe(4)
  })

  it('tries no failure again but that of a missing directory, and that one once', async () => {
    const writes: string[] = []
    const lost = join(directory, 'file/below')
    writeFileSync(join(directory, 'file'), '')
    await expect(
      writeInto(directory, 0o700, async () => {
        writes.push('full')
        throw noSpace
      }),
    ).rejects.toBe(noSpace)
    const writeLost = async (): Promise<void> => writeFileSync(`${lost}/x`, '')
    await expect(writeInto(lost, 0o700, writeLost)).rejects.toThrow('ENOTDIR')
    expect(writes).toEqual(['full'])
  })
})
