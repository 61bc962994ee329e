import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { describePodd } from '../support/podd-rig.ts'
import type { PoddRig } from '../support/podd-rig.ts'
import { podCgroup, readCgroup } from '../support/read-cgroup.ts'
import { restartWith } from '../support/restart-with.ts'
import { shellPod } from '../support/shell-pods.ts'
import { writeTestMarks } from '../support/test-marks.ts'

/** Starts podd again with another cgroup root. */
async function restartIn(podd: PoddRig, root: string): Promise<void> {
  writeTestMarks({ cgroup: root })
  await restartWith(podd, '--cgroup-root', root)
}

describePodd('another cgroup root', {}, (rig) => {
  it('is taken when no pod is left in the old one, and not before', async () => {
    const podd = rig()
    const old = podd.cgroupRoot
    const other = `${old}-other`
    const directory = (root: string, uid: string): string =>
      readCgroup.directory(podCgroup(root, 'besteffort', uid))
    podd.drop('stays', shellPod('stays', podd.shared, 'say start; stay'))
    const { metadata } = await podd.untilReady('stays')
    expect(existsSync(directory(old, metadata.uid))).toBe(true)

    await restartIn(podd, other)
    expect((await podd.untilReady('stays')).metadata.uid).toBe(metadata.uid)
    podd.drop('comes', shellPod('comes', podd.shared, 'say start; stay'))
    const comes = await podd.untilReady('comes')
    expect(existsSync(directory(old, comes.metadata.uid))).toBe(true)
    expect(podd.lines('stays')).toHaveLength(1)
    for (const name of ['stays', 'comes']) podd.removeManifest(name)
    await podd.untilGone('stays')
    await podd.untilGone('comes')
    expect(existsSync(directory(old, metadata.uid))).toBe(false)

    await restartIn(podd, other)
    podd.drop('moved', shellPod('moved', podd.shared, 'say start; stay'))
    const moved = await podd.untilReady('moved')
    expect(existsSync(directory(other, moved.metadata.uid))).toBe(true)
    expect(existsSync(readCgroup.directory(`${old}/kubepods`))).toBe(false)
    podd.removeManifest('moved')
    await podd.untilGone('moved')

    await restartIn(podd, old)
    podd.drop('back', shellPod('back', podd.shared, 'say start; stay'))
    await podd.untilReady('back')
    expect(existsSync(readCgroup.directory(other))).toBe(false)
    podd.removeManifest('back')
    await podd.untilGone('back')
  })
})
