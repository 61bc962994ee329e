import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { containerdPlaces } from '../../../src/runtime/containerd/process.ts'
import type { ContainerdPlaces } from '../../../src/runtime/containerd/process.ts'
import {
  formatConflist,
  networksOverlap,
  parseIpv4Cidr,
  parseRoutes,
  preparePodNetwork,
  restorePodNetwork,
  selectPodSubnets,
} from '../../../src/runtime/network/pod-network.ts'
import type { HostNetwork } from '../../../src/runtime/network/pod-network.ts'

const routeTable = `Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
wg0\t0000560A\t00000000\t0001\t0\t0\t0\t0080FFFF\t0\t0\t0
`

function networks(...cidrs: readonly string[]) {
  return cidrs.map((cidr) => parseIpv4Cidr(cidr) ?? { base: -1, prefix: 0 })
}

describe('parseIpv4Cidr', () => {
  it('clears host bits', () => {
    expect(parseIpv4Cidr('10.86.3.7/24')).toEqual(parseIpv4Cidr('10.86.3.0/24'))
    expect(parseIpv4Cidr('255.255.255.255/0')).toEqual({ base: 0, prefix: 0 })
  })

  it.each(['', '10.86.0.0', '10.86.0.0/33', '10.86.0/24', '10.86.0.0/24/1', 'fd00::/64', '10.86.0.0/x'])(
    'refuses %j',
    (text) => {
      expect(parseIpv4Cidr(text)).toBeUndefined()
    },
  )
})

describe('networksOverlap', () => {
  it.each([
    ['10.86.0.0/24', '10.86.0.0/24', true],
    ['10.86.0.0/24', '10.0.0.0/8', true],
    ['10.86.0.0/16', '10.86.255.0/24', true],
    ['10.86.0.0/24', '10.86.1.0/24', false],
    ['10.86.0.0/25', '10.86.0.128/25', false],
  ])('%s and %s: %s', (a, b, expected) => {
    const [first, second] = networks(a, b)
    expect(first !== undefined && second !== undefined && networksOverlap(first, second)).toBe(expected)
  })
})

describe('parseRoutes', () => {
  it('reads devices, networks and prefixes', () => {
    expect(parseRoutes(routeTable)).toEqual([
      { device: 'eth0', network: { base: 0, prefix: 0 } },
      { device: 'eth0', network: parseIpv4Cidr('192.0.2.0/24') },
      { device: 'wg0', network: parseIpv4Cidr('10.86.0.0/17') },
    ])
  })
})

describe('selectPodSubnets', () => {
  it.each([
    ['nothing in the way', [], 0, '10.86.0.0/24'],
    ['a start further on', [], 7, '10.86.7.0/24'],
    ['another podd', ['10.86.0.0/24'], 0, '10.86.1.0/24'],
    ['the last one taken', ['10.86.255.0/24'], 255, '10.86.0.0/24'],
    ['a host in 10.0.0.0/8', ['10.0.0.0/8'], 0, '172.30.0.0/24'],
  ])('%s', (_, used, start, expected) => {
    expect(selectPodSubnets(networks(...used), start)[0]).toBe(expected)
  })

  it('gives none where all is taken', () => {
    expect(selectPodSubnets(networks('10.0.0.0/8', '172.16.0.0/12'), 0)).toEqual([])
  })
})

describe('formatConflist', () => {
  const places = containerdPlaces('/var/lib/podd', '/run/podd')

  it('defines a bridge with host ports', () => {
    const conflist = JSON.parse(formatConflist(places, ['10.86.0.0/24'], 1400)) as object
    expect(conflist).toEqual({
      cniVersion: '0.4.0',
      name: 'podd',
      plugins: [
        {
          type: 'bridge',
          bridge: 'podd0',
          isGateway: true,
          hairpinMode: true,
          mtu: 1400,
          ipam: {
            type: 'host-local',
            dataDir: '/run/podd/containerd/cni',
            ranges: [[{ subnet: '10.86.0.0/24' }]],
            routes: [{ dst: '0.0.0.0/0' }],
          },
        },
        { type: 'portmap', capabilities: { portMappings: true } },
      ],
    })
  })

  it('gives each family its range and its default route', () => {
    const conflist = formatConflist(places, ['10.1.0.0/24', 'fd00:1::/64'], undefined)
    expect(JSON.parse(conflist)).toMatchObject({
      plugins: [
        {
          ipam: {
            ranges: [[{ subnet: '10.1.0.0/24' }], [{ subnet: 'fd00:1::/64' }]],
            routes: [{ dst: '0.0.0.0/0' }, { dst: '::/0' }],
          },
        },
        {},
      ],
    })
    expect(conflist).not.toContain('mtu')
  })
})

describe('preparePodNetwork', () => {
  let directory = ''
  let places: ContainerdPlaces
  const host = (change: Partial<HostNetwork> = {}): HostNetwork => ({
    routes: parseRoutes(routeTable),
    addresses: [],
    mtu: () => 1500,
    claim: () => Promise.resolve(true),
    removeIdleBridge: () => Promise.reject(new Error('not to be asked')),
    ...change,
  })

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'podd-net-'))
    places = { ...containerdPlaces(directory, '/run/podd'), networkName: 'podd' }
    await mkdir(places.rootDir, { recursive: true })
  })

  afterEach(async () => {
    await rm(directory, { recursive: true, force: true })
  })

  it('chooses a subnet beside the routes once, and keeps it when a route appears there', async () => {
    const chosen = { subnets: ['10.86.128.0/24'], awaited: undefined }
    expect(await preparePodNetwork(places, [], host())).toEqual(chosen)
    const taken = host({ routes: [{ device: 'podd0', network: { base: 0x0a568000, prefix: 24 } }] })
    expect(await preparePodNetwork(places, [], taken)).toEqual(chosen)
  })

  it('leaves a subnet to the podd that has just chosen it, and takes the first where all are claimed', async () => {
    const claimed = ['10.86.128.0/24', '10.86.129.0/24']
    const claim = (subnet: string) => Promise.resolve(!claimed.includes(subnet))
    expect(await preparePodNetwork(places, [], host({ claim }))).toMatchObject({
      subnets: ['10.86.130.0/24'],
    })
    await rm(places.networkRecordPath)
    const refuse = () => Promise.resolve(false)
    const busy = host({ claim: refuse, removeIdleBridge: () => Promise.resolve(true) })
    expect(await preparePodNetwork(places, [], busy)).toMatchObject({ subnets: ['10.86.128.0/24'] })
  })

  it('chooses anew when the record is damaged', async () => {
    await writeFile(places.networkRecordPath, '{"subnet": "10.')
    expect(await preparePodNetwork(places, [], host())).toMatchObject({ subnets: ['10.86.128.0/24'] })
  })

  it('takes the configured subnets and does not record them', async () => {
    const network = await preparePodNetwork(places, ['10.200.0.0/16'], host())
    expect(network.subnets).toEqual(['10.200.0.0/16'])
    expect(await readFile(places.conflistPath, 'utf8')).toContain('10.200.0.0/16')
    await expect(stat(places.networkRecordPath)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  it('writes a config again that was removed or changed, and changes none for another MTU of the host', async () => {
    const withMtu = (mtu: number) => host({ mtu: () => mtu })
    const subnets = ['10.200.0.0/16']
    await preparePodNetwork(places, subnets, withMtu(1400))
    const written = await readFile(places.conflistPath, 'utf8')
    expect(await restorePodNetwork(places, subnets, withMtu(1300))).toBeUndefined()
    expect(await readFile(places.conflistPath, 'utf8')).toBe(written)
    await writeFile(places.conflistPath, '{"plugins": []}')
    expect(await restorePodNetwork(places, subnets, withMtu(1400))).toBe('file')
    expect(await readFile(places.conflistPath, 'utf8')).toBe(written)
    await rm(places.cniConfDir, { recursive: true })
    expect(await restorePodNetwork(places, subnets, withMtu(1400))).toBe('directory')
    expect(await readFile(places.conflistPath, 'utf8')).toBe(written)
  })

  describe('with other subnets than before', () => {
    const asked: string[] = []
    /** A host whose bridge has ports, or has none. */
    const busy = (hasPorts: boolean) =>
      host({
        removeIdleBridge: (bridge) => {
          asked.push(bridge)
          return Promise.resolve(!hasPorts)
        },
      })
    const written = () => readFile(places.conflistPath, 'utf8')

    beforeEach(() => asked.splice(0))

    it('keeps the old ones while pods are on the bridge, and takes the new ones afterwards', async () => {
      await preparePodNetwork(places, ['10.1.0.0/24'], host())
      const before = await written()
      expect(await preparePodNetwork(places, ['10.2.0.0/24'], busy(true))).toEqual({
        subnets: ['10.1.0.0/24'],
        awaited: ['10.2.0.0/24'],
      })
      expect(await written()).toBe(before)
      expect(await preparePodNetwork(places, ['10.2.0.0/24'], busy(false))).toEqual({
        subnets: ['10.2.0.0/24'],
        awaited: undefined,
      })
      expect(await written()).toContain('"subnet": "10.2.0.0/24"')
      expect(await written()).not.toContain('10.1.0.0')
      expect(asked).toEqual([places.bridgeName, places.bridgeName])
    })

    it('keeps configured ones for the chosen one too, and each family of them', async () => {
      const configured = ['10.1.0.0/24', 'fd00:1::/64']
      await preparePodNetwork(places, configured, host())
      expect(await preparePodNetwork(places, [], busy(true))).toEqual({
        subnets: configured,
        awaited: ['10.86.128.0/24'],
      })
      expect(await preparePodNetwork(places, [], busy(false))).toMatchObject({ subnets: ['10.86.128.0/24'] })
    })

    it('adds a family at once', async () => {
      await preparePodNetwork(places, ['10.1.0.0/24'], host())
      const both = ['10.1.0.0/24', 'fd00:1::/64']
      expect(await preparePodNetwork(places, both, busy(true))).toEqual({ subnets: both, awaited: undefined })
      expect(asked).toEqual([])
    })
  })

  it('rewrites the conflist only when it changes', async () => {
    await preparePodNetwork(places, [], host())
    const before = await stat(places.conflistPath)
    await preparePodNetwork(places, [], host())
    expect((await stat(places.conflistPath)).ino).toBe(before.ino)
    await preparePodNetwork(places, [], host({ mtu: () => 1420 }))
    expect((await stat(places.conflistPath)).ino).not.toBe(before.ino)
    expect(await readFile(places.conflistPath, 'utf8')).toContain('"mtu": 1420')
  })

  it('says what to do where no subnet is free', async () => {
    const full = host({ addresses: networks('10.0.0.0/8', '172.16.0.0/12') })
    await expect(preparePodNetwork(places, [], full)).rejects.toMatchObject({
      code: 'EMBEDDED_CONTAINERD',
      hint: expect.stringContaining('--pod-cidr') as string,
    })
    expect(dirname(places.conflistPath)).toBe(places.cniConfDir)
  })
})
