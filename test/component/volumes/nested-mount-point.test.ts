import { lstat, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { makeNestedMountPoint } from '../../../src/volumes/sub-path.ts'

let scratch = ''

beforeEach(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'podd-nested-'))
  for (const name of ['volume', 'directory']) await mkdir(`${scratch}/${name}`)
  await writeFile(`${scratch}/file`, 'text')
})

afterEach(async () => {
  await rm(scratch, { recursive: true })
})

const make = (source: 'file' | 'directory', { path = 'at/it', isInUse = false } = {}): Promise<void> =>
  makeNestedMountPoint({ directory: `${scratch}/volume`, path, source: `${scratch}/${source}` }, isInUse)

async function kindOf(path: string): Promise<string> {
  const found = await lstat(`${scratch}/volume/${path}`)
  return found.isSymbolicLink() ? 'link' : found.isDirectory() ? 'directory' : 'file'
}

describe('makeNestedMountPoint', () => {
  it('makes a place of the source’s kind, also where one of the other kind was', async () => {
    for (const kind of ['file', 'file', 'directory', 'directory', 'file'] as const) {
      await make(kind)
      expect(await kindOf('at/it')).toBe(kind)
    }
  })

  it.each([
    ['directory', 'file'],
    ['file', 'directory'],
  ] as const)('leaves a %s that is in use', async (before, after) => {
    await make(before)
    await make(before, { isInUse: true })
    await expect(make(after, { isInUse: true })).rejects.toThrow(
      `nothing can be mounted at at/it of a volume: a ${before} is there, which can become a ${after} once no other container that has the volume runs`,
    )
    expect(await kindOf('at/it')).toBe(before)
  })

  it('leaves what isn’t its own', async () => {
    await symlink('..data/key', `${scratch}/volume/key`)
    await make('file', { path: 'key' })
    expect(await kindOf('key')).toBe('link')
    await make('directory', { path: 'full/inner' })
    await expect(make('file', { path: 'full' })).rejects.toThrow('nothing can be mounted at full of a volume')
    await writeFile(`${scratch}/volume/text`, 'kept')
    await make('directory', { path: 'text' })
    expect(await readFile(`${scratch}/volume/text`, 'utf8')).toBe('kept')
  })
})
