import { expect, it } from 'vitest'
import { HostileRounds } from '../support/hostile-rounds.ts'
import { describePodd } from '../support/podd-rig.ts'

/** `PODD_HOSTILE_SEEDS=7,8` runs those rounds; else as many as `PODD_HOSTILE_ROUNDS` says, from a seed that nobody ran before. */
const given = (process.env['PODD_HOSTILE_SEEDS'] ?? '').split(',').filter((text) => text !== '')
const count = Number(process.env['PODD_HOSTILE_ROUNDS'] ?? 300)
const first = Date.now() % 1_000_000
const seeds =
  given.length > 0 ? given.map(Number) : Array.from({ length: count }, (_, index) => first + index)

const rootDisk = { sizeMiB: 300, ext4: true }

describePodd('hostile rounds', { rootDisk }, (rig) => {
  it('lose, double and restart no container', async () => {
    const rounds = new HostileRounds(rig())
    try {
      await rounds.open()
      for (const seed of seeds) console.log(await rounds.round(seed))
    } finally {
      rounds.close()
    }
    expect(seeds.length).toBeGreaterThan(0)
  })
})
