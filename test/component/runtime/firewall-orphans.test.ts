import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Orphan } from '../../../src/decide/node/plan-orphans.ts'
import { ContainerdInventory } from '../../../src/runtime/containerd/leaks.ts'
import { containerdPlaces } from '../../../src/runtime/containerd/process.ts'
import { firewallOrphans } from '../../../src/runtime/network/leaks.ts'

const places = containerdPlaces('/var/lib/podd-leaks', '/run/podd-leaks')
const path = process.env['PATH']

let directory = ''
let known: Set<string>
let recorded: Set<string>

const ruleOf = (id: string): string =>
  `-A POSTROUTING -m comment --comment "name: \\"${places.networkName}\\" id: \\"${id}\\"" -j CNI-0123456789abcdef01234567`

const collector = firewallOrphans(
  new ContainerdInventory(
    places,
    () => ({ ctrPath: '/bin/false', snapshotter: undefined, podCidrs: ['10.86.0.0/24'] }),
    { list: async () => new Set(known), listSandboxes: async () => new Set(known) },
    {
      containers: async () => [...recorded].map((id) => ({ id, kind: 'sandbox' as const, snapshotKey: '' })),
      tasks: async () => [],
      snapshots: async () => [],
      leases: async () => [],
    },
  ),
)

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'podd-leaks-'))
  const save = `#!/bin/sh\ncat ${directory}/rules\n`
  const restore = `#!/bin/sh\ncat >>${directory}/restored\n: >${directory}/rules\n`
  await writeFile(join(directory, 'iptables-save'), save, { mode: 0o755 })
  await writeFile(join(directory, 'iptables-restore'), restore, { mode: 0o755 })
  const lines = ['*nat', ':CNI-0123456789abcdef01234567 - [0:0]', ruleOf('ab'), ruleOf('cd'), 'COMMIT', '']
  await writeFile(join(directory, 'rules'), lines.join('\n'))
  process.env['PATH'] = `${directory}:${path ?? ''}`
  known = new Set(['ab'])
  recorded = new Set(['ab'])
})

afterEach(async () => {
  process.env['PATH'] = path ?? ''
  await rm(directory, { recursive: true, force: true })
})

async function found(): Promise<readonly Orphan[]> {
  return collector.list({ signal: new AbortController().signal })
}

it('finds and removes the rules of a sandbox that is gone', async () => {
  const [orphan, ...others] = await found()
  expect([orphan?.id, others]).toEqual(['cd', []])
  expect(orphan === undefined ? false : await collector.remove(orphan)).toBe(true)
  const restored = await readFile(join(directory, 'restored'), 'utf8')
  expect(restored).toContain(ruleOf('cd').replace('-A', '-D'))
  expect(restored).not.toContain(ruleOf('ab').replace('-A', '-D'))
  expect(await found()).toEqual([])
})

it('leaves the rules of one alone that is listed by then', async () => {
  const [orphan] = await found()
  known.add('cd')
  expect(orphan === undefined ? true : await collector.remove(orphan)).toBe(false)
})

it('leaves the rules of one alone that containerd has and CRI does not list', async () => {
  const [orphan] = await found()
  recorded.add('cd')
  expect(await found()).toEqual([])
  expect(orphan === undefined ? true : await collector.remove(orphan)).toBe(false)
})
