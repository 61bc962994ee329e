import type { PodDnsConfig } from '../../../src/pod/schema/pod-schema.ts'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../../src/base/json.ts'
import {
  parseResolvConf,
  podDns,
  selectHostResolver,
  hostNetworkHostsFile,
  podHostsFile,
  servicesSection,
  servicesSectionOf,
  kernelHostname,
  podHostname,
} from '../../../src/translate/network.ts'
import type { ResolvConf } from '../../../src/translate/network.ts'
import { podWith, testPod } from './pods.ts'

const host: ResolvConf = { servers: ['192.0.2.1'], searches: ['lan'], options: ['timeout:1'] }

describe('parseResolvConf', () => {
  it.each<[string, Partial<ResolvConf>]>([
    ['', { servers: [], searches: [], options: [] }],
    ['nameserver 1.2.3.4\nnameserver 5.6.7.8\n', { servers: ['1.2.3.4', '5.6.7.8'] }],
    ['  nameserver\t1.2.3.4  trailing\n', { servers: ['1.2.3.4'] }],
    ['# nameserver 1.1.1.1\n; nameserver 2.2.2.2\nnameserver\n', { servers: [] }],
    ['search a b.\nsearch c. .\n', { searches: ['c', '.'] }],
    ['search a\nsearch\n', { searches: [] }],
    ['options ndots:5 attempts:2\noptions rotate\n', { options: ['ndots:5', 'attempts:2', 'rotate'] }],
  ])('%j', (text, expected) => {
    expect(parseResolvConf(text)).toMatchObject(expected)
  })
})

describe('selectHostResolver', () => {
  const stub: ResolvConf = { ...host, servers: ['127.0.0.53'] }
  const local6: ResolvConf = { ...host, servers: ['::1', '127.0.0.1'] }
  it.each([
    [host, { ...host, servers: ['192.0.2.9'] }, ['192.0.2.1']],
    [stub, { ...host, servers: ['192.0.2.9'] }, ['192.0.2.9']],
    [local6, { ...host, servers: ['192.0.2.9'] }, ['192.0.2.9']],
    [stub, { ...host, servers: [] }, ['127.0.0.53']],
    [stub, undefined, ['127.0.0.53']],
  ])('of %j and %j has the servers %j', (etc, systemd, servers) => {
    expect(selectHostResolver(etc, systemd).servers).toEqual(servers)
  })
})

describe('podDns', () => {
  const of = (spec: JsonObject, dnsConfig?: PodDnsConfig, from = host) => {
    const pod = podWith(testPod(spec), dnsConfig === undefined ? {} : { dnsConfig })
    return podDns(pod, from)
  }
  const empty = { servers: [], searches: [], options: [] }

  it.each([
    [{}, host],
    [{ dnsPolicy: 'Default' }, host],
    [{ dnsPolicy: 'None' }, empty],
    [{ dnsPolicy: 'ClusterFirst' }, host],
    [{ dnsPolicy: 'ClusterFirst', hostNetwork: true }, host],
  ])('of %j is %j', (spec, expected) => {
    expect(of(spec)).toEqual({ config: expected, warnings: [] })
  })

  it('warns where a cluster’s DNS was asked for by name and there is none', () => {
    const { config, warnings } = of({ dnsPolicy: 'ClusterFirstWithHostNet' })
    expect(config).toEqual(host)
    expect(warnings.map(({ reason }) => reason)).toEqual(['MissingClusterDNS'])
  })

  it.each<[JsonObject, readonly string[], number]>([
    [{}, ['127.0.0.1'], 1],
    [{ dnsPolicy: 'Default' }, ['::1', '127.0.0.53'], 1],
    [{}, ['127.0.0.1', '192.0.2.1'], 0],
    [{}, [], 0],
    [{ hostNetwork: true }, ['127.0.0.1'], 0],
    [{ dnsPolicy: 'None' }, ['127.0.0.1'], 0],
  ])('of %j with the servers %j of the host warns %i times of the loopback', (spec, servers, count) => {
    const { warnings } = of(spec, undefined, { ...host, servers })
    expect(warnings.map(({ message }) => message)).toEqual(
      Array.from({ length: count }, () =>
        expect.stringContaining(`${servers.join(', ')}, is on the host's loopback`),
      ),
    )
  })

  it('warns of no loopback where the pod adds a server that it reaches', () => {
    const own: PodDnsConfig = { nameservers: ['192.0.2.7'], searches: [], options: [] }
    expect(of({}, own, { ...host, servers: ['127.0.0.1'] }).warnings).toEqual([])
  })

  it('takes in the pod’s own, an option replacing one of its name', () => {
    const own: PodDnsConfig = {
      nameservers: ['192.0.2.1', '192.0.2.2'],
      searches: ['my.org', 'lan'],
      options: [{ name: 'timeout', value: '3' }, { name: 'rotate' }],
    }
    expect(of({}, own).config).toEqual({
      servers: ['192.0.2.1', '192.0.2.2'],
      searches: ['lan', 'my.org'],
      options: ['timeout:3', 'rotate'],
    })
  })

  it('leaves options out that would begin a line', () => {
    const options = [
      { name: 'rotate\nnameserver 192.0.2.66' },
      { name: 'ndots', value: '2\n' },
      { name: 'edns0' },
    ]
    expect(of({}, { nameservers: [], searches: [], options }).config.options).not.toContainEqual(
      expect.stringContaining('\n'),
    )
  })

  it('cuts what a resolver doesn’t take, and says so', () => {
    const long = Array.from({ length: 40 }, (_, index) => `${'x'.repeat(70)}${index}.org`)
    const { config, warnings } = of({}, undefined, {
      servers: ['1', '2', '3', '4'],
      searches: long,
      options: [],
    })
    expect(config.servers).toEqual(['1', '2', '3'])
    expect(config.searches?.join(' ').length).toBeLessThanOrEqual(2048)
    expect(config.searches).toEqual(long.slice(0, 26))
    expect(warnings).toHaveLength(2)
    expect(warnings[0]?.message).toBe(
      'Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: 1 2 3',
    )
  })

  it('lets through 32 short search paths', () => {
    const many = Array.from({ length: 33 }, (_, index) => `s${index}`)
    expect(of({}, undefined, { ...host, searches: many }).config.searches).toEqual(many.slice(0, 32))
  })
})

describe('podHostname', () => {
  it.each([
    ['web', {}, { hostname: 'web', domain: '' }],
    ['web', { hostname: 'db-0' }, { hostname: 'db-0', domain: '' }],
    ['web', { hostname: 'db-0', subdomain: 'db' }, { hostname: 'db-0', domain: 'db.default.svc' }],
    [`${'a'.repeat(62)}-.b`, {}, { hostname: 'a'.repeat(62), domain: '' }],
    ['a'.repeat(63), {}, { hostname: 'a'.repeat(63), domain: '' }],
    ['a'.repeat(80), {}, { hostname: 'a'.repeat(63), domain: '' }],
  ])('of %s with %j is %j', (name, spec, expected) => {
    expect(podHostname(testPod(spec, { name }))).toEqual(expected)
  })
})

describe('kernelHostname', () => {
  const named = { hostname: 'web', domain: 'db.default.svc' }
  it.each([
    [named, false, 'web'],
    [named, true, 'web.db.default.svc'],
    [{ hostname: 'web', domain: '' }, true, 'web'],
    [{ hostname: 'a'.repeat(56), domain: 'x.y.svc' }, true, `${'a'.repeat(56)}.x.y.svc`],
  ])('of %j, as FQDN %j: %s', (name, asFqdn, expected) => {
    expect(kernelHostname(name, asFqdn)).toBe(expected)
  })

  it('refuses what the kernel won’t take', () => {
    expect(() => kernelHostname({ hostname: 'a'.repeat(57), domain: 'x.y.svc' }, true)).toThrow(
      '65 characters',
    )
    expect(() => kernelHostname({ hostname: 'a'.repeat(60), domain: 'x.y.svc' }, true)).toThrow('too long')
  })
})

describe('the hosts file', () => {
  it('names the pod’s addresses', () => {
    expect(
      podHostsFile({
        ips: ['10.1.0.2', 'fd00::2'],
        hostname: { hostname: 'web', domain: 'db.default.svc' },
        aliases: [
          { ip: '192.0.2.5', hostnames: ['printer', 'printer.lan'] },
          { ip: '192.0.2.6', hostnames: ['scale'] },
        ],
        services: servicesSection([{ ip: '10.1.0.3', hostnames: ['db.default.svc', 'db'] }]),
      }),
    ).toBe(
      [
        '# Kubernetes-managed hosts file.',
        '127.0.0.1\tlocalhost',
        '::1\tlocalhost ip6-localhost ip6-loopback',
        'fe00::0\tip6-localnet',
        'fe00::0\tip6-mcastprefix',
        'fe00::1\tip6-allnodes',
        'fe00::2\tip6-allrouters',
        '10.1.0.2\tweb.db.default.svc.cluster.local\tweb.db.default.svc\tweb',
        'fd00::2\tweb.db.default.svc.cluster.local\tweb.db.default.svc\tweb',
        '',
        '# Entries added by HostAliases.',
        '192.0.2.5\tprinter\tprinter.lan',
        '192.0.2.6\tscale',
        '',
        '# Entries added by Services.',
        '10.1.0.3\tdb.default.svc\tdb',
        '',
      ].join('\n'),
    )
  })

  it('has no line that is longer than musl reads, whatever the names', () => {
    const label = 'a'.repeat(63)
    const ips = ['fd00:1111:2222:3333:4444:5555:6666:7777']
    const hostname = { hostname: label, domain: `${label}.${label}.svc` }
    const lines = podHostsFile({ ips, hostname, aliases: [], services: '' }).split('\n')
    expect(lines.filter((line) => line.length > 511)).toEqual([])
    expect(lines.at(-2)).toContain(`${label}.${label}.${label}.svc.cluster.local`)
  })

  it('ends with the address where the pod has no aliases', () => {
    const text = podHostsFile({
      ips: ['10.1.0.2'],
      hostname: { hostname: 'web', domain: '' },
      aliases: [],
      services: '',
    })
    expect(text.endsWith('ip6-allrouters\n10.1.0.2\tweb\n')).toBe(true)
  })

  it('keeps what it has of Services at its end, whatever stands before', () => {
    const services = servicesSection([{ ip: '10.1.0.3', hostnames: ['db'] }])
    const hostFile = `127.0.0.1 box\n${servicesSection([{ ip: '192.0.2.1', hostnames: ['host'] }])}`
    const text = hostNetworkHostsFile({
      hostFile,
      aliases: [{ ip: '192.0.2.5', hostnames: ['p'] }],
      services,
    })
    expect(servicesSectionOf(text)).toBe(services)
    expect(servicesSectionOf('127.0.0.1\tlocalhost\n')).toBe('')
  })

  it('is the host’s own on its network', () => {
    expect(
      hostNetworkHostsFile({
        hostFile: '127.0.0.1 box\n',
        aliases: [{ ip: '192.0.2.5', hostnames: ['p'] }],
        services: '',
      }),
    ).toBe(
      '# Kubernetes-managed hosts file (host network).\n127.0.0.1 box\n\n# Entries added by HostAliases.\n192.0.2.5\tp\n',
    )
  })
})
