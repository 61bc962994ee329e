import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { LongestFirst, onEachContainerd, onEachInEveryRun } from './test/lib/slow-suites.ts'
import { isNightly } from './test/support/nightly.ts'
import { slowness } from './test/support/slowness.ts'

// The same in each worker.
process.env['PODD_TEST_SLOWNESS'] = String(slowness)

/** Much of what tests do is waiting for files, sockets and processes: of two processors, fewer leave a third of the time unused. */
const maxWorkers = availableParallelism() + 4
/**
 * Those wait for containers most of the time. Each has a podd, a containerd and shims, which take of what a host has
 * once, such as inotify instances.
 */
const maxPodds = Math.min(2 * availableParallelism() + 1, 5)

const tags = [
  { name: 'nightly', description: 'runs only where PODD_TEST_NIGHTLY=1 asks for it', skip: !isNightly },
]

/** One that hangs is given up in minutes on the slowest machine, too. */
const slowMs = 120_000 * Math.min(slowness, 10)
const slow = {
  tags,
  testTimeout: slowMs,
  hookTimeout: slowMs,
  expect: { poll: { timeout: 20_000 * slowness } },
  isolate: false,
  maxWorkers: maxPodds,
  sequence: { groupOrder: 1 },
}
/** Some start a process or decode thousands of documents, beside whatever else the host does: only what hangs takes as long. */
const quickMs = 120_000 * Math.min(slowness, 10)
const quick = {
  tags,
  setupFiles: ['./test/support/idle-worker.ts'],
  testTimeout: quickMs,
  hookTimeout: quickMs,
  expect: { poll: { timeout: 20_000 * slowness } },
  isolate: false,
  maxWorkers,
}

/**
 * `PODD_TEST_CONTAINERD` names one containerd or more: contract, e2e and fault are one project for each, `containerd`,
 * `containerd-2`, …, for a worker goes on to another file within its project only, and loads everything again in another.
 */
const [firstContainerd, ...otherContainerds] = (process.env['PODD_TEST_CONTAINERD'] ?? '').split(',')

function slowSuites(containerd: string | undefined, name: string, include: readonly string[]) {
  const env = containerd ? { PODD_TEST_CONTAINERD: containerd } : {}
  return { test: { name, include: [...include], env, ...slow } }
}

/**
 * Projects, from fast to slow. `npm run check` runs unit and component; `test/run.sh` runs the suites on real containerd
 * too, which need root.
 */
export default defineConfig({
  test: {
    pool: 'forks',
    globalSetup: './test/support/global-setup.ts',
    sequence: { sequencer: LongestFirst },
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts'], ...quick } },
      { test: { name: 'component', include: ['test/component/**/*.test.ts'], ...quick } },
      slowSuites(firstContainerd, 'containerd', ['test/{contract,e2e,fault}/**/*.test.ts']),
      ...otherContainerds.map((containerd, at) =>
        slowSuites(
          containerd,
          `containerd-${at + 2}`,
          isNightly ? Object.keys(onEachContainerd) : onEachInEveryRun,
        ),
      ),
      {
        test: {
          name: 'page',
          include: ['test/page/**/*.test.ts'],
          ...quick,
        },
      },
      {
        test: {
          name: 'conformance',
          include: ['test/conformance/**/*.test.ts'],
          ...slow,
          isolate: true,
          testTimeout: 14_400_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          name: 'soak',
          include: ['test/soak/**/*.test.ts'],
          ...slow,
          isolate: true,
          testTimeout: 7_200_000,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
