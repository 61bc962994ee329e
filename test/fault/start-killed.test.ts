import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { keepersOf } from '../support/connection-keepers.ts'
import { isNightly } from '../support/nightly.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { seededRandom } from '../support/seeded-random.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'
import { slowness } from '../support/slowness.ts'
import { StartLedger } from '../support/start-ledger.ts'

const slowRuncSeconds = 0.4 * slowness

/** All of these moments in the nightly run; the last one in any other. */
function someOf<T>(moments: readonly T[]): readonly T[] {
  return isNightly ? moments : moments.slice(-1)
}

/** Quicker than the rig's own looks: what is waited for lasts less than these are apart. */
const quickly = { interval: 1, timeout: 60_000 * slowness }

/** Drops a pod and resolves when containerd makes its container's task: right after podd's StartContainer. */
async function dropUntilStart(podd: PoddRig, name: string, restartPolicy: string): Promise<void> {
  const tasks = join(podd.runDir, 'containerd/state/io.containerd.runtime.v2.task/k8s.io')
  const known = readdirSync(tasks).length
  podd.drop(name, shellPod(name, podd.shared, 'say start; stay', { spec: { restartPolicy } }))
  await expect.poll(() => readdirSync(tasks).length, quickly).toBeGreaterThanOrEqual(known + 2)
}

/** How many processes its container has had, by what each of them wrote, and what podd counts; then the pod goes. */
async function countAndRemove(podd: PoddRig, name: string): Promise<{ starts: number; restarts: number }> {
  const pod = await podd.untilReady(name)
  await podd.untilWords(name, 1)
  const starts = wordsOf(podd.lines(name)).filter((word) => word === 'start').length
  podd.removeManifest(name)
  await podd.untilGone(name)
  return { starts, restarts: containerOf(pod, 'main').restartCount }
}

describePodd('a container whose podd is killed inside StartContainer', { slowRuncSeconds }, (rig) => {
  let ledger: StartLedger
  beforeAll(async () => {
    const podd = rig()
    podd.drop('anchor', shellPod('anchor', podd.shared, 'stay'))
    await podd.untilReady('anchor')
    ledger = new StartLedger(`unix://${join(podd.runDir, 'containerd/containerd.sock')}`)
    await ledger.open()
  })
  afterAll(() => ledger.close())

  it.each(
    someOf([
      ['Never', 'at once', 0],
      ['Always', 'when it is over', 1500],
    ] as const),
  )(
    'before its process runs, runs once, under the policy %s, with a podd that is back %s',
    async (policy, _when, laterMs) => {
      const podd = rig()
      const name = `unrun-${policy.toLowerCase()}`
      podd.slowDown('create')
      await dropUntilStart(podd, name, policy)
      await podd.stopDaemon('SIGKILL')
      podd.slowDown()
      await sleep(laterMs)
      podd.launch()
      expect(await countAndRemove(podd, name)).toEqual({ starts: 1, restarts: 0 })
    },
  )

  it.each(
    someOf([
      ['Never', 'at once', 0],
      ['Always', 'when it is over', 1500],
    ] as const),
  )(
    'when its process runs, runs on, under the policy %s, with a podd that is back %s',
    async (policy, _when, laterMs) => {
      const podd = rig()
      const name = `run-${policy.toLowerCase()}`
      podd.slowDown('start')
      await dropUntilStart(podd, name, policy)
      await expect.poll(() => podd.lines(name), quickly).not.toEqual([])
      await podd.stopDaemon('SIGKILL')
      podd.slowDown()
      await sleep(laterMs)
      podd.launch()
      expect(await countAndRemove(podd, name)).toEqual({ starts: 1, restarts: 0 })
    },
  )

  // As where all that podd has started is killed with it.
  it.each(
    someOf([
      ['Never', 'at once', 0],
      ['Always', 'when containerd has cancelled it', 1500],
    ] as const),
  )(
    'when its process runs and nothing keeps the call, is restarted, under the policy %s, with a podd that is back %s',
    async (policy, _when, laterMs) => {
      const podd = rig()
      const name = `cancelled-${policy.toLowerCase()}`
      podd.slowDown('start')
      await dropUntilStart(podd, name, policy)
      await expect.poll(() => podd.lines(name), quickly).not.toEqual([])
      const keepers = keepersOf(podd.daemonPid)
      expect(keepers).toHaveLength(1)
      for (const pid of keepers) process.kill(pid, 'SIGKILL')
      await podd.stopDaemon('SIGKILL')
      podd.slowDown()
      await sleep(laterMs)
      podd.launch()
      expect(await countAndRemove(podd, name)).toEqual({ starts: 2, restarts: 1 })
    },
  )

  it.each(someOf([0, 1, 2, 3, 4, 5]))('at some moment (seed %i), runs once', async (seed) => {
    const podd = rig()
    const slow = seededRandom(seed * 3)()
    const name = `seeded-${seed}`
    if (slow < 0.4) podd.slowDown('create')
    else if (slow < 0.8) podd.slowDown('start')
    else podd.slowDown()
    await dropUntilStart(podd, name, seed % 2 === 0 ? 'Never' : 'Always')
    await sleep(seededRandom(seed * 3 + 1)() * (slow < 0.8 ? 600 : 100))
    await podd.stopDaemon('SIGKILL')
    podd.slowDown()
    await sleep(seededRandom(seed * 3 + 2)() * 600)
    podd.launch()
    expect(await countAndRemove(podd, name)).toEqual({ starts: 1, restarts: 0 })
  })

  it('leaves no process behind where podd is stopped in order and starts nothing', async () => {
    const podd = rig()
    podd.slowDown()
    await dropUntilStart(podd, 'stopped', 'Always')
    await expect.poll(() => podd.lines('stopped'), quickly).not.toEqual([])
    await podd.untilReady('stopped')
    const keepers = keepersOf(podd.daemonPid)
    expect(keepers).toHaveLength(1)
    await podd.stopDaemon()
    await expect.poll(() => keepers.filter((pid) => existsSync(`/proc/${pid}`)), quickly).toEqual([])
    podd.launch()
    expect(await countAndRemove(podd, 'stopped')).toEqual({ starts: 1, restarts: 0 })
  })

  it('has never run twice at a time', async () => {
    expect(await ledger.close()).toEqual([])
    expect(ledger.summary).toMatch(isNightly ? /^[12]\d containers/u : /^[4-9] containers/u)
  })
})
