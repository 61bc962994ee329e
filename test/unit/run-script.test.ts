import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

const run = (...args: readonly string[]) =>
  spawnSync('bash', [new URL('../run.sh', import.meta.url).pathname, ...args], { encoding: 'utf8' })

it.each(['--help', '-h'])('test/run.sh %s prints what it does, and runs nothing', (flag) => {
  const { status, stdout } = run(flag)
  expect(status).toBe(0)
  expect(stdout).toMatch(/^sudo \.\/test\/run\.sh \[--quick\] \[--nightly\] \[FILE\.\.\.\]: podd's tests/u)
  expect(stdout).toMatch(/ PODD_TEST_PACKAGES=W .*\n$/su)
})

it.each<[readonly string[], string]>([
  [['--fast'], 'there is no option --fast'],
  [['test/unit/none.test.ts'], 'there is no test file test/unit/none.test.ts'],
  [
    ['test/soak'],
    'test/soak is in none of test/unit, test/component, test/contract, test/e2e and test/fault',
  ],
  [['--quick', 'test/e2e'], '--quick runs no containerd, which test/e2e needs'],
])('test/run.sh %j says what is wrong, and runs nothing', (args, message) => {
  expect(run(...args)).toMatchObject({
    status: 2,
    stderr: `test/run.sh: ${message}; --help tells more.\n`,
  })
})
