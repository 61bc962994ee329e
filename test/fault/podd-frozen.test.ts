import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { describePodd } from '../support/podd-rig.ts'
import { ProbedPods } from '../support/probed-pods.ts'
import { wordsOf } from '../support/shell-pods.ts'

describePodd('podd and containerd are frozen', {}, (rig) => {
  it('and podd looks at everything first when it goes on', async () => {
    const podd = rig()
    const probed = new ProbedPods(podd)
    await probed.start()
    const before = await probed.lives()
    const { containerdPid, daemonPid } = podd
    for (const pid of [daemonPid, containerdPid]) process.kill(pid, 'SIGSTOP')
    await sleep(25_000)
    for (const pid of [daemonPid, containerdPid]) process.kill(pid, 'SIGCONT')
    await probed.untilProbed(3)
    expect(await probed.lives()).toEqual(before)
    for (const name of probed.names) expect(wordsOf(podd.lines(name))).toEqual(['start'])
  })
})
