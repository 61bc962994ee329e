import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLogger } from '../../../src/base/logger.ts'
import { UnpackedImages } from '../../../src/runtime/containerd/unpacked-images.ts'
import type { UnpackedImagesOptions, UnpackTools } from '../../../src/runtime/containerd/unpacked-images.ts'
import { smallFile } from '../../../src/store/state-report.ts'

let directory = ''
let held: string[] = []
let done: string[] = []

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-unpacked-'))
  held = ['old']
  done = []
})
afterEach(() => rmSync(directory, { recursive: true }))

const path = (): string => join(directory, 'unpacking.json')
const onDisk = (): unknown =>
  existsSync(path()) ? JSON.parse(readFileSync(path(), 'utf8')).written : undefined

function unpackedIn(bootId: string, change: Partial<UnpackedImagesOptions['images']> = {}): UnpackedImages {
  return new UnpackedImages({
    file: smallFile(path()),
    bootId,
    images: {
      list: async () => held.map((id) => ({ id, names: [`${id}:1`] })),
      async remove(id) {
        held = held.filter((each) => each !== id)
      },
      ...change,
    },
    onDiscarded: ({ names }) => done.push(`discarded ${names.join()}`),
    logger: silentLogger,
  })
}

const tools: UnpackTools = {
  writeOut: async () => void done.push('written out'),
  dropUnfinished: async () => void done.push('dropped'),
}

describe('the record of images that are being unpacked', () => {
  it('is on the disk from before the first until the last is written', async () => {
    const unpacked = unpackedIn('boot')
    await unpacked.begin()
    expect(onDisk()).toEqual(['old'])
    await unpacked.begin()
    held.push('a', 'b')
    expect(['old', 'a', 'b'].map((id) => unpacked.isUnwritten(id))).toEqual([false, true, true])
    await unpacked.end(['a'])
    expect(onDisk()).toEqual(['old', 'a'])
    expect(['old', 'a', 'b'].map((id) => unpacked.isUnwritten(id))).toEqual([false, false, true])
    await unpacked.endNamed(['b:1'])
    expect(onDisk()).toBeUndefined()
    expect(unpacked.isUnwritten('later')).toBe(false)
  })

  it('knows what was there when the next one begins', async () => {
    const unpacked = unpackedIn('boot')
    await unpacked.begin()
    await unpacked.end(['a'])
    held = ['old', 'a', 'elsewhere']
    await unpacked.begin()
    expect(onDisk()).toEqual(held)
  })

  it('hinders no pull where it cannot be written', async () => {
    rmSync(directory, { recursive: true })
    const unpacked = unpackedIn('boot')
    await expect(unpacked.begin()).resolves.toBeUndefined()
    await expect(unpacked.end([])).resolves.toBeUndefined()
    directory = mkdtempSync(join(tmpdir(), 'podd-unpacked-'))
  })
})

describe('a start after it', () => {
  async function endInTheMiddle(): Promise<void> {
    const unpacked = unpackedIn('before')
    await unpacked.begin()
    await unpacked.begin()
    held.push('whole', 'damaged')
    await unpacked.end(['whole'])
  }

  it('in another boot removes what was not on the disk, and what was in flight', async () => {
    await endInTheMiddle()
    await unpackedIn('after').recover(tools)
    expect(held).toEqual(['old', 'whole'])
    expect(done).toEqual(['discarded damaged:1', 'dropped'])
    expect(onDisk()).toBeUndefined()
  })

  it('in the same boot has all of it written', async () => {
    await endInTheMiddle()
    await unpackedIn('before').recover(tools)
    expect(held).toEqual(['old', 'whole', 'damaged'])
    expect(done).toEqual(['written out'])
    expect(onDisk()).toBeUndefined()
  })

  it('goes on with it where that failed, the next time', async () => {
    await endInTheMiddle()
    const remove = () => Promise.reject(new Error('no answer'))
    await unpackedIn('after', { remove }).recover(tools)
    expect(onDisk()).toEqual(['old', 'whole'])
    await unpackedIn('after').recover(tools)
    expect(held).toEqual(['old', 'whole'])
  })

  it('leaves pulls alone that are in flight when containerd alone was started again', async () => {
    const unpacked = unpackedIn('boot')
    await unpacked.begin()
    held.push('new')
    await unpacked.recover(tools)
    expect(done).toEqual([])
    expect(onDisk()).toEqual(['old'])
  })

  it('does nothing where nothing was being unpacked, or that cannot be read', async () => {
    await unpackedIn('after').recover(tools)
    writeFileSync(path(), '{"version":1,"bootId":"before"}')
    await unpackedIn('after').recover(tools)
    expect(done).toEqual([])
    expect(existsSync(`${path()}.unreadable`)).toBe(true)
  })
})
