import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { ProbeReportObject } from '../../src/api/probe-reports.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'

const config = { crashLoopBackOff: { maxContainerRestartPeriod: '1s' } }
const names = Array.from({ length: 15 }, (_, index) => `probed-${index}`)

/** Dropped right before a freeze. */
const starting = Array.from({ length: 4 }, (_, index) => `starting-${index}`)

/** What tells that the very same processes run. */
interface Life {
  readonly name: string
  readonly restarts: number
  readonly pid: number
}

async function livesOf(podd: PoddRig): Promise<readonly Life[]> {
  const pods = await Promise.all(names.map((name) => podd.untilReady(name)))
  return pods.map((pod) => {
    const { restartCount: restarts, containerID = '' } = containerOf(pod, 'main')
    return { name: pod.metadata.name, restarts, pid: podd.pidOf(containerID) }
  })
}

/** How often it came of each probe of all these pods. */
async function countsOf(podd: PoddRig, result: 'success' | 'failure'): Promise<readonly number[]> {
  const reports = names.map((name) =>
    podd.get<readonly ProbeReportObject[]>(`/podd/v1/namespaces/default/pods/${name}/probes`),
  )
  return (await Promise.all(reports)).flat().map(({ counts }) => counts[result])
}

/** Resolves when every probe has succeeded so many times more. */
async function untilProbed(podd: PoddRig, times: number): Promise<void> {
  const before = await countsOf(podd, 'success')
  await podd.until(`${times} successes of each probe`, async () => {
    const counts = await countsOf(podd, 'success')
    return counts.every((count, index) => count >= (before[index] ?? 0) + times)
  })
}

describePodd('containerd is frozen', { config }, (rig) => {
  it('for 38 s, and nothing restarts', async () => {
    const podd = rig()
    const probe = { exec: { command: ['true'] }, periodSeconds: 5, timeoutSeconds: 2, failureThreshold: 3 }
    const container = { livenessProbe: probe, readinessProbe: { ...probe, periodSeconds: 3 } }
    for (const name of names) podd.drop(name, shellPod(name, podd.shared, 'say start; stay', { container }))
    await livesOf(podd)
    await untilProbed(podd, 1)
    const before = await livesOf(podd)
    const containerd = podd.containerdPid
    process.kill(containerd, 'SIGSTOP')
    const frozenMs = performance.now()
    try {
      podd.drop('meanwhile', shellPod('meanwhile', podd.shared, 'say start; stay'))
      await podd.until('the silence', async () => /does not answer/u.test(await podd.notes()))
      const failures = await countsOf(podd, 'failure')
      await sleep(38_000 - (performance.now() - frozenMs))
      expect(await countsOf(podd, 'failure')).toEqual(failures)
      expect(await podd.notes()).toMatch(/does not answer/u)
    } finally {
      process.kill(containerd, 'SIGCONT')
    }
    await podd.untilReady('meanwhile')
    await untilProbed(podd, 3)
    expect(await livesOf(podd)).toEqual(before)
    expect(podd.containerdPid).toBe(containerd)
    for (const name of [...names, 'meanwhile']) expect(wordsOf(podd.lines(name))).toEqual(['start'])
    expect(containerOf(await podd.untilReady('meanwhile'), 'main').restartCount).toBe(0)
  })

  it('for good, and another takes its place', async () => {
    const podd = rig()
    const before = await livesOf(podd)
    const containerd = podd.containerdPid
    for (const name of starting) podd.drop(name, shellPod(name, podd.shared, 'say start; stay'))
    await podd.until('one of them', () => podd.lines('starting-0').length > 0)
    process.kill(containerd, 'SIGSTOP')
    const frozenMs = performance.now()
    await podd.until('another containerd', () => ![0, containerd].includes(podd.containerdPid), 120_000)
    expect(performance.now() - frozenMs).toBeGreaterThan(55_000)
    await podd.until('its answers', async () => (await podd.status()).runtime.healthy)
    podd.drop('afterwards', shellPod('afterwards', podd.shared, 'say start; stay'))
    await podd.untilReady('afterwards')
    await untilProbed(podd, 2)
    expect(await livesOf(podd)).toEqual(before)
    for (const name of [...names, 'afterwards']) expect(wordsOf(podd.lines(name))).toEqual(['start'])
    for (const name of starting) {
      const { restartCount } = containerOf(await podd.untilReady(name), 'main')
      // One that was killed between its creation and its start counts as one that ended, whether it ran or not.
      expect(restartCount).toBeLessThanOrEqual(1)
      expect(podd.lines(name).length).toBeLessThanOrEqual(restartCount + 1)
    }
  })

  it('with podd, which looks at everything first when it goes on', async () => {
    const podd = rig()
    const before = await livesOf(podd)
    const { containerdPid, daemonPid } = podd
    for (const pid of [daemonPid, containerdPid]) process.kill(pid, 'SIGSTOP')
    await sleep(25_000)
    for (const pid of [daemonPid, containerdPid]) process.kill(pid, 'SIGCONT')
    await untilProbed(podd, 3)
    expect(await livesOf(podd)).toEqual(before)
    for (const name of names) expect(wordsOf(podd.lines(name))).toEqual(['start'])
  })
})
