import { existsSync, readFileSync } from 'node:fs'
import { isIPv4, isIPv6 } from 'node:net'
import { expect, it } from 'vitest'
import { freeSubnet, freeSubnet6 } from '../support/free-subnet.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

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
