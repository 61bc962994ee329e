import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { describePodd } from '../support/podd-rig.ts'
import { proves } from '../support/proves.ts'
import { podOf, shellContainer, shellPod } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

/** A script that tells what a command printed, and stays. */
const tell = (name: string, command: string): string => `(${command}) > /shared/${name} 2>&1; say done; stay`

describePodd('names and consoles', {}, (rig) => {
  it.concurrent(
    'writes host aliases after the pod’s own name, and follows dnsConfig',
    proves(
      'aliases-and-dns',
      'PodSpec: hostAliases dnsPolicy dnsConfig',
      'HostAlias: ip hostnames',
      'PodDNSConfig: nameservers searches options',
      'PodDNSConfigOption: name value',
    ),
    async () => {
      const podd = rig()
      const spec = {
        hostname: 'front',
        subdomain: 'line-3',
        hostAliases: [{ ip: '192.0.2.9', hostnames: ['plc', 'plc.plant'] }],
        dnsPolicy: 'None',
        dnsConfig: {
          nameservers: ['192.0.2.53'],
          searches: ['plant.example'],
          options: [{ name: 'ndots', value: '2' }, { name: 'rotate' }],
        },
      }
      podd.drop(
        'names',
        shellPod(
          'names',
          podd.shared,
          tell('names-seen', 'hostname; cat /etc/hosts; echo ---; cat /etc/resolv.conf'),
          { spec },
        ),
      )
      const pod = await podd.untilReady('names')
      await podd.untilLine('names', / done$/u)
      const [hosts = '', resolv = ''] = podd.lines('names-seen').join('\n').split('\n---\n')
      expect(hosts.split('\n')[0]).toBe('front')
      expect(hosts).toContain(
        `${pod.status.podIP}\tfront.line-3.default.svc.cluster.local\tfront.line-3.default.svc\tfront`,
      )
      expect(hosts).toContain('# Entries added by HostAliases.\n192.0.2.9\tplc\tplc.plant')
      expect(resolv.split('\n').sort()).toEqual([
        'nameserver 192.0.2.53',
        'options ndots:2 rotate',
        'search plant.example',
      ])
      podd.removeManifest('names')
      await podd.untilGone('names')
    },
  )

  it.concurrent('takes no lines of its own from a dnsConfig', async () => {
    const podd = rig()
    const more = '2\nnameserver 192.0.2.66'
    const configs = {
      'a-server': { nameservers: [`192.0.2.53${more}`] },
      'a-search': { searches: [`plant.example${more}`] },
      'an-option': { options: [{ name: `rotate${more}` }] },
      'a-value': { options: [{ name: 'ndots', value: more }] },
    }
    for (const [name, dnsConfig] of Object.entries(configs)) {
      podd.drop(name, shellPod(name, podd.shared, 'stay', { spec: { dnsConfig } }))
    }
    for (const name of Object.keys(configs)) {
      await podd.until(`the refusal of ${name}`, async () =>
        (await podd.status()).problems.some(
          ({ object, field }) => object === `default/${name}` && field?.startsWith('spec.dnsConfig.'),
        ),
      )
      expect(await podd.findPod(name)).toBeUndefined()
      podd.removeManifest(name)
    }
  })

  it.concurrent('adds dnsConfig to the host’s resolver', async () => {
    const podd = rig()
    const spec = {
      dnsPolicy: 'Default',
      dnsConfig: { searches: ['own.example'], options: [{ name: 'timeout', value: '7' }] },
    }
    podd.drop('adds', shellPod('adds', podd.shared, tell('adds-seen', 'cat /etc/resolv.conf'), { spec }))
    await podd.untilLine('adds', / done$/u)
    const seen = podd.lines('adds-seen').join('\n')
    const [server] = /^nameserver \S+$/mu.exec(readFileSync('/etc/resolv.conf', 'utf8')) ?? []
    expect(seen).toContain(server ?? '')
    expect(seen).toMatch(/^search .*own\.example$/mu)
    expect(seen).toMatch(/^options .*timeout:7/mu)
    podd.removeManifest('adds')
    await podd.untilGone('adds')
  })

  it.concurrent.each([
    ['as-fqdn', { hostname: 'gw', subdomain: 'sub', setHostnameAsFQDN: true }, 'gw.sub.default.svc'],
    ['no-fqdn', { hostname: 'gw', subdomain: 'sub' }, 'gw'],
    ['override', { hostname: 'gw', hostnameOverride: 'named.example.org' }, 'named.example.org'],
  ])(
    'names a pod %s',
    proves('host-names', 'PodSpec: hostname subdomain setHostnameAsFQDN hostnameOverride'),
    async (name, spec, expected) => {
      const podd = rig()
      podd.drop(name, shellPod(name, podd.shared, tell(`${name}-seen`, 'hostname; cat /etc/hosts'), { spec }))
      await podd.untilLine(name, / done$/u)
      expect(podd.lines(`${name}-seen`)[0]).toBe(expected)
      podd.removeManifest(name)
      await podd.untilGone(name)
    },
  )

  it.concurrent('gives host-network pods the host’s names and their aliases', async () => {
    const podd = rig()
    const spec = { hostNetwork: true, hostAliases: [{ ip: '192.0.2.9', hostnames: ['plc'] }] }
    podd.drop('on-host', shellPod('on-host', podd.shared, tell('on-host-seen', 'cat /etc/hosts'), { spec }))
    await podd.untilLine('on-host', / done$/u)
    const seen = podd.lines('on-host-seen')
    expect(seen[0]).toBe('# Kubernetes-managed hosts file (host network).')
    expect(seen.slice(-2)).toEqual(['# Entries added by HostAliases.', '192.0.2.9\tplc'])
    podd.removeManifest('on-host')
    await podd.untilGone('on-host')
  })

  it.concurrent(
    'gives a terminal and a standard input that stays open where they are asked for',
    proves('terminal', 'Container: stdin stdinOnce tty'),
    async () => {
      const podd = rig()
      const script = (name: string): string =>
        `test -t 1 && say ${name} tty || say ${name} plain; (read -r line; say ${name} input ended) & stay`
      podd.drop(
        'consoles',
        podOf('consoles', podd.shared, [
          shellContainer('term', 'consoles', script('term'), { tty: true, stdin: true }),
          shellContainer('input', 'consoles', 'say open; read -r line; say input ended; stay', {
            stdin: true,
            stdinOnce: true,
          }),
          shellContainer('none', 'consoles', 'say none; read -r line || say none ended; stay'),
        ]),
      )
      await podd.untilReady('consoles')
      const lines = await podd.untilLine('consoles', /none ended$/u)
      await podd.untilLine('consoles', /term tty$/u)
      const words = lines.map((line) => line.split(' ').slice(1).join(' '))
      expect(words).toContain('open')
      expect(words).not.toContain('input ended')
      podd.removeManifest('consoles')
      await podd.untilGone('consoles')
    },
  )
})

const directory = join(tmpdir(), `podd-resolv-${process.pid}`)
const resolvConf = join(directory, 'resolv.conf')

describePodd('the host’s resolver', { config: { resolvConf } }, (rig) => {
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it('is followed by pods that run, from none at boot through every way of changing it', async () => {
    const podd = rig()
    mkdirSync(directory, { recursive: true })
    rmSync(resolvConf, { force: true })
    const script =
      'say start; while sleep 0.05; do cat /etc/resolv.conf > /shared/now.new; mv /shared/now.new /shared/now; done'
    podd.drop('follower', shellPod('follower', podd.shared, script))
    podd.drop(
      'own-dns',
      shellPod(
        'own-dns',
        podd.shared,
        'say up; while sleep 0.05; do cat /etc/resolv.conf > /shared/own.new; mv /shared/own.new /shared/own; done',
        {
          spec: { dnsPolicy: 'None', dnsConfig: { nameservers: ['192.0.2.200'] } },
        },
      ),
    )
    const pod = await podd.untilReady('follower')
    await podd.untilReady('own-dns')
    const seen = (expected: string) =>
      podd.until(expected, () => podd.lines('now').join('\n') === expected, 3000 * slowness)
    writeFileSync(resolvConf, 'nameserver 192.0.2.1\n')
    await seen('nameserver 192.0.2.1')
    writeFileSync(resolvConf, 'search lan\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n')
    await seen('search lan\nnameserver 192.0.2.2\nnameserver 192.0.2.3')
    const next = join(directory, 'next')
    writeFileSync(next, 'nameserver 192.0.2.4\n')
    renameSync(next, resolvConf)
    await seen('nameserver 192.0.2.4')
    const behind = join(directory, 'run')
    mkdirSync(behind)
    writeFileSync(join(behind, 'stub.conf'), 'nameserver 192.0.2.5\n')
    symlinkSync(join(behind, 'stub.conf'), next)
    renameSync(next, resolvConf)
    await seen('nameserver 192.0.2.5')
    writeFileSync(join(behind, 'stub.conf'), 'nameserver 192.0.2.6\noptions edns0\n')
    await seen('nameserver 192.0.2.6\noptions edns0')
    expect(podd.lines('own')).toEqual(['nameserver 192.0.2.200'])
    // A podd that wasn't there when it changed catches up.
    await podd.stopDaemon('SIGKILL')
    writeFileSync(join(behind, 'stub.conf'), 'nameserver 192.0.2.7\n')
    await podd.startDaemon()
    await seen('nameserver 192.0.2.7')
    expect((await podd.untilReady('follower')).metadata.uid).toBe(pod.metadata.uid)
    rmSync(behind, { recursive: true })
  })
})
