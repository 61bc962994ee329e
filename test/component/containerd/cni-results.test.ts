import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  listCniResults,
  removeCniResults,
  removeTornCniResults,
} from '../../../src/containerd/network/cni-results.ts'

const id = 'ab'.repeat(32)
const other = 'cd'.repeat(32)
let directory: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'podd-cni-'))
})
afterEach(() => {
  rmSync(directory, { recursive: true })
})

function result(name: string, text: string): void {
  writeFileSync(join(directory, name), text)
}

it('takes away what a power cut left of results, and nothing that is whole or of another network', async () => {
  result(`podd-${id}-eth0`, '')
  result(`cni-loopback-${id}-lo`, '{"kind":')
  result(`podd-${other}-eth0`, '{"kind":"cniCacheV1"}')
  result(`bridge-${id}-eth0`, '')
  await removeTornCniResults('podd', directory)
  expect(readdirSync(directory).sort()).toEqual([`bridge-${id}-eth0`, `podd-${other}-eth0`])
})

it('forgets all of a network, with the loopback of its sandboxes', async () => {
  result(`podd-${id}-eth0`, '{}')
  result(`cni-loopback-${id}-lo`, '{}')
  result(`cni-loopback-${other}-lo`, '{}')
  await removeCniResults('podd', { directory })
  expect(readdirSync(directory)).toEqual([`cni-loopback-${other}-lo`])
})

it('lists and forgets the results of some sandboxes alone', async () => {
  result(`podd-${id}-eth0`, '{}')
  result(`cni-loopback-${id}-lo`, '{}')
  result(`podd-${other}-eth0`, '{}')
  result(`bridge-${id}-eth0`, '{}')
  expect(new Set(await listCniResults('podd', directory))).toEqual(new Set([id, other]))
  await removeCniResults('podd', { ids: new Set([id]), directory })
  expect(readdirSync(directory).sort()).toEqual([`bridge-${id}-eth0`, `podd-${other}-eth0`])
})

it('does without the directory', async () => {
  const absent = join(directory, 'absent')
  await expect(removeCniResults('podd', { directory: absent })).resolves.toBeUndefined()
  await expect(removeTornCniResults('podd', absent)).resolves.toBeUndefined()
  await expect(listCniResults('podd', absent)).resolves.toEqual([])
})
