import { expect, it } from 'vitest'
import { readProcess } from '../../src/host/processes.ts'
import { hangShim } from '../support/hang-shim.ts'
import { containerOf, describePodd } from '../support/podd-rig.ts'
import { podOf, shellContainer, wordsOf } from '../support/shell-pods.ts'

/** A call to a container may take 2 minutes, one to its sandbox 30 s after that. */
const patienceMs = 400_000

describePodd('a pod whose shim hangs for good', {}, (rig) => {
  const options = { timeout: 2 * patienceMs, tags: ['nightly'] }
  it('goes with its processes when it is removed, while others live on', options, async () => {
    const podd = rig()
    const sidecar = shellContainer('side', 'side', 'say start; stay', { restartPolicy: 'Always' })
    const main = shellContainer('main', 'hung', 'say start; stay')
    podd.drop('hung', podOf('hung', podd.shared, [main], { spec: { initContainers: [sidecar] } }))
    podd.drop('other', podOf('other', podd.shared, [shellContainer('main', 'other', 'say start; stay')]))
    const hung = await podd.untilReady('hung')
    const other = await podd.untilReady('other')
    const pids = ['main', 'side'].map((name) => podd.pidOf(containerOf(hung, name).containerID ?? ''))
    const living = () => pids.filter((pid) => readProcess(pid)?.zombie === false)
    expect(living()).toEqual(pids)
    using _ = hangShim(podd, hung)
    podd.removeManifest('hung')
    await podd.until('the end of the pod', async () => (await podd.findPod('hung')) === undefined, patienceMs)
    // Whether init has reaped them yet is its own affair.
    expect(living()).toEqual([])
    const events = await podd.events('hung')
    const told = (like: RegExp) => events.filter(({ message }) => like.test(message))
    expect(told(/^The runtime has not stopped container (?:main|side): /u)).toHaveLength(2)
    expect(told(/^Killed \d+ processes of the pod by its cgroup/u)).toHaveLength(1)
    expect(told(/^Killed the shim of the pod \(process \d+\)/u)).toHaveLength(1)
    expect((await podd.untilReady('other')).metadata.uid).toBe(other.metadata.uid)
    expect(wordsOf(podd.lines('other'))).toEqual(['start'])
    podd.drop('hung', podOf('hung', podd.shared, [main]))
    await podd.untilReady('hung')
  })
})
