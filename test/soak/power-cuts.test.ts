import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { registryProgram } from '../support/loopback-registry.ts'
import { describePodd } from '../support/podd-rig.ts'
import { cutPower } from '../support/power-cut.ts'
import { PowerRounds } from '../support/power-rounds.ts'
import { seededRandom } from '../support/seeded-random.ts'

/** `PODD_POWER_SEED=7` cuts at the same moments again; `PODD_POWER_CUTS` says how often. */
const seed = Number(process.env['PODD_POWER_SEED'] ?? Date.now() % 1_000_000)
const cuts = Number(process.env['PODD_POWER_CUTS'] ?? 40)

const config = { sourceTrialPeriod: '0s' }
const rootDisk = { sizeMiB: 600, ext4: true }

describePodd('power cuts', { config, rootDisk }, (rig) => {
  it(`${cuts} at random moments are each followed by all pods running, on images that are whole`, async () => {
    const podd = rig()
    const random = seededRandom(seed)
    console.log(`seed ${seed}`)
    const rounds = new PowerRounds(podd, existsSync(registryProgram))
    try {
      await rounds.open()
      for (let cut = 0; cut < cuts; cut += 1) {
        const moment = await rounds.begin(cut)
        await sleep(random() * moment.withinMs)
        await cutPower(podd)
        await rounds.boot(cut, moment)
        if ((cut + 1) % 5 === 0) console.log(rounds.counts())
      }
    } finally {
      rounds.close()
    }
    expect(rounds.cuts).toBe(cuts)
  })
})
