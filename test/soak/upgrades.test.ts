import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { PodObject } from '../../src/api/resource.ts'
import { findContainerds } from '../support/containerd-versions.ts'
import type { ContainerdInstall } from '../support/containerd-versions.ts'
import { freePort } from '../support/free-port.ts'
import { HostPortLoad } from '../support/host-port-load.ts'
import { podIdentity } from '../support/pod-identity.ts'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'

/** How often podd is replaced, and then containerd. */
const times = Number(process.env['PODD_UPGRADE_TIMES'] ?? 20)
/** New connections a second; 200 must be reached. */
const rate = Number(process.env['PODD_UPGRADE_RATE'] ?? 250)

/** The newest containerd that is here and newer than the one under test, to upgrade to. */
function findNewer(install: ContainerdInstall): ContainerdInstall | undefined {
  const order = ({ version }: ContainerdInstall): number => {
    const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number)
    return (major * 1000 + minor) * 1000 + patch
  }
  const newer = findContainerds().filter((each) => order(each) > order(install))
  return newer.toSorted((a, b) => order(b) - order(a))[0]
}

/** A server of this host's own files: what an image would have to hold of it is more than an upgrade needs. */
function server(podd: PoddRig, hostPort: number): object {
  const program = join(import.meta.dirname, '../support/numbered-server.ts')
  const script = `say start; exec chroot /host ${process.execPath} ${program} 80`
  const readinessProbe = { httpGet: { path: '/', port: 80 }, periodSeconds: 1, timeoutSeconds: 20 }
  const container = { readinessProbe, ports: [{ containerPort: 80, hostPort }] }
  const volumes = [{ name: 'host', hostPath: { path: '/' } }]
  const mounts = [{ name: 'host', mountPath: '/host', readOnly: true }]
  return shellPod('server', podd.shared, script, { container, volumes, mounts })
}

/** The numbers of the lines that are in the log, in its order. */
async function numbersOf(podd: PoddRig): Promise<readonly number[]> {
  const text = await podd.cliOk('logs', 'server')
  return text
    .trimEnd()
    .split('\n')
    .map((line) => Number(line.split(' ')[0]))
}

async function failedProbes(podd: PoddRig): Promise<number> {
  const events = (await podd.events('server')).filter(({ reason }) => reason === 'Unhealthy')
  return events.reduce((sum, { count }) => sum + count, 0)
}

const config = { containerLogMaxSize: '100Mi', sourceTrialPeriod: '0s' }

describePodd('upgrades under load', { config, ownPrograms: true }, (rig) => {
  it(`podd and then containerd, ${times} times each, refuse no connection and touch no pod`, async () => {
    const podd = rig()
    const port = await freePort()
    podd.drop('server', server(podd, port))
    podd.drop('steady', shellPod('steady', podd.shared, 'say start; stay'))
    const before: PodObject[] = []
    for (const name of ['server', 'steady']) before.push(await podd.untilReady(name))
    // It may be asked before it listens.
    const failedBefore = await failedProbes(podd)
    const load = new HostPortLoad(before[0]?.status.hostIP ?? '', port, rate)
    const untouched = async (): Promise<void> => {
      for (const pod of before)
        expect(podIdentity(await podd.untilReady(pod.metadata.name))).toEqual(podIdentity(pod))
    }
    let containerdNow = podd.install
    let average = 0
    let counts = load.counts
    try {
      for (let round = 0; round < times; round += 1) {
        await podd.restartDaemon(round % 4 === 3 ? 'SIGKILL' : 'SIGTERM')
        await untouched()
      }
      console.log(`podd was replaced ${times} times`)
      const newer = findNewer(podd.install)
      for (let round = 0; round < times; round += 1) {
        if (round === Math.floor(times / 2) && newer !== undefined) {
          podd.installContainerd(newer)
          containerdNow = newer
        }
        const old = podd.containerdPid
        // As systemctl stops it.
        process.kill(old, 'SIGTERM')
        await podd.until('the next containerd', () => ![0, old].includes(podd.containerdPid))
        await podd.until('its answers', async () => (await podd.status()).runtime.healthy)
        await untouched()
      }
      console.log(
        `containerd was replaced ${times} times, ${podd.install.version} by ${containerdNow.version} at last`,
      )
      expect(podd.ctr('version')).toContain(containerdNow.version)
      await sleep(2000)
    } finally {
      average = load.rate
      counts = await load.end()
      console.log(
        `${counts.opened} connections, ${Math.round(average)} new ones a second; ${counts.answered} answered, the slowest in ${Math.round(counts.slowestMs)} ms; failed: ${JSON.stringify(counts.failures)}`,
      )
    }
    expect(counts.failures).toEqual({})
    expect(counts.answered).toBe(counts.opened)
    expect(average).toBeGreaterThanOrEqual(200)
    await untouched()
    for (const { metadata } of before) expect(wordsOf(podd.lines(metadata.name))).toEqual(['start'])
    expect(await failedProbes(podd)).toBe(failedBefore)
    const numbers = await numbersOf(podd)
    const gaps = numbers.filter((number, index) => number !== index)
    console.log(`${numbers.length} lines of log, ${gaps.length} out of place`)
    expect(gaps).toEqual([])
    expect(readdirSync(podd.linksDir).filter((name) => name.startsWith('server_'))).toHaveLength(1)
  })
})
