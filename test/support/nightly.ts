/**
 * Whether this is the nightly run: `PODD_TEST_NIGHTLY=1`, which `test/run.sh --nightly` sets. A file
 * (`@module-tag nightly` in its first comment), a suite or a test (`{ tags: ['nightly'] }`) with the tag `nightly` runs only
 * then; in any other run it is counted, apart from those that are skipped.
 */
export const isNightly = process.env['PODD_TEST_NIGHTLY'] === '1'
