import { expect, it } from 'vitest'
import { awaitCounts, countHost } from '../support/leftovers.ts'
import { describePodd } from '../support/podd-rig.ts'
import { runShortPods } from '../support/short-pods.ts'

const pods = Number(process.env['PODD_SOAK_PODS'] ?? 5000)
const atOnce = Number(process.env['PODD_SOAK_AT_ONCE'] ?? 8)

describePodd('short pods', {}, (current) => {
  it(`${pods} that come, end and go leave the host as it was`, async () => {
    const podd = current()
    await runShortPods(podd, 2, 2)
    const before = countHost(podd)
    await runShortPods(podd, pods, atOnce)
    expect(await awaitCounts(podd, before)).toEqual([])
  })
})
