import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

const run = (...args: readonly string[]) =>
  spawnSync('bash', [new URL('../run.sh', import.meta.url).pathname, ...args], { encoding: 'utf8' })

it.each(['--help', '-h'])('test/run.sh %s prints what it does, and runs nothing', (flag) => {
  const { status, stdout } = run(flag)
  expect(status).toBe(0)
  expect(stdout).toMatch(/^sudo \.\/test\/run\.sh: every test of podd/u)
  expect(stdout).toMatch(/PODD_TEST_CACHE=DIR .*\n$/u)
})

it('test/run.sh refuses any other argument', () => {
  expect(run('unit')).toMatchObject({
    status: 2,
    stderr: 'test/run.sh: takes no argument unit; it runs every test. --help tells more.\n',
  })
})
