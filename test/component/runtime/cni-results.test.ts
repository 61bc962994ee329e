import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import {
  readCniResults,
  RememberedCniResults,
  removeCniResults,
  removeTornCniResults,
} from '../../../src/runtime/network/cni-results.ts'
import { ManualClock } from '../../support/manual-clock.ts'

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
  await removeCniResults('podd', undefined, directory)
  expect(readdirSync(directory)).toEqual([`cni-loopback-${other}-lo`])
})

it('forgets the results of some sandboxes alone', async () => {
  result(`podd-${id}-eth0`, '{}')
  result(`cni-loopback-${id}-lo`, '{}')
  result(`podd-${other}-eth0`, '{}')
  result(`bridge-${id}-eth0`, '{}')
  await removeCniResults('podd', new Set([id]), directory)
  expect(readdirSync(directory).sort()).toEqual([`bridge-${id}-eth0`, `podd-${other}-eth0`])
})

it('does without the directory', async () => {
  const absent = join(directory, 'absent')
  await expect(removeCniResults('podd', undefined, absent)).resolves.toBeUndefined()
  await expect(removeTornCniResults('podd', absent)).resolves.toBeUndefined()
  await expect(readCniResults(absent)).resolves.toEqual([])
})

it('does not take a directory that cannot be read for an empty one', async () => {
  result('file', '')
  await expect(readCniResults(join(directory, 'file'))).rejects.toMatchObject({ code: 'ENOTDIR' })
  symlinkSync('loop', join(directory, 'loop'))
  await expect(readCniResults(directory)).rejects.toMatchObject({ code: 'ELOOP' })
})

it('reads which interfaces, namespaces, addresses and host ports a sandbox has', async () => {
  const interfaces = [
    { name: 'podd0', mac: '02:00:00:00:00:01' },
    { name: 'veth1' },
    { name: 'eth0', sandbox: '/run/netns/cni-1' },
    'nonsense',
  ]
  const ips = [{ address: '10.86.0.5/24', gateway: '10.86.0.1' }, { address: 'fd00::5/64' }, 'nonsense']
  const portMappings = [
    { HostPort: 80, ContainerPort: 8080, Protocol: 'TCP', HostIP: '' },
    { HostPort: 53, ContainerPort: 5353, HostIP: '127.0.0.1' },
    { HostPort: '81' },
    'nonsense',
  ]
  const capabilityArgs = { portMappings }
  const cached = { containerId: id, networkName: 'podd', result: { interfaces, ips }, capabilityArgs }
  result(`podd-${id}-eth0`, JSON.stringify(cached))
  result(`podd-${other}-eth0`, '{"containerId":')
  expect(await readCniResults(directory)).toEqual([
    {
      path: join(directory, `podd-${id}-eth0`),
      sandboxId: id,
      networkName: 'podd',
      hostInterfaces: ['podd0', 'veth1'],
      namespaces: ['/run/netns/cni-1'],
      macs: new Map([['podd0', '02:00:00:00:00:01']]),
      gateways: ['10.86.0.1/24'],
      addresses: ['10.86.0.5/24', 'fd00::5/64'],
      portMappings: [
        { hostPort: 80, containerPort: 8080, protocol: 'tcp', hostIp: '' },
        { hostPort: 53, containerPort: 5353, protocol: 'tcp', hostIp: '127.0.0.1' },
      ],
    },
  ])
})

it('reads results again when one was made or removed, and while they may still be written', async () => {
  const clock = new ManualClock()
  const whole = (networkName: string, containerId: string): string =>
    JSON.stringify({ networkName, containerId, result: { interfaces: [] } })
  const remembered = new RememberedCniResults('podd', clock, directory)
  const ids = async (): Promise<readonly string[]> =>
    (await remembered.read()).map(({ sandboxId }) => sandboxId).sort()
  result(`podd-${id}-eth0`, '{"networkName":')
  result(`bridge-${id}-eth0`, whole('bridge', id))
  expect(await ids()).toEqual([])
  await clock.advance(1999)
  result(`podd-${id}-eth0`, whole('podd', id))
  expect(await ids()).toEqual([id])
  await clock.advance(1)
  const known = await remembered.read()
  expect(await remembered.read()).toBe(known)
  result(`podd-${other}-eth0`, whole('podd', other))
  expect(await ids()).toEqual([id, other])
  rmSync(join(directory, `podd-${id}-eth0`))
  expect(await ids()).toEqual([other])
})

it('has no results where there is no directory, until there is one', async () => {
  const made = join(directory, 'results')
  const remembered = new RememberedCniResults('podd', new ManualClock(), made)
  expect(await remembered.read()).toEqual([])
  mkdirSync(made)
  writeFileSync(join(made, 'podd-x-eth0'), JSON.stringify({ networkName: 'podd', containerId: id }))
  expect(await remembered.read()).toHaveLength(1)
})
