import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { containerdPlaces } from '../../../src/containerd/process/containerd-places.ts'
import { LeakedRules } from '../../../src/containerd/leaks/leaked-rules.ts'
import { ManualClock } from '../../support/manual-clock.ts'

// Of no real network: what libcni remembers of it on this host isn't touched.
const places = containerdPlaces('/var/lib/podd-leaks', '/run/podd-leaks')
const cidrs = ['10.86.0.0/24']
const path = process.env['PATH']

const clock = new ManualClock()
let directory = ''
let known: Set<string>
let isMaking = false
let rules: LeakedRules

const ruleOf = (id: string): string =>
  `-A POSTROUTING -m comment --comment "name: \\"${places.networkName}\\" id: \\"${id}\\"" -j CNI-0123456789abcdef01234567`

async function write(...ids: readonly string[]): Promise<void> {
  const lines = ['*nat', ':CNI-0123456789abcdef01234567 - [0:0]', ...ids.map(ruleOf), 'COMMIT', '']
  await writeFile(join(directory, 'rules'), lines.join('\n'))
}

function check(): Promise<readonly string[]> {
  return rules.check(cidrs, { list: async () => new Set(known), isAnyInTheMaking: () => isMaking })
}

async function calls(): Promise<string> {
  return readFile(join(directory, 'calls'), 'utf8').catch(() => '')
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-leaks-'))
  const save = `#!/bin/sh\necho save >>${directory}/calls\ncat ${directory}/rules\n`
  const restore = `#!/bin/sh\ncat >>${directory}/restored\n: >${directory}/rules\n`
  await writeFile(join(directory, 'iptables-save'), save, { mode: 0o755 })
  await writeFile(join(directory, 'iptables-restore'), restore, { mode: 0o755 })
  process.env['PATH'] = `${directory}:${path ?? ''}`
  known = new Set(['ab'])
  isMaking = false
  rules = new LeakedRules(places, clock)
})

afterEach(async () => {
  process.env['PATH'] = path ?? ''
  await rm(directory, { recursive: true, force: true })
})

it('removes the rules of a sandbox that has been unknown for half a minute', async () => {
  await write('ab', 'cd')
  expect(await check()).toEqual([])
  await clock.advance(29_000)
  expect(await check()).toEqual([])
  await clock.advance(1000)
  expect(await check()).toEqual(['cd'])
  const restored = await readFile(join(directory, 'restored'), 'utf8')
  expect(restored).toContain(ruleOf('cd').replace('-A', '-D'))
  expect(restored).not.toContain(ruleOf('ab').replace('-A', '-D'))
  expect(await check()).toEqual([])
})

it('leaves alone what becomes known, and what may be in the making', async () => {
  await write('ab', 'cd', 'ef')
  await check()
  known.add('cd')
  isMaking = true
  await clock.advance(60_000)
  expect(await check()).toEqual([])
  isMaking = false
  expect(await check()).toEqual(['ef'])
})

it('starts programs only when a sandbox came or went, something is suspected, or after minutes', async () => {
  await write('ab')
  await check()
  expect(await calls()).toBe('save\n')
  await clock.advance(60_000)
  await check()
  expect(await calls()).toBe('save\n')
  known.add('cd')
  await check()
  expect(await calls()).toBe('save\n'.repeat(2))
  known.delete('cd')
  await write('ab', 'cd')
  await check()
  await check()
  expect(await calls()).toBe('save\n'.repeat(4))
  await write('ab')
  await check()
  await clock.advance(300_000)
  await check()
  expect(await calls()).toBe('save\n'.repeat(5))
  await clock.advance(300_000)
  await check()
  expect(await calls()).toBe('save\n'.repeat(6))
})
