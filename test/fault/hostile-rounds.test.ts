import { afterAll, beforeAll, expect, it } from 'vitest'
import { HostileRounds } from '../support/hostile-rounds.ts'
import { describePodd } from '../support/podd-rig.ts'
import { slowness } from '../support/slowness.ts'

/** `PODD_HOSTILE_SEEDS=7,8` runs those rounds alone. */
const given = (process.env['PODD_HOSTILE_SEEDS'] ?? '').split(',').filter((text) => text !== '')
const seeds = given.length > 0 ? given.map(Number) : Array.from({ length: 20 }, (_, index) => index + 1)

const config = { crashLoopBackOff: { maxContainerRestartPeriod: '1s' } }
const rootDisk = { sizeMiB: 300, ext4: true }

describePodd('hostile rounds', { config, rootDisk }, (rig) => {
  let rounds: HostileRounds | undefined

  beforeAll(async () => {
    rounds = new HostileRounds(rig())
    await rounds.open()
  })

  afterAll(() => rounds?.close())

  it.each(seeds)(
    'lose, double and restart no container, with seed %i',
    { timeout: 300_000 * slowness },
    async (seed) => {
      expect(await rounds?.round(seed)).toContain(`seed ${seed}`)
    },
  )
})
