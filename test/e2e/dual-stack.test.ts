import { existsSync, readFileSync } from 'node:fs'
import { isIPv4, isIPv6 } from 'node:net'
import { expect, it } from 'vitest'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { removeNetworkRules } from '../../src/runtime/network/forward-rules.ts'
import { commandOutput } from '../../src/host/run-command.ts'
import { freePort } from '../support/free-port.ts'
import { freeSubnet, freeSubnet6 } from '../support/free-subnet.ts'
import { describePodd } from '../support/podd-rig.ts'
import { readSandboxRules } from '../support/sandbox-rules.ts'
import { shellPod } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

const switchPath = '/proc/sys/net/ipv6/conf/all/disable_ipv6'
const hasIpv6 = existsSync(switchPath) && readFileSync(switchPath, 'utf8').trim() === '0'

// A host without IPv6 can't give pods any.
describePodd('dual stack', { config: { podCIDR: `${freeSubnet()},${freeSubnet6()}` } }, (rig) => {
  it.skipIf(!hasIpv6)('gives a pod an address of each family, in its status and its hosts file', async () => {
    const podd = rig()
    const script = 'cat /etc/hosts > /shared/dual-hosts; ip addr > /shared/dual-addresses; say done; stay'
    podd.drop('dual', shellPod('dual', podd.shared, script))
    const { status } = await podd.untilReady('dual')
    await podd.untilLine('dual', / done$/u)
    const ips = (status.podIPs ?? []).map(({ ip }) => ip)
    expect(ips).toHaveLength(2)
    expect(status.podIP).toBe(ips[0])
    expect(isIPv4(ips[0] ?? '')).toBe(true)
    expect(isIPv6(ips[1] ?? '')).toBe(true)
    const hosts = podd.lines('dual-hosts')
    for (const ip of ips) expect(hosts).toContain(`${ip}\tdual`)
    const addresses = podd.lines('dual-addresses').join('\n')
    for (const ip of ips) expect(addresses).toContain(ip)
  })

  it.skipIf(!hasIpv6)('serves host ports again whose rules were removed while podd was stopped', async () => {
    const podd = rig()
    const script = 'mkdir /tmp/www; echo page > /tmp/www/index.html; httpd -p 8080 -h /tmp/www; say up; stay'
    const hostPort = await freePort()
    const ports = [
      { containerPort: 8080, hostPort },
      { containerPort: 8080, hostPort: await freePort(), hostIP: '127.0.0.1' },
      { containerPort: 53, hostPort: await freePort(), protocol: 'UDP' },
    ]
    podd.drop('ported', shellPod('ported', podd.shared, script, { container: { ports } }))
    const { status } = await podd.untilReady('ported')
    const places = containerdPlaces(podd.rootDir, podd.runDir)
    const rules = async () => {
      const families = ['iptables-save', 'ip6tables-save'].map(async (program) => {
        const found = readSandboxRules(await commandOutput(program, []), places.networkName)
        return [...new Set([...found.values()].flat())].toSorted()
      })
      return Promise.all(families)
    }
    const page = async () =>
      (await fetch(`http://${status.hostIP}:${hostPort}/`, { signal: AbortSignal.timeout(1000) })).text()
    await podd.until('the page', async () => (await page()) === 'page\n')
    const made = await rules()
    expect(made.map((of) => of.filter((rule) => rule.includes('-j DNAT')).length)).toEqual([3, 2])
    await podd.stopDaemon('SIGKILL')
    await removeNetworkRules(places)
    await expect(page()).rejects.toThrow()
    await podd.startDaemon()
    await podd.until('the page again', async () => (await page()) === 'page\n', 20_000 * slowness)
    await expect.poll(rules, { timeout: 60_000 * slowness }).toEqual(made)
    await podd.untilEvent('box', 'FirewallRulesRestored', /restored/u)
  })
})

describePodd('IPv6 alone', { config: { podCIDR: freeSubnet6() } }, (rig) => {
  it.skipIf(!hasIpv6)('probes a pod at its IPv6 address', async () => {
    const podd = rig()
    const probe = { periodSeconds: 1, timeoutSeconds: 10, failureThreshold: 30 }
    const container = {
      startupProbe: { tcpSocket: { port: 8080 }, ...probe },
      readinessProbe: { httpGet: { path: '/ready', port: 8080 }, ...probe, failureThreshold: 1 },
    }
    const script = `mkdir -p /www; httpd -p '[::]:8080' -h /www; say start
      trap 'exit 0' TERM
      while :; do [ ! -e /shared/six-on ] || touch /www/ready; sleep 0.05; done`
    podd.drop('six', shellPod('six', podd.shared, script, { container }))
    await podd.untilEvent('six', 'Unhealthy', /Readiness probe failed: HTTP probe failed .* 404/u)
    podd.touchShared('six-on')
    const { status } = await podd.untilReady('six')
    expect(isIPv6(status.podIP ?? '')).toBe(true)
  })
})
