import { appendFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { decodeOrTellWhy } from '../../../src/sources/decode-source.ts'
import type { DecodeSource } from '../../../src/sources/decode-source.ts'
import { DirectoryFiles } from '../../../src/sources/directory/directory-files.ts'
import { settleMs } from '../../../src/sources/directory/pending-files.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { makeScratch, podYaml } from './source-rig.ts'

let scratch: Awaited<ReturnType<typeof makeScratch>>
let clock: ManualClock
let reads: number
let decodes: number
let files: DirectoryFiles
let path: string

beforeEach(async () => {
  scratch = await makeScratch()
  path = join(scratch.path, 'web.yaml')
  clock = new ManualClock()
  reads = 0
  decodes = 0
  const decode: DecodeSource = async (bytes, options) => {
    decodes += 1
    return await decodeOrTellWhy({ bytes, options })
  }
  const onRead = (): void => void (reads += 1)
  files = new DirectoryFiles(scratch.path, [], onRead, { clock, decode, fieldValidation: 'Warn' })
})
afterEach(async () => {
  await scratch.remove()
})

/** Tells of a write, and waits for what is read because of it. */
async function hintAndRead(): Promise<void> {
  files.hint('web.yaml', 'written')
  await files.lookAtHinted()
  await settle()
}

/** Settles, and waits for the read that this begins. */
async function settle(): Promise<void> {
  const before = reads
  files.settle({ removeAtOnce: false })
  await expect.poll(() => reads, { interval: 2 }).toBeGreaterThan(before)
}

const pods = (): readonly string[] => files.documents().pods.map(({ pod }) => pod.metadata.name)

describe('a new file that is read before it is quiet', () => {
  it('is taken once it is quiet, without another read', async () => {
    await writeFile(path, podYaml('web'))
    await hintAndRead()
    expect(pods()).toEqual([])
    await clock.advance(settleMs)
    await settle()
    expect(pods()).toEqual(['web'])
    expect(decodes).toBe(1)
  })

  it('is read again where it has changed and nobody told of it yet', async () => {
    await writeFile(path, podYaml('web'))
    await hintAndRead()
    await appendFile(path, `---\n${podYaml('late')}`)
    await clock.advance(settleMs)
    await settle()
    expect(pods()).toEqual([])
    await files.lookAtHinted()
    await settle()
    await clock.advance(settleMs)
    await settle()
    expect(pods()).toEqual(['web', 'late'])
  })

  it('is not taken where another file has its name by then, or none', async () => {
    await writeFile(path, podYaml('web'))
    await hintAndRead()
    await rename(path, join(scratch.path, 'gone'))
    await clock.advance(settleMs)
    await settle()
    await files.lookAtHinted()
    expect(pods()).toEqual([])
    expect(files.isSettling()).toBe(false)
  })

  it('is taken at once where it is JSON that parses', async () => {
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } }
    await writeFile(path, JSON.stringify({ ...pod, spec: { containers: [{ name: 'main', image: 'a' }] } }))
    await hintAndRead()
    expect(pods()).toEqual(['web'])
  })
})
