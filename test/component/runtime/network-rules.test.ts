import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { containerdPlaces } from '../../../src/runtime/containerd/process.ts'
import type { CniResult } from '../../../src/runtime/network/cni-results.ts'
import { deriveSandboxRules, restoreNetworkRules } from '../../../src/runtime/network/network-rules.ts'

const places = containerdPlaces('/var/lib/podd', '/run/podd')
const ready = () => Promise.resolve(new Set(['ab12']))
const both = ['10.86.0.0/24', 'fd00:86::/64']

const openRules = [
  '-A FORWARD -i podd0 -j ACCEPT',
  '-A FORWARD -o podd0 -m conntrack --ctstate RELATED,ESTABLISHED,DNAT -j ACCEPT',
]
const masquerading = {
  iptables:
    '-A POSTROUTING -s 10.86.0.0/24 ! -d 224.0.0.0/4 ! -o podd0 -m comment --comment "podd0 pods 10.86.0.0/24" -j MASQUERADE',
  ip6tables:
    '-A POSTROUTING -s fd00:86::/64 ! -d ff00::/8 ! -o podd0 -m comment --comment "podd0 pods fd00:86::/64" -j MASQUERADE',
}
/** Of a sandbox with a port of the host. */
const result: CniResult = {
  path: '',
  sandboxId: 'ab12',
  networkName: places.networkName,
  hostInterfaces: [],
  namespaces: [],
  macs: new Map(),
  gateways: [],
  addresses: ['10.86.0.5/24'],
  portMappings: [{ hostPort: 80, containerPort: 8080, protocol: 'tcp', hostIp: '' }],
}
const sandboxRules = deriveSandboxRules(result, 'iptables', []).map((rule) => `-A ${rule}`)

/** All of iptables: writes down how it is called, keeps the rules in a file, and does as much as podd asks of it. */
const script = `#!/bin/sh
here=\${0%/*} name=\${0##*/}
rules=$here/rules-\${name%%-*}
echo "$name $*" >> "$here/calls"
case $name in
*-save)
  if [ -e "$rules-once" ]; then cat "$rules-once"; rm "$rules-once"; else cat "$rules"; fi ;;
*-restore) cat >> "$here/restored" ;;
*)
  shift 2
  case $1 in
  -S) grep '^-A FORWARD' "$rules" || true ;;
  -I) shift 2; sed -i "/^:FORWARD/a -A FORWARD $*" "$rules" ;;
  esac ;;
esac
`

/** The rules of a host, which is not this one's. */
class FakeFirewall {
  readonly #directory: string

  constructor(directory: string) {
    this.#directory = directory
  }

  async install(): Promise<void> {
    for (const name of ['iptables', 'ip6tables'] as const) {
      for (const program of [name, `${name}-save`, `${name}-restore`])
        await writeFile(join(this.#directory, program), script, { mode: 0o755 })
      await this.write(name, [], [masquerading[name]])
    }
  }

  write(name: 'iptables' | 'ip6tables', filter: readonly string[], nat: readonly string[]): Promise<void> {
    return this.#write(`rules-${name}`, filter, nat)
  }

  /** What is printed the next time alone. */
  printOnce(
    name: 'iptables' | 'ip6tables',
    filter: readonly string[],
    nat: readonly string[],
  ): Promise<void> {
    return this.#write(`rules-${name}-once`, filter, nat)
  }

  #write(file: string, filter: readonly string[], nat: readonly string[]): Promise<void> {
    const lines = ['*filter', ':FORWARD DROP [0:0]', ...filter, 'COMMIT', '*nat', ...nat, 'COMMIT', '']
    return writeFile(join(this.#directory, file), lines.join('\n'))
  }

  async forward(name: 'iptables' | 'ip6tables'): Promise<readonly string[]> {
    const lines = (await readFile(join(this.#directory, `rules-${name}`), 'utf8')).split('\n')
    return lines.filter((line) => line.startsWith('-A FORWARD'))
  }

  /** What was called since the last time that this was asked. */
  async calls(): Promise<readonly string[]> {
    const path = join(this.#directory, 'calls')
    const lines = (await readFile(path, 'utf8').catch(() => '')).trim().split('\n')
    await rm(path, { force: true })
    return lines.map((line) => line.trim()).filter((line) => line !== '')
  }

  restored(): Promise<string> {
    return readFile(join(this.#directory, 'restored'), 'utf8')
  }
}

describe('restoreNetworkRules', () => {
  const path = process.env['PATH']
  let directory = ''
  let firewall: FakeFirewall

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'podd-rules-'))
    firewall = new FakeFirewall(directory)
    await firewall.install()
    process.env['PATH'] = `${directory}:${path ?? ''}`
  })

  afterEach(async () => {
    process.env['PATH'] = path ?? ''
    await rm(directory, { recursive: true, force: true })
  })

  const restore = (podCidrs = both, list = ready) => restoreNetworkRules(places, podCidrs, list, [result])
  const ipv4 = ['10.86.0.0/24']

  it('lets traffic through again where a reload took these rules alone, in each family', async () => {
    await firewall.write('iptables', [], [masquerading.iptables, ...sandboxRules])
    await firewall.write('ip6tables', openRules.slice(1), [masquerading.ip6tables])
    expect(await restore()).toEqual(['iptables FORWARD', 'ip6tables FORWARD'])
    expect(await firewall.forward('iptables')).toEqual(openRules)
    expect(await firewall.forward('ip6tables')).toEqual(openRules)
    expect(await restore()).toEqual([])
  })

  it.each([
    ['IPv4', ipv4, ['iptables-save']],
    ['IPv6', ['fd00:86::/64'], ['ip6tables-save']],
    ['both', both, ['iptables-save', 'ip6tables-save']],
  ])('starts one program for each family of %s while nothing is missing', async (_, podCidrs, expected) => {
    await firewall.write('iptables', openRules, [masquerading.iptables, ...sandboxRules])
    await firewall.write('ip6tables', openRules, [masquerading.ip6tables])
    expect(await restore(podCidrs)).toEqual([])
    expect(await firewall.calls()).toEqual(expected)
  })

  it('masquerades pods again where a reload took that alone, in each family', async () => {
    await firewall.write('iptables', openRules, [masquerading.iptables, ...sandboxRules])
    await firewall.write('ip6tables', openRules, [])
    expect(await restore()).toEqual([masquerading.ip6tables])
    expect(await firewall.restored()).toBe(`*nat\n${masquerading.ip6tables}\nCOMMIT\n`)
  })

  it('puts nothing back that is missing at one look alone, as in the middle of a plugin’s change', async () => {
    await firewall.write('iptables', openRules, [masquerading.iptables, ...sandboxRules])
    await firewall.printOnce('iptables', [], [])
    expect(await restore(ipv4)).toEqual([])
    expect((await firewall.calls()).filter((call) => call.includes('restore'))).toEqual([])
    await firewall.write('iptables', openRules, [])
    expect(await restore(ipv4)).toEqual([...sandboxRules, masquerading.iptables])
  })

  it('puts nothing back of a sandbox that ends between two looks', async () => {
    await firewall.write('iptables', openRules, [masquerading.iptables])
    const lists = [['ab12'], []]
    expect(await restore(ipv4, () => Promise.resolve(new Set(lists.shift())))).toEqual([])
  })

  it('puts back what a sandbox lost though the filter table cannot be changed', async () => {
    await firewall.write('iptables', [], [])
    await writeFile(join(directory, 'iptables'), '#!/bin/sh\nexit 1\n')
    await expect(restore(ipv4)).rejects.toThrow('FORWARD')
    for (const rule of sandboxRules) expect(await firewall.restored()).toContain(rule)
  })

  it('makes the rules of sandboxes that are ready, and of no others', async () => {
    const gone: CniResult = { ...result, sandboxId: 'cd34', addresses: ['10.86.0.6/24'] }
    await firewall.write('iptables', openRules, [])
    await restoreNetworkRules(places, ipv4, ready, [gone, result])
    const restored = await firewall.restored()
    expect(restored).toContain('DNAT --to-destination 10.86.0.5:8080')
    expect(restored).not.toContain('10.86.0.6')
  })

  it('makes all rules of a sandbox again that has lost one', async () => {
    const left = sandboxRules.filter((rule) => !rule.includes('DNAT --to'))
    await firewall.write('iptables', openRules, [masquerading.iptables, ...left])
    const own = sandboxRules.filter((rule) => rule.startsWith('-A CNI-DN-'))
    expect(await restore(ipv4)).toEqual(own)
  })
})
