import { afterAll, beforeAll, expect, it } from 'vitest'
import { HostileRounds } from './hostile-rounds.ts'
import { describePodd } from './podd-rig.ts'
import { slowness } from './slowness.ts'

const config = { crashLoopBackOff: { maxContainerRestartPeriod: '1s' } }
const rootDisk = { sizeMiB: 300, ext4: true }

/** `PODD_HOSTILE_SEEDS=7,8` runs those of the seeds alone. */
const given = (process.env['PODD_HOSTILE_SEEDS'] ?? '').split(',').filter((text) => text !== '')

/** Ten rounds from a seed on. They are parted in files, which run beside each other. */
export function describeHostileRounds(first: number): void {
  const seeds = Array.from({ length: 10 }, (_, index) => first + index)
  const chosen = given.length === 0 ? seeds : seeds.filter((seed) => given.includes(String(seed)))
  describePodd(`hostile rounds ${first} to ${first + 9}`, { config, rootDisk }, (rig) => {
    let rounds: HostileRounds | undefined

    beforeAll(async () => {
      rounds = new HostileRounds(rig())
      await rounds.open()
    })

    afterAll(() => rounds?.close())

    it.each(chosen)(
      'lose, double and restart no container, with seed %i',
      { timeout: 300_000 * slowness },
      async (seed) => {
        expect(await rounds?.round(seed)).toContain(`seed ${seed}`)
      },
    )
  })
}
