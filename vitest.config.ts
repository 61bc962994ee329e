import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { slowness } from './test/support/slowness.ts'

const slow = {
  testTimeout: 120_000 * slowness,
  hookTimeout: 120_000 * slowness,
  expect: { poll: { timeout: 10_000 * slowness } },
  fileParallelism: false,
}
/** Much of what these do is waiting for files and sockets. */
const quick = {
  testTimeout: 10_000 * slowness,
  hookTimeout: 10_000 * slowness,
  expect: { poll: { timeout: 5_000 * slowness } },
  isolate: false,
  maxWorkers: availableParallelism() + 1,
}

/**
 * Projects, from fast to slow. `npm run check` runs unit and component; `test/run.sh` runs all but soak.
 * contract, e2e and fault use real containerd and need root.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], ...quick } },
      { test: { name: 'component', include: ['test/component/**/*.test.ts'], ...quick } },
      { test: { name: 'contract', include: ['test/contract/**/*.test.ts'], ...slow } },
      { test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], ...slow } },
      { test: { name: 'fault', include: ['test/fault/**/*.test.ts'], ...slow } },
      { test: { name: 'soak', include: ['test/soak/**/*.test.ts'], ...slow, testTimeout: 7_200_000 } },
    ],
  },
})
