import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { describePodd } from '../support/podd-rig.ts'
import { shellPod } from '../support/shell-pods.ts'

/** What a process has had written to disks, by its pages: neither a file system's journal nor its metadata. */
function writtenBytes(pid: number): number {
  const found = /^write_bytes: (?<bytes>\d+)$/mu.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))
  return Number(found?.groups?.['bytes'])
}

/** Resolves with what a process has written, once it has written nothing for this long. */
async function whenQuiet(pid: number, quietMs: number): Promise<number> {
  for (let last = writtenBytes(pid); ;) {
    await sleep(quietMs)
    const now = writtenBytes(pid)
    if (now === last) return now
    last = now
  }
}

describePodd('what podd writes', {}, (rig) => {
  it('is little for a pod that starts, and nothing once nothing happens', { tags: ['nightly'] }, async () => {
    const podd = rig()
    podd.drop('first', shellPod('first', podd.shared, 'stay'))
    await podd.untilReady('first')
    const before = await whenQuiet(podd.daemonPid, 4000)
    const pods = ['a', 'b', 'c', 'd']
    for (const name of pods) podd.drop(name, shellPod(name, podd.shared, 'stay'))
    for (const name of pods) await podd.untilReady(name)
    // Longer than the periods of the jobs that look at the host.
    const after = await whenQuiet(podd.daemonPid, 15_000)
    const perPodBytes = (after - before) / pods.length
    expect(perPodBytes).toBeGreaterThan(0)
    expect(perPodBytes).toBeLessThan(512 * 1024)
  })
})
