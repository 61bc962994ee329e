import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { AdoptionRounds } from '../support/adoption-rounds.ts'
import { describePodd } from '../support/podd-rig.ts'
import { seededRandom } from '../support/seeded-random.ts'

/** `PODD_ADOPTION_SEED=7` kills at the same moments again; `PODD_ADOPTION_ROUNDS` says how often. */
const seed = Number(process.env['PODD_ADOPTION_SEED'] ?? Date.now() % 1_000_000)
const rounds = Number(process.env['PODD_ADOPTION_ROUNDS'] ?? 100)

/** A set that podd was killed with is no set that podd crashed of. */
const config = { sourceTrialPeriod: '0s' }

describePodd('adoption', { config }, (rig) => {
  it(`restarts and forgets nothing after SIGKILL at ${rounds} random moments`, async () => {
    const random = seededRandom(seed)
    console.log(`seed ${seed}`)
    const adoption = new AdoptionRounds(rig(), random)
    await adoption.open()
    for (let round = 0; round < rounds; round += 1) {
      const moment = await adoption.begin(round)
      await sleep(random() * moment.withinMs)
      await adoption.killAndJudge(round, moment)
      if ((round + 1) % 10 === 0) console.log(adoption.counts())
    }
    console.log(adoption.counts())
    expect(adoption.kills).toBeGreaterThanOrEqual(rounds)
  })
})
