/**
 * How many times slower than an ordinary machine this one is: `PODD_TEST_SLOWNESS`, which test/run.sh measures.
 * Only how long tests wait in vain follows from it, and bounds that are there to catch what hangs.
 */
export const slowness = Math.max(1, Number(process.env['PODD_TEST_SLOWNESS'] ?? 1) || 1)
