import { expect, it } from 'vitest'
import { describePodd } from '../support/podd-rig.ts'
import { RandomWalk } from '../support/random-walk.ts'
import { seedOf } from '../support/seeded-random.ts'
import { slowness } from '../support/slowness.ts'

const seed = seedOf('PODD_WALK_SEED', 20_261_120)
const operations = Number(process.env['PODD_WALK_OPERATIONS'] ?? 60)

describePodd('a short random walk', {}, (rig) => {
  const options = { tags: ['nightly'], timeout: 300_000 * slowness }
  it(`ends with what shall run and nothing else, seed ${seed}`, options, async () => {
    const done = await new RandomWalk(rig(), { seed, operations, mostPods: 5 }).run()
    console.log(done)
    expect(done).toContain(`${operations} steps`)
  })
})
