import { expect, it } from 'vitest'
import { slowness } from '../../support/slowness.ts'
import { readWhileUpdating } from '../../support/volume-reader.ts'

it(
  'a reader never sees half of an update, through 1,000 of them',
  { timeout: 600_000 * slowness },
  async () => {
    const { bad, seen } = await readWhileUpdating(1_000)
    expect(bad).toEqual([])
    // It did look on while they changed.
    expect(seen).toBeGreaterThan(10)
  },
)
