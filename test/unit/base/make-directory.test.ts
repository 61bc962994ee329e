import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeDirectory } from '../../../src/base/make-directory.ts'

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
