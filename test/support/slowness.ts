import { availableParallelism, loadavg } from 'node:os'

/**
 * How many times slower than an ordinary machine this one is, a whole number: `PODD_TEST_SLOWNESS`, which test/run.sh measures;
 * without it, how much more there is to do than its processors can. Only how long tests wait in vain follows from it, and
 * bounds that are there to catch what hangs.
 */
export const slowness = Math.max(1, Number(process.env['PODD_TEST_SLOWNESS'] ?? busyness()) || 1)

function busyness(): number {
  const [lastMinute = 0] = loadavg()
  return Math.min(4, Math.round(lastMinute / availableParallelism()))
}
