import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { ProbedPods } from '../support/probed-pods.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'

/** Dropped right before the freeze. */
const starting = Array.from({ length: 4 }, (_, index) => `starting-${index}`)

describePodd('processes that are frozen', {}, (rig) => {
  it('restarts nothing after containerd was frozen for longer than probes may fail, and podd with it at the end', async () => {
    const podd = rig()
    const probed = new ProbedPods(podd)
    await probed.start()
    const before = await probed.lives()
    const { containerdPid, daemonPid } = podd
    process.kill(containerdPid, 'SIGSTOP')
    const frozenMs = performance.now()
    try {
      podd.drop('meanwhile', shellPod('meanwhile', podd.shared, 'say start; stay'))
      await podd.until('the silence', async () => /does not answer/u.test(await podd.notes()))
      const failures = await probed.counts('failure')
      // Without an answer a probe of each would have failed for good within 10 s.
      await sleep(12_000 - (performance.now() - frozenMs))
      expect(await probed.counts('failure')).toEqual(failures)
      expect(await podd.notes()).toMatch(/does not answer/u)
      process.kill(daemonPid, 'SIGSTOP')
      await sleep(5000)
    } finally {
      // podd goes on first: by what it hears of containerd then, each probe is long overdue.
      for (const pid of [daemonPid, containerdPid]) process.kill(pid, 'SIGCONT')
    }
    await podd.untilReady('meanwhile')
    await probed.untilProbed(2)
    expect(await probed.lives()).toEqual(before)
    expect(podd.containerdPid).toBe(containerdPid)
    for (const name of [...probed.names, 'meanwhile']) expect(wordsOf(podd.lines(name))).toEqual(['start'])
    expect(containerOf(await podd.untilReady('meanwhile'), 'main').restartCount).toBe(0)
  })

  const nightly = { tags: ['nightly'] }
  it(
    'starts another containerd in the place of one that is frozen for good, and nothing restarts',
    nightly,
    async () => {
      const podd = rig()
      const probed = new ProbedPods(podd)
      await probed.start()
      const before = await probed.lives()
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
      await probed.untilProbed(2)
      expect(await probed.lives()).toEqual(before)
      for (const name of [...probed.names, 'afterwards']) expect(wordsOf(podd.lines(name))).toEqual(['start'])
      for (const name of starting) {
        const { restartCount } = containerOf(await podd.untilReady(name), 'main')
        // One that was killed between its creation and its start counts as one that ended, whether it ran or not.
        expect(restartCount).toBeLessThanOrEqual(1)
        expect(podd.lines(name).length).toBeLessThanOrEqual(restartCount + 1)
      }
    },
  )
})
