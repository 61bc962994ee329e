import { spawn } from 'node:child_process'
import { expect, it } from 'vitest'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { hasForwardRules, removeNetworkRules, isMasquerade } from '../../src/runtime/network/forward-rules.ts'
import { planRepair } from '../../src/runtime/network/network-rules.ts'
import { commandOutput } from '../../src/host/run-command.ts'
import { freePort } from '../support/free-port.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { readSandboxRules } from '../support/sandbox-rules.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'

async function fetchPage(address: string): Promise<string> {
  const response = await fetch(`http://${address}/`, { signal: AbortSignal.timeout(1000) })
  return response.text()
}

/** How often podd has looked at the firewall. */
async function runsOf(podd: PoddRig): Promise<number> {
  const { jobs } = await podd.status()
  return jobs.find(({ name }) => name === 'keep-network')?.runs ?? 0
}

/** Until podd has looked at the firewall, from now on: the look that is under way doesn't count. */
async function untilLooked(podd: PoddRig): Promise<void> {
  const before = await runsOf(podd)
  await podd.until('a look at the firewall', async () => (await runsOf(podd)) >= before + 2)
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
    await untilLooked(podd)
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
    await untilLooked(podd)
    await expect(fetchPage(address)).rejects.toThrow()
  })

  it('keeps letting the traffic of pods through and masquerading it, also where it lost the rules for that alone', async () => {
    const podd = rig()
    podd.drop('beside', shellPod('beside', podd.shared, 'say up; stay'))
    await podd.untilReady('beside')
    const places = containerdPlaces(podd.rootDir, podd.runDir)
    const isOpen = async () => {
      const saved = await commandOutput('iptables-save', [])
      const masquerading = saved.split('\n').filter((rule) => isMasquerade(rule.replace('-A ', ''), places))
      return hasForwardRules(saved, places) && masquerading.length === 1
    }
    expect(await isOpen()).toBe(true)
    const nat = await commandOutput('iptables-save', ['-t', 'nat'])
    const rule = nat.split('\n').find((line) => isMasquerade(line.replace('-A ', ''), places)) ?? ''
    const input = `*nat\n${rule.replace('-A', '-D')}\nCOMMIT\n`
    await commandOutput('iptables-restore', ['--noflush', '-w', '5'], { input })
    expect(await isOpen()).toBe(false)
    await podd.until('the masquerading', isOpen, 15_000 * slowness)
    const rules = (await commandOutput('iptables', ['-S', 'FORWARD'])).split('\n')
    for (const rule of rules.filter((line) => line.includes(places.bridgeName)))
      await commandOutput('iptables', rule.replace('-A', '-D').split(' '))
    expect(await isOpen()).toBe(false)
    await podd.until('the rules', isOpen, 15_000 * slowness)
    podd.removeManifest('beside')
    await podd.untilGone('beside')
  })
})

describePodd('rules of sandboxes that are gone', { config: { syncFrequency: '1s' } }, (rig) => {
  it('are removed, and no others', { tags: ['nightly'] }, async () => {
    const podd = rig()
    for (const name of ['gone', 'stays']) {
      const container = { ports: [{ containerPort: 8080, hostPort: await freePort() }] }
      podd.drop(name, shellPod(name, podd.shared, 'say up; stay', { container }))
    }
    await podd.untilReady('gone')
    await podd.untilReady('stays')
    const { networkName } = containerdPlaces(podd.rootDir, podd.runDir)
    const rules = async () => readSandboxRules(await commandOutput('iptables-save', []), networkName)
    const before = await podd.until('the rules of both', async () => {
      const found = await rules()
      return found.size === 2 && found
    })
    podd.removeManifest('gone')
    await podd.untilGone('gone')
    const [stays = ''] = [...(await rules()).keys()]
    const [id, lost] = [...before].find(([owner]) => owner !== stays) ?? ['', []]
    expect(lost).toHaveLength(4)
    // As a plugin leaves them that is killed in the middle.
    await podd.stopDaemon('SIGKILL')
    const input = planRepair(await commandOutput('iptables-save', []), lost)
    await commandOutput('iptables-restore', ['--noflush', '-w', '5'], { input })
    expect((await rules()).get(id)).toHaveLength(lost.length)
    await podd.startDaemon()
    // What they were made with tells for some time that they may belong to a sandbox in the making.
    await podd.until('their end', async () => !(await rules()).has(id), 90_000 * slowness)
    expect((await rules()).get(stays)).toEqual(before.get(stays))
    const saved = await commandOutput('iptables-save', ['-t', 'nat'])
    const chains = new Set(lost.map((rule) => rule.split(' ')[0] ?? ''))
    const own = [...chains].filter((chain) => /^CNI-(?:DN-)?[0-9a-f]+$/u.test(chain))
    expect(own).toHaveLength(1)
    expect(own.filter((chain) => saved.includes(chain))).toEqual([])
  })
})

describePodd('the pod network', {}, (rig) => {
  it('masquerades pods: a host without a route to them answers', async () => {
    const podd = rig()
    const { networkName } = containerdPlaces(podd.rootDir, podd.runDir)
    // A network that no other test takes at the same time.
    const prefix = `198.18.${process.pid % 256}`
    const ip = (...args: readonly string[]) => commandOutput('ip', args)
    await ip('netns', 'add', networkName)
    try {
      await ip('link', 'add', `v${networkName}`, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', networkName)
      await ip('address', 'add', `${prefix}.1/30`, 'dev', `v${networkName}`)
      await ip('link', 'set', `v${networkName}`, 'up')
      await ip('-n', networkName, 'address', 'add', `${prefix}.2/30`, 'dev', 'eth0')
      await ip('-n', networkName, 'link', 'set', 'eth0', 'up')
      const code =
        "require('net').createServer((s) => s.end(s.remoteAddress + '\\n')).listen(8080, '0.0.0.0')"
      const serve = ['netns', 'exec', networkName, process.execPath, '-e', code]
      const server = spawn('ip', serve, { stdio: 'ignore' })
      try {
        const ask = `from=$(nc -w 1 ${prefix}.2 8080 < /dev/null)`
        podd.drop('sent', shellPod('sent', podd.shared, `until ${ask}; do sleep 0.2; done; say $from; stay`))
        const lines = await podd.until('the answer', () => {
          const said = podd.lines('sent')
          return said.length > 0 && said
        })
        expect(wordsOf(lines)).toEqual([`${prefix}.1`])
      } finally {
        server.kill()
      }
    } finally {
      await ip('netns', 'delete', networkName)
    }
  })
})
