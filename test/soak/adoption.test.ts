import { expect, it } from 'vitest'
import { AdoptionRounds } from '../support/adoption-rounds.ts'
import { describePodd } from '../support/podd-rig.ts'
import { seedOf, strikeAtRandom } from '../support/seeded-random.ts'

/** `PODD_ADOPTION_SEED=7` kills at the same moments again; `PODD_ADOPTION_ROUNDS` says how often. */
const seed = seedOf('PODD_ADOPTION_SEED')
const rounds = Number(process.env['PODD_ADOPTION_ROUNDS'] ?? 100)

/** A set that podd was killed with is no set that podd crashed of. */
const config = { sourceTrialPeriod: '0s' }

describePodd('adoption', { config }, (rig) => {
  it(`restarts and forgets nothing after SIGKILL at ${rounds} random moments`, async () => {
    const done = await strikeAtRandom(new AdoptionRounds(rig()), { seed, rounds })
    console.log(done)
    expect(done).toContain(`${rounds} times`)
  })
})
