import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { GarbageReport } from '../../src/api/images.ts'
import { containerdPlaces } from '../../src/runtime/containerd/process.ts'
import { awaitCounts, cgroupsBelow, countHost, differences } from '../support/leftovers.ts'
import type { HostCounts } from '../support/leftovers.ts'
import { isNightly } from '../support/nightly.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { runShortPods } from '../support/short-pods.ts'
import { shellPod } from '../support/shell-pods.ts'

const entries = (directory: string): number => (existsSync(directory) ? readdirSync(directory).length : 0)

/** What a pod brings, in the order in which it comes; each can be seen without asking anybody. */
const kinds: Readonly<Record<string, (podd: PoddRig) => number>> = {
  record: (podd) => entries(join(podd.rootDir, 'records')),
  volumes: (podd) => entries(join(podd.rootDir, 'pods')),
  cgroup: (podd) => cgroupsBelow(podd.cgroupRoot).filter((path) => /\/pod[^/]+$/u.test(path)).length,
  'network namespace': (podd) => entries(inState(podd, 'io.containerd.grpc.v1.cri/netns')),
  address: (podd) => entries(join(podd.runDir, 'containerd/cni', placesOf(podd).networkName)),
  sandbox: (podd) => entries(join(podd.rootDir, 'containerd/io.containerd.grpc.v1.cri/sandboxes')),
  'log directory': (podd) => entries(podd.logsDir),
  container: (podd) => entries(placesOf(podd).criContainersDir),
  task: (podd) => entries(inState(podd, 'io.containerd.runtime.v2.task/k8s.io')),
}
const names = Object.keys(kinds)
/** When podd is killed: by default in the middle of what comes and goes, each night at every step. */
const killPoints = isNightly ? names : ['address', 'container']

function placesOf(podd: PoddRig) {
  return containerdPlaces(podd.rootDir, podd.runDir)
}

function inState(podd: PoddRig, directory: string): string {
  return join(placesOf(podd).stateDir, directory)
}

function measure(podd: PoddRig, kind: string): number {
  return kinds[kind]?.(podd) ?? 0
}

async function kill(podd: PoddRig, withContainerd: boolean): Promise<void> {
  if (withContainerd) process.kill(podd.containerdPid, 'SIGKILL')
  await podd.stopDaemon('SIGKILL')
}

const manifest = (podd: PoddRig, name: string): object =>
  shellPod(name, podd.shared, 'say start; stay', {
    volumes: [{ name: 'data', emptyDir: {} }],
    mounts: [{ name: 'data', mountPath: '/data' }],
  })

/** Starts podd, and gives what is left of the pod's record when it is gone. */
async function backWithout(podd: PoddRig, name: string): Promise<number> {
  await podd.startDaemon()
  await podd.untilGone(name)
  return measure(podd, 'record')
}

describe('garbage', () => {
  describePodd('podd killed around deletions', {}, (rig) => {
    let before: HostCounts
    beforeAll(async () => {
      await runShortPods(rig(), 2, 2)
      before = countHost(rig())
    })

    it.each(killPoints)(
      'a removed pod leaves nothing although podd is killed when its %s has gone',
      async (kind) => {
        const podd = rig()
        podd.drop('doomed', manifest(podd, 'doomed'))
        await podd.untilReady('doomed')
        const ready = measure(podd, kind)
        podd.removeManifest('doomed')
        await podd.untilSpotted(`less of ${kind}`, () => measure(podd, kind) < ready)
        await kill(podd, false)
        expect(await backWithout(podd, 'doomed')).toBe(0)
      },
    )

    it.each(isNightly ? ['address', 'container', 'task'] : ['task'])(
      'a removed pod leaves nothing although podd and containerd are killed when its %s has gone',
      async (kind) => {
        const podd = rig()
        podd.drop('doomed', manifest(podd, 'doomed'))
        await podd.untilReady('doomed')
        const ready = measure(podd, kind)
        podd.removeManifest('doomed')
        await podd.untilSpotted(`less of ${kind}`, () => measure(podd, kind) < ready)
        await kill(podd, true)
        expect(await backWithout(podd, 'doomed')).toBe(0)
      },
    )

    it.each(killPoints)(
      'a pod that is removed meanwhile leaves nothing although podd and containerd are killed when it has got its %s',
      async (kind) => {
        const podd = rig()
        let least = measure(podd, kind)
        podd.drop('begun', manifest(podd, 'begun'))
        await podd.untilSpotted(`more of ${kind}`, () => {
          const now = measure(podd, kind)
          // What the kill before left may be collected meanwhile.
          least = Math.min(least, now)
          return now > least
        })
        await kill(podd, true)
        podd.removeManifest('begun')
        expect(await backWithout(podd, 'begun')).toBe(0)
      },
    )

    it('what is planted of each kind is listed by podd gc --dry-run, and removed with all that is left', async () => {
      const podd = rig()
      podd.drop('live', manifest(podd, 'live'))
      await podd.untilReady('live')
      await podd.stopDaemon('SIGKILL')
      plant(podd)
      expect(differences(before, countHost(podd)).length).toBeGreaterThan(5)
      await podd.startDaemon()
      const planted = 'address cgroup firewall-rules interface lease log-link network-namespace'.split(' ')
      const seen = new Set<string>()
      await podd.until('each kind to be listed', async () => {
        const report: GarbageReport = JSON.parse((await podd.ask('gc', '--dry-run', '-o', 'json')).stdout)
        for (const { kind } of report.items) seen.add(kind)
        return planted.every((kind) => seen.has(kind))
      })
      await podd.untilEvent('box', 'OrphansRemoved', /volumes/u)
      await podd.untilEvent('box', 'OrphansRemoved', /interface/u)
      await podd.untilReady('live')
      podd.removeManifest('live')
      await podd.untilGone('live')
      expect(await awaitCounts(podd, before)).toEqual([])
    })
  })
})

const lost = '00000000-0000-4000-8000-00000000dead'
const lostSandbox = 'dead'.repeat(16)

/** What a podd and a containerd that were killed, and records that were lost, may leave; none of it is any pod's. */
function plant(podd: PoddRig): void {
  const { bridgeName, networkName, cniDataDir } = placesOf(podd)
  const run = (program: string, ...args: readonly string[]) => void execFileSync(program, args)
  mkdirSync(join(podd.rootDir, 'pods', lost, 'volumes/kubernetes.io~empty-dir/data'), { recursive: true })
  const logs = join(podd.logsDir, `default_lost_${lost}`)
  mkdirSync(join(logs, 'main'), { recursive: true })
  writeFileSync(join(logs, '.podd-owner'), podd.rootDir)
  writeFileSync(join(logs, 'main/0.log'), 'x'.repeat(10_000))
  symlinkSync(
    join(podd.logsDir, 'default_gone_uid/main/0.log'),
    join(podd.linksDir, `gone_default_main-${lostSandbox}.log`),
  )
  for (const parent of cgroupsBelow(podd.cgroupRoot).filter((path) => path.endsWith('/besteffort')))
    mkdirSync(join(parent, `pod${lost}`))
  writeFileSync(join(cniDataDir, networkName, freeAddress(podd)), `${lostSandbox}\neth0`)
  const netns = inState(podd, 'io.containerd.grpc.v1.cri/netns/cni-lost')
  writeFileSync(netns, '')
  run('unshare', `--net=${netns}`, 'true')
  const veth = `veth${bridgeName.slice(-8)}`
  run('ip', 'link', 'add', veth, 'type', 'veth', 'peer', 'name', `${veth}p`)
  run('ip', 'link', 'set', veth, 'master', bridgeName)
  const chain = `CNI-${randomBytes(12).toString('hex')}`
  const comment = `name: "${networkName}" id: "${lostSandbox}"`
  run('iptables', '-w', '-t', 'nat', '-N', chain)
  run('iptables', '-w', '-t', 'nat', '-A', chain, '-m', 'comment', '--comment', comment, '-j', 'ACCEPT')
  const rule = ['POSTROUTING', '-s', '192.0.2.1', '-m', 'comment', '--comment', comment, '-j', chain]
  run('iptables', '-w', '-t', 'nat', '-A', ...rule)
  podd.ctr('leases', 'create', '--id', lostSandbox, '--expires', '0')
}

/** One of the pods' network that no pod has. */
function freeAddress(podd: PoddRig): string {
  const { cniDataDir, networkName } = placesOf(podd)
  const taken = readdirSync(join(cniDataDir, networkName)).find((name) => /^[\d.]+$/u.test(name)) ?? ''
  return taken.replace(/\d+$/u, '250')
}
