import { mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeFolder } from '../../../src/base/make-folder.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podd-make-folder-'))
})

afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe('makeFolder', () => {
  it('makes a folder and those above it, each with its mode', async () => {
    const path = join(folder, 'a/b/c')
    await makeFolder(path, 0o711)
    expect(statSync(path).mode & 0o777).toBe(0o711)
    expect(statSync(join(folder, 'a')).mode & 0o777).toBe(0o711)
  })

  it('leaves one that is there as it is, a link to one too', async () => {
    mkdirSync(join(folder, 'there'), { mode: 0o700 })
    symlinkSync(join(folder, 'there'), join(folder, 'link'))
    await makeFolder(join(folder, 'there'), 0o755)
    await makeFolder(join(folder, 'link'), 0o755)
    await makeFolder(join(folder, 'link/below'), 0o755)
    expect(statSync(join(folder, 'there')).mode & 0o777).toBe(0o700)
    expect(statSync(join(folder, 'there/below')).isDirectory()).toBe(true)
  })

  it('may be asked twice at a time', async () => {
    const path = join(folder, 'a/b/c/d')
    await Promise.all(Array.from({ length: 8 }, () => makeFolder(path, 0o755)))
    expect(statSync(path).isDirectory()).toBe(true)
  })

  it.each([
    ['a file', 'file', /ENOTDIR.*file'$/u],
    ['something below a file', 'file/x', /ENOTDIR/u],
    ['a link to nowhere', 'lost', /ENOTDIR.*lost'$/u],
    ['something below a link to nowhere', 'lost/x/y', /ENOTDIR.*lost'$/u],
  ])('says what is in the way of %s', async (_title, name, message) => {
    writeFileSync(join(folder, 'file'), '')
    symlinkSync(join(folder, 'nowhere'), join(folder, 'lost'))
    await expect(makeFolder(join(folder, name), 0o755)).rejects.toThrow(message)
  })

  it.each(['/proc/podd/folder', '/proc/self/podd'])(
    'gives up on %s, where nothing can be made',
    async (path) => {
      await expect(makeFolder(path, 0o755)).rejects.toThrow(/ENOENT.*podd'$/u)
    },
  )
})
