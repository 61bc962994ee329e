import { expect, it } from 'vitest'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { ProbedPods } from '../support/probed-pods.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'

const config = { crashLoopBackOff: { maxContainerRestartPeriod: '1s' } }

/** Dropped right before the freeze. */
const starting = Array.from({ length: 4 }, (_, index) => `starting-${index}`)

describePodd('containerd is frozen for good', { config }, (rig) => {
  it('and another takes its place', async () => {
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
  })
})
