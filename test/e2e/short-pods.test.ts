import { expect, it } from 'vitest'
import { awaitCounts, countHost } from '../support/leftovers.ts'
import { describePodd } from '../support/podd-rig.ts'
import { runShortPods } from '../support/short-pods.ts'

describePodd('short pods', {}, (current) => {
  it('leave the host as it was when ten have come, ended and gone', async () => {
    const podd = current()
    // The bridge, the levels of cgroups and the like come with the first one, and stay.
    await runShortPods(podd, 2, 2)
    const before = countHost(podd)
    await runShortPods(podd, 10, 5)
    expect(await awaitCounts(podd, before)).toEqual([])
  })
})
