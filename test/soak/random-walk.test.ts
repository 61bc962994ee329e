import { describe, expect, it } from 'vitest'
import { describePodd } from '../support/podd-rig.ts'
import { RandomWalk } from '../support/random-walk.ts'

/** `PODD_WALK_SEEDS=1,2,3` walks again what failed; else three fixed walks and one that nobody went before. */
const given = (process.env['PODD_WALK_SEEDS'] ?? '').split(',').filter((text) => text !== '')
const seeds = given.length > 0 ? given.map(Number) : [1, 2, 3, Date.now() % 1_000_000]
const operations = Number(process.env['PODD_WALK_OPERATIONS'] ?? 500)

describe.each(seeds)('seed %i', (seed) => {
  describePodd('a random walk', {}, (rig) => {
    it('ends with what shall run and nothing else', async () => {
      const options = { seed, operations, killContainerd: true, freezeContainerd: true }
      const done = await new RandomWalk(rig(), options).run()
      console.log(done)
      expect(done).toContain(`${operations} steps`)
    })
  })
})
