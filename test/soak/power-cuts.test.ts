import { existsSync } from 'node:fs'
import { expect, it } from 'vitest'
import { registryProgram } from '../support/loopback-registry.ts'
import { describePodd } from '../support/podd-rig.ts'
import { PowerRounds } from '../support/power-rounds.ts'
import { seedOf, strikeAtRandom } from '../support/seeded-random.ts'

/** `PODD_POWER_SEED=7` cuts at the same moments again; `PODD_POWER_CUTS` says how often. */
const seed = seedOf('PODD_POWER_SEED')
const cuts = Number(process.env['PODD_POWER_CUTS'] ?? 40)

const config = { sourceTrialPeriod: '0s' }
const rootDisk = { sizeMiB: 600, ext4: true }

describePodd('power cuts', { config, rootDisk }, (rig) => {
  it(`${cuts} at random moments are each followed by all pods running, on images that are whole`, async () => {
    const power = new PowerRounds(rig(), existsSync(registryProgram))
    const done = await strikeAtRandom(power, { seed, rounds: cuts })
    console.log(done)
    expect(done).toContain(`${cuts} times`)
  })
})
