import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { conditionOf, containerOf, describePodd } from '../support/podd-rig.ts'
import { saidAt, shellPod, wordsOf } from '../support/shell-pods.ts'

describePodd('a containerd that is killed', {}, (rig) => {
  // id: started-again-pods-live
  it('is started again, and the pods live on', async () => {
    const podd = rig()
    podd.drop('steady', shellPod('steady', podd.shared, 'say start; stay'))
    const before = await podd.untilReady('steady')
    const pid = podd.pidOf(containerOf(before, 'main').containerID ?? '')
    const killed = podd.containerdPid
    expect(killed).toBeGreaterThan(0)
    process.kill(killed, 'SIGKILL')
    await podd.until('another containerd', () => podd.containerdPid !== 0 && podd.containerdPid !== killed)
    await podd.until('its answers', async () => (await podd.status()).runtime.healthy)
    // podd may not have noticed yet that the one before is gone.
    await podd.until('its socket', () => {
      try {
        return podd.ctr('version') !== ''
      } catch {
        return false
      }
    })
    const after = await podd.untilReady('steady')
    expect(containerOf(after, 'main')).toEqual(containerOf(before, 'main'))
    expect(podd.pidOf(containerOf(after, 'main').containerID ?? '')).toBe(pid)
    expect(await podd.untilWords('steady', 1)).toEqual(['start'])
  })

  it('costs no pod that was starting, being restarted or ending', async () => {
    const podd = rig()
    podd.drop(
      'crashing',
      shellPod(
        'crashing',
        podd.shared,
        'say start; [ $(wc -l </shared/crashing) -ge 4 ] && stay; sleep 0.3; exit 1',
      ),
    )
    const slowEnd = `trap 'say term; sleep 2; say ended; exit 0' TERM; say start; sleep 1000 & wait`
    podd.drop(
      'leaving',
      shellPod('leaving', podd.shared, slowEnd, { spec: { terminationGracePeriodSeconds: 20 } }),
    )
    await podd.untilReady('leaving')
    await podd.untilLine('crashing', / start$/u)
    podd.removeManifest('leaving')
    await podd.untilLine('leaving', / term$/u)
    for (const name of ['new-a', 'new-b', 'new-c'])
      podd.drop(name, shellPod(name, podd.shared, 'say start; stay'))
    process.kill(podd.containerdPid, 'SIGKILL')
    for (const name of ['new-a', 'new-b', 'new-c']) {
      await podd.untilReady(name)
      // One that was killed between its creation and its start may have run once before.
      await podd.untilLine(name, / start$/u)
    }
    await podd.untilGone('leaving')
    // It is asked again to stop when that is uncertain.
    expect(new Set(wordsOf(podd.lines('leaving')))).toEqual(new Set(['start', 'term', 'ended']))
    expect(wordsOf(podd.lines('leaving')).filter((word) => word === 'start')).toHaveLength(1)
    const crashing = await podd.untilPod(
      'crashing',
      'its rest',
      (pod) => conditionOf(pod, 'Ready') === 'True' && containerOf(pod, 'main').restartCount >= 3,
    )
    expect(containerOf(crashing, 'main').restartCount).toBeLessThanOrEqual(podd.lines('crashing').length)
  })

  it('has a container restarted that died meanwhile', async () => {
    const podd = rig()
    const before = await podd.untilReady('steady')
    const pid = podd.pidOf(containerOf(before, 'main').containerID ?? '')
    process.kill(podd.containerdPid, 'SIGKILL')
    process.kill(pid, 'SIGKILL')
    const after = await podd.untilPod(
      'steady',
      'its restart',
      (pod) => containerOf(pod, 'main').restartCount === 1 && conditionOf(pod, 'Ready') === 'True',
    )
    expect(after.metadata.uid).toBe(before.metadata.uid)
    await podd.untilWords('steady', 2)
    const lines = podd.lines('steady')
    expect(wordsOf(lines)).toEqual(['start', 'start'])
    expect(saidAt(lines, 'start')).toBeLessThan(Number(lines[1]?.split(' ')[0]))
  })

  it('is told of while it cannot be started, and nothing is lost', async () => {
    const podd = rig()
    const before = await podd.untilReady('steady')
    const containerd = podd.containerdPid
    // It answers no more, as one that hangs.
    process.kill(containerd, 'SIGSTOP')
    try {
      const { stdout } = await podd.cli('get', 'pods', 'steady')
      expect(stdout).toMatch(/^steady +1\/1 +Running/mu)
    } finally {
      process.kill(containerd, 'SIGCONT')
    }
    podd.drop('afterwards', shellPod('afterwards', podd.shared, 'stay'))
    await podd.untilReady('afterwards')
    expect(containerOf(await podd.untilReady('steady'), 'main').containerID).toBe(
      containerOf(before, 'main').containerID,
    )
  })

  it('does not start with podd, and pods are shown all the same', async () => {
    const podd = rig()
    const before = await podd.untilReady('steady')
    await podd.stopDaemon()
    const containerd = podd.containerdPid
    process.kill(containerd, 'SIGKILL')
    await podd.until('its end', () => podd.containerdPid === 0)
    const database = join(podd.rootDir, 'containerd/io.containerd.metadata.v1.bolt/meta.db')
    renameSync(database, `${database}.good`)
    writeFileSync(database, 'what a bad disk has left of it')
    try {
      podd.drop('awaited', shellPod('awaited', podd.shared, 'say start; stay'))
      podd.launch()
      const { stdout, stderr } = await podd.until('the reason', async () => {
        const shown = await podd.cli('get', 'pods')
        return /does not work/u.test(shown.stderr) && /^steady/mu.test(shown.stdout) ? shown : undefined
      })
      expect(stdout).toMatch(/^awaited +0\/1 +RuntimeNotReady/mu)
      expect(stdout).toMatch(/^steady +0\/1 +RuntimeNotReady/mu)
      expect(stderr).toMatch(/does not work: .*containerd/u)
      expect(await podd.cliOk('describe', 'pod', 'awaited')).toMatch(/RuntimeNotReady/u)
      const doctor = await podd.cli('doctor', ...podd.flags())
      expect(doctor.stdout).toMatch(/its containerd does not: .*containerd.*invalid database/u)
    } finally {
      renameSync(`${database}.good`, database)
    }
    await podd.untilReady('awaited')
    expect(await podd.untilWords('awaited', 1)).toEqual(['start'])
    const after = await podd.untilReady('steady')
    expect(after.metadata.uid).toBe(before.metadata.uid)
    expect(containerOf(after, 'main')).toEqual(containerOf(before, 'main'))
  })
})
