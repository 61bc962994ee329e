import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import type { NetworkInterfaceInfo } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { parseDefaultInterface, selectNodeAddress } from '../../../src/host/addresses.ts'
import { nodeNameOf, readHostInfo } from '../../../src/host/facts/host-info.ts'
import { parseMemory } from '../../../src/host/facts/host-stats.ts'
import { readHostResolver } from '../../../src/host/resolver.ts'
import { dnsSubdomain } from '../../../src/pod/validation/name-rules.ts'

let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'podd-host-'))
})

afterEach(() => rmSync(root, { recursive: true }))

function put(path: string, text: string): void {
  mkdirSync(dirname(`${root}${path}`), { recursive: true })
  writeFileSync(`${root}${path}`, text)
}

function capabilities(mask: string): void {
  put('/proc/self/status', `Name:\tnode\nCapEff:\t${mask}\n`)
}

describe('the name of a node', () => {
  it.each([
    ['Gateway.example', 'gateway.example'],
    ['My_Pi', 'my-pi'],
    ['_box_', 'box'],
    ['Küche', 'k-che'],
    ['a..b.', 'a.b'],
    ['a.-b-.c', 'a.b.c'],
    ['...', 'localhost'],
    ['x'.repeat(300), 'x'.repeat(253)],
  ])('of the host %s is %s', (host, node) => {
    expect(nodeNameOf(host)).toBe(node)
  })

  it('is a DNS name whatever the host is called, and the host’s own where that is one', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })), (host) => {
        const node = nodeNameOf(host)
        expect(dnsSubdomain(node)).toEqual([])
        expect(nodeNameOf(node)).toBe(node)
        expect(node === host).toBe(dnsSubdomain(host).length === 0)
      }),
    )
  })
})

describe('readHostInfo', () => {
  beforeEach(() => {
    put('/proc/meminfo', 'MemTotal:        8000 kB\nMemFree:  10 kB\nSwapTotal:       2000 kB\n')
    put('/proc/sys/kernel/random/boot_id', 'b-1\n')
    put('/proc/sys/kernel/osrelease', '6.1.0\n')
    put('/proc/self/oom_score_adj', '-17\n')
    capabilities('000001fffeffffff')
  })

  it('reads a host of cgroup v2 under systemd', () => {
    put('/proc/self/mountinfo', '30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n')
    put('/sys/fs/cgroup/cgroup.controllers', 'cpu memory hugetlb pids\n')
    put('/sys/fs/cgroup/system.slice/memory.swap.max', 'max\n')
    put('/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages', '0\n')
    put('/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages', '0\n')
    put('/sys/module/apparmor/parameters/enabled', 'Y\n')
    put('/run/systemd/system/x', '')
    const info = readHostInfo(root)
    expect(info).toMatchObject({
      memoryBytes: 8_192_000,
      swapBytes: 2_048_000,
      bootId: 'b-1',
      kernel: '6.1.0',
      systemd: true,
      swapController: true,
      selinux: false,
      appArmor: true,
    })
    expect(info.cgroups?.version).toBe(2)
    expect([...info.hugePageSizes].sort()).toEqual(['1GB', '2MB'])
  })

  it('reads a host of cgroup v1 without huge pages or swap accounting', () => {
    put('/proc/self/mountinfo', '35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n')
    put('/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages', '0\n')
    expect(readHostInfo(root)).toMatchObject({
      systemd: false,
      swapController: false,
      hugePageSizes: [],
      appArmor: false,
    })
  })

  it.each([
    ['000001fffeffffff', -17],
    ['000001ffffffffff', -1000],
  ])('with capabilities %s lets OOM scores go down to %d', (mask, expected) => {
    capabilities(mask)
    expect(readHostInfo(root).minOomScoreAdj).toBe(expected)
  })

  it('knows this machine', () => {
    const info = readHostInfo()
    expect(info.pageBytes).toBe(Number(execFileSync('getconf', ['PAGESIZE'], { encoding: 'utf8' })))
    expect(info.cpus).toBeGreaterThan(0)
    expect(info.memoryBytes).toBeGreaterThan(1 << 26)
    expect(info.bootId).toMatch(/^[0-9a-f-]{36}$/)
  })
})

it('no memory is known where /proc/meminfo says nothing', () => {
  expect(parseMemory('')('MemTotal')).toBeUndefined()
})

describe('the node’s address', () => {
  const address = (ip: string, internal = false): NetworkInterfaceInfo => ({
    address: ip,
    netmask: '',
    mac: '',
    internal,
    cidr: null,
    ...(ip.includes(':') ? { family: 'IPv6', scopeid: 0 } : { family: 'IPv4' }),
  })

  it.each([
    [
      'of the default route',
      { lo: [address('127.0.0.1', true)], br0: [address('10.1.0.1')], eth0: [address('192.0.2.7')] },
      'eth0',
      '192.0.2.7',
    ],
    [
      'of any interface else',
      { lo: [address('127.0.0.1', true)], br0: [address('10.1.0.1')] },
      undefined,
      '10.1.0.1',
    ],
    [
      'of version 6 where there is no other',
      { eth0: [address('fe80::1'), address('2001:db8::7')] },
      'eth0',
      '2001:db8::7',
    ],
    ['of the loopback on a lone host', { lo: [address('127.0.0.1', true)] }, undefined, '127.0.0.1'],
  ])('is that %s', (_, interfaces, defaultInterface, expected) => {
    expect(selectNodeAddress(interfaces, defaultInterface)).toBe(expected)
  })

  it('comes from the default route with the lowest metric', () => {
    const routes = [
      'Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT',
      'wlan0\t00000000\t0100A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0',
      'eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0',
      'eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
      '',
    ].join('\n')
    expect(parseDefaultInterface(routes)).toBe('eth0')
    expect(parseDefaultInterface('Iface\n')).toBeUndefined()
  })
})

describe('readHostResolver', () => {
  it('takes what systemd-resolved asks where the host’s own server is its stub', async () => {
    put('/etc', 'nameserver 127.0.0.53\nsearch lan\n')
    put('/resolved', 'nameserver 192.0.2.1\nsearch lan\n')
    const resolver = await readHostResolver(`${root}/etc`, `${root}/resolved`)
    expect(resolver.servers).toEqual(['192.0.2.1'])
  })

  it('is empty on a host without one', async () => {
    expect(await readHostResolver(`${root}/none`, `${root}/none`)).toEqual({
      servers: [],
      searches: [],
      options: [],
    })
  })
})
