import { afterAll, beforeAll, expect, it } from 'vitest'
import { HostileRounds } from '../support/hostile-rounds.ts'
import { describePodd } from '../support/podd-rig.ts'
import { slowness } from '../support/slowness.ts'

const rootDisk = { sizeMiB: 300, ext4: true }

/**
 * Rounds in which each step of HostileRounds comes, three for each line of containerd; test/soak goes 300 more.
 * `PODD_HOSTILE_SEEDS=7,8` runs those seeds instead.
 */
const seeds = { older: [2, 4, 17], newer: [3, 6, 19] } as const
const given = (process.env['PODD_HOSTILE_SEEDS'] ?? '').split(',').filter((text) => text !== '')
const rounds = given.length > 0 ? given.map((_, index) => index) : [0, 1, 2]

describePodd('hostile rounds', { rootDisk }, (rig) => {
  let hostile: HostileRounds | undefined

  beforeAll(async () => {
    hostile = new HostileRounds(rig())
    await hostile.open()
  })

  afterAll(() => hostile?.close())

  it.each(rounds)(
    'lose, double and restart no container, in round %i',
    { timeout: 300_000 * slowness },
    async (round) => {
      const fixed = rig().install.version.startsWith('1.') ? seeds.older : seeds.newer
      const seed = Number(given[round] ?? fixed[round])
      expect(await hostile?.round(seed)).toContain(`seed ${seed}`)
    },
  )
})
