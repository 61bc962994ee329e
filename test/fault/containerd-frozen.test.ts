import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { ProbedPods } from '../support/probed-pods.ts'
import { shellPod, wordsOf } from '../support/shell-pods.ts'

const config = { crashLoopBackOff: { maxContainerRestartPeriod: '1s' } }

describePodd('containerd is frozen', { config }, (rig) => {
  it('for 38 s, and nothing restarts', async () => {
    const podd = rig()
    const probed = new ProbedPods(podd)
    await probed.start()
    const before = await probed.lives()
    const containerd = podd.containerdPid
    process.kill(containerd, 'SIGSTOP')
    const frozenMs = performance.now()
    try {
      podd.drop('meanwhile', shellPod('meanwhile', podd.shared, 'say start; stay'))
      await podd.until('the silence', async () => /does not answer/u.test(await podd.notes()))
      const failures = await probed.counts('failure')
      await sleep(38_000 - (performance.now() - frozenMs))
      expect(await probed.counts('failure')).toEqual(failures)
      expect(await podd.notes()).toMatch(/does not answer/u)
    } finally {
      process.kill(containerd, 'SIGCONT')
    }
    await podd.untilReady('meanwhile')
    await probed.untilProbed(3)
    expect(await probed.lives()).toEqual(before)
    expect(podd.containerdPid).toBe(containerd)
    for (const name of [...probed.names, 'meanwhile']) expect(wordsOf(podd.lines(name))).toEqual(['start'])
    expect(containerOf(await podd.untilReady('meanwhile'), 'main').restartCount).toBe(0)
  })
})
