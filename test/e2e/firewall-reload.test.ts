import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { containerdPlaces } from '../../src/containerd/process/containerd-places.ts'
import { hasForwardRules, removeNetworkRules } from '../../src/containerd/network/forward-rules.ts'
import { planRepair, readSandboxRules } from '../../src/containerd/network/network-rules.ts'
import { commandOutput } from '../../src/host/run-command.ts'
import { freePort } from '../support/free-port.ts'
import { describePodd } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

async function fetchPage(address: string): Promise<string> {
  const response = await fetch(`http://${address}/`, { signal: AbortSignal.timeout(1000) })
  return response.text()
}

describePodd('a firewall that is reloaded', { config: { syncFrequency: '1s' } }, (rig) => {
  it('loses the host ports of pods for a moment only', async () => {
    const podd = rig()
    const hostPort = await freePort()
    const script = 'mkdir /tmp/www; echo page > /tmp/www/index.html; httpd -p 8080 -h /tmp/www; say up; stay'
    const container = { ports: [{ containerPort: 8080, hostPort }] }
    podd.drop('served', shellPod('served', podd.shared, script, { container }))
    podd.drop('beside', shellPod('beside', podd.shared, 'say up; stay'))
    const { status } = await podd.untilReady('served')
    await podd.untilReady('beside')
    const address = `${status.hostIP}:${hostPort}`
    await podd.until('the page', async () => (await fetchPage(address)) === 'page\n')
    // Its rules are known some seconds after a sandbox was made.
    await sleep(4000)
    // On a slow host podd would have put them back by the time one looks.
    process.kill(podd.daemonPid, 'SIGSTOP')
    try {
      await removeNetworkRules(containerdPlaces(podd.rootDir, podd.runDir))
      await expect(fetchPage(address)).rejects.toThrow()
    } finally {
      process.kill(podd.daemonPid, 'SIGCONT')
    }
    await podd.until('the page again', async () => (await fetchPage(address)) === 'page\n', 15_000 * slowness)
    podd.removeManifest('served')
    await podd.untilGone('served')
    await sleep(2000)
    await expect(fetchPage(address)).rejects.toThrow()
  })

  it('keeps letting the traffic of pods through, also where it lost the rules for that alone', async () => {
    const podd = rig()
    podd.drop('beside', shellPod('beside', podd.shared, 'say up; stay'))
    await podd.untilReady('beside')
    const places = containerdPlaces(podd.rootDir, podd.runDir)
    const isOpen = async () => hasForwardRules(await commandOutput('iptables-save', []), places)
    expect(await isOpen()).toBe(true)
    const rules = (await commandOutput('iptables', ['-S', 'FORWARD'])).split('\n')
    for (const rule of rules.filter((line) => line.includes(places.bridgeName)))
      await commandOutput('iptables', rule.replace('-A', '-D').split(' '))
    expect(await isOpen()).toBe(false)
    await podd.until('the rules', isOpen, 15_000 * slowness)
  })
})

describePodd('rules of sandboxes that are gone', { config: { syncFrequency: '1s' } }, (rig) => {
  it('are removed, and no others', async () => {
    const podd = rig()
    const hostPort = await freePort()
    const container = { ports: [{ containerPort: 8080, hostPort }] }
    podd.drop('gone', shellPod('gone', podd.shared, 'say up; stay', { container }))
    podd.drop('stays', shellPod('stays', podd.shared, 'say up; stay'))
    await podd.untilReady('gone')
    await podd.untilReady('stays')
    const { networkName } = containerdPlaces(podd.rootDir, podd.runDir)
    const rules = async () => {
      const found = readSandboxRules(await commandOutput('iptables-save', []), networkName)
      return new Map([...found].filter(([id]) => id !== ''))
    }
    const before = await podd.until('the rules of both', async () => {
      const found = await rules()
      return found.size === 2 && found
    })
    podd.removeManifest('gone')
    await podd.untilGone('gone')
    const [stays = ''] = [...(await rules()).keys()]
    const [id, lost] = [...before].find(([owner]) => owner !== stays) ?? ['', []]
    expect(lost.length).toBeGreaterThan(4)
    // As a plugin leaves them that is killed in the middle.
    await podd.stopDaemon('SIGKILL')
    await commandOutput('iptables-restore', ['--noflush', '-w', '5'], { input: planRepair('', lost) })
    expect((await rules()).get(id)).toHaveLength(lost.length)
    await podd.startDaemon()
    // What they were made with tells for some time that they may belong to a sandbox in the making.
    await podd.until('their end', async () => !(await rules()).has(id), 90_000 * slowness)
    expect((await rules()).get(stays)).toEqual(before.get(stays))
    const saved = await commandOutput('iptables-save', ['-t', 'nat'])
    const chains = new Set(lost.map((rule) => rule.split(' ')[0] ?? ''))
    const own = [...chains].filter((chain) => /^CNI-(?:DN-)?[0-9a-f]+$/u.test(chain))
    expect(own).toHaveLength(2)
    expect(own.filter((chain) => saved.includes(chain))).toEqual([])
  })
})

describePodd('a firewall that is reloaded soon after podd has started', {}, (rig) => {
  it('loses the host ports of pods that podd found running for a moment only', async () => {
    const podd = rig()
    const hostPort = await freePort()
    const script = 'mkdir /tmp/www; echo page > /tmp/www/index.html; httpd -p 8080 -h /tmp/www; say up; stay'
    podd.drop(
      'found',
      shellPod('found', podd.shared, script, { container: { ports: [{ containerPort: 8080, hostPort }] } }),
    )
    const { status } = await podd.untilReady('found')
    const address = `${status.hostIP}:${hostPort}`
    await podd.until('the page', async () => (await fetchPage(address)) === 'page\n')
    await podd.restartDaemon()
    // Long enough for one look, and far less than the time between two.
    await sleep(2000)
    await removeNetworkRules(containerdPlaces(podd.rootDir, podd.runDir))
    await expect(fetchPage(address)).rejects.toThrow()
    // A new sandbox is what podd looks again for.
    podd.drop('next', shellPod('next', podd.shared, 'say up; stay'))
    await podd.until('the page again', async () => (await fetchPage(address)) === 'page\n', 20_000 * slowness)
  })
})
