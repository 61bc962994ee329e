import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'

const program = new URL('../lib/summary.ts', import.meta.url).pathname
const directories: string[] = []
afterEach(() => directories.splice(0).forEach((directory) => rmSync(directory, { recursive: true })))

function summarize(files: Readonly<Record<string, string | object>>) {
  const directory = mkdtempSync(join(tmpdir(), 'podd-summary-'))
  directories.push(directory)
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(directory, name), typeof content === 'string' ? content : JSON.stringify(content))
  const { status, stdout } = spawnSync(process.execPath, [program, directory], {
    encoding: 'utf8',
    env: { ...process.env, PODD_TEST_NIGHTLY: '' },
  })
  return { status, lines: stdout.trimEnd().split('\n') }
}

/** A report of one test file: its tests and how they ended. */
function report(
  tests: Readonly<Record<string, string>>,
  file = 'passed',
  name = 'a.test.ts',
  tags: readonly string[] = [],
) {
  const assertionResults = Object.entries(tests).map(([fullName, status]) => ({ fullName, status, tags }))
  const isBad = file === 'failed' || Object.values(tests).includes('failed')
  return {
    testResults: [
      {
        name,
        status: isBad ? 'failed' : 'passed',
        message: isBad ? 'why\nmore' : '',
        assertionResults,
      },
    ],
  }
}

describe('the summary of a test run', () => {
  it('adds up runs and checks, and names what failed and was skipped', () => {
    const { status, lines } = summarize({
      runs: '0 one.json first\n1 two.json second run\n',
      checks: 'passed types\nfailed lint\nskipped 3 suites: no root\n',
      'one.json': report({ a: 'passed', b: 'skipped' }),
      'two.json': report({ c: 'passed', d: 'failed' }),
    })
    expect(lines).toEqual([
      'first: 1 passed, 0 failed, 1 skipped',
      'second run: 1 passed, 1 failed, 0 skipped',
      'skipped: first: b',
      'skipped: suites: no root (3 tests)',
      'failed: second run: d',
      'failed: lint',
      '3 passed, 2 failed, 4 skipped',
    ])
    expect(status).toBe(1)
  })

  it.each<[string, Parameters<typeof summarize>[0], string]>([
    ['has no report', { runs: '1 gone.json lost\n' }, 'failed: lost: ran no test (status 1)'],
    [
      'ran no test',
      { runs: '0 r.json empty\n', 'r.json': report({}) },
      'failed: empty: ran no test (status 0)',
    ],
    [
      'failed outside of its tests',
      { runs: '1 r.json odd\n', 'r.json': report({ a: 'passed' }) },
      'failed: odd: failed outside of its tests (status 1)',
    ],
    [
      'has a file that failed without a failed test',
      { runs: '1 r.json hooks\n', 'r.json': report({ a: 'passed' }, 'failed') },
      'failed: hooks: a.test.ts: why',
    ],
    [
      'failed twice',
      {
        runs: '1 r.json twice\n1 second-r.json\n',
        'r.json': report({ a: 'failed' }),
        'second-r.json': report({ a: 'failed' }),
      },
      'failed: twice: a',
    ],
    [
      'failed elsewhere on its second try',
      {
        runs: '1 r.json twice\n1 second-r.json\n',
        'r.json': report({ a: 'failed', b: 'passed' }),
        'second-r.json': report({ a: 'passed', b: 'failed' }),
      },
      'failed: twice: a',
    ],
    [
      'reached its limit of time, whatever passed until then',
      { runs: '124 r.json late\n', 'r.json': report({ a: 'passed' }) },
      'failed: late: was cut off (status 124)',
    ],
    [
      'was killed after a test had failed',
      { runs: '137 r.json late\n', 'r.json': report({ a: 'failed' }) },
      'failed: late: was cut off (status 137)',
    ],
    [
      'failed outside of its tests on the second try',
      {
        runs: '1 r.json odd\n1 second-r.json\n',
        'r.json': report({ a: 'failed' }),
        'second-r.json': report({ a: 'passed' }),
      },
      'failed: odd: failed outside of its tests on the second try (status 1)',
    ],
    [
      'was cut off on the second try',
      {
        runs: '1 r.json odd\n124 second-r.json\n',
        'r.json': report({ a: 'failed' }),
        'second-r.json': report({ a: 'passed' }),
      },
      'failed: odd: failed outside of its tests on the second try (status 124)',
    ],
  ])('counts a run as failed that %s', (_, files, line) => {
    const { status, lines } = summarize(files)
    expect(lines).toContain(line)
    expect(status).toBe(1)
  })

  it('tells a file that ran on two containerds apart by its tests', () => {
    const on = (version: string, status: string) => report({ [`a on ${version}`]: status }).testResults
    const { status, lines } = summarize({
      runs: '1 r.json run\n1 second-r.json\n',
      'r.json': { testResults: [...on('1.6', 'failed'), ...on('2.1', 'failed')] },
      'second-r.json': { testResults: [...on('1.6', 'passed'), ...on('2.1', 'failed')] },
    })
    expect(lines).toEqual([
      'run: 1 passed, 1 failed, 0 skipped',
      'passed on the second try only: run: a on 1.6',
      'failed: run: a on 2.1',
      '1 passed, 1 failed, 0 skipped',
    ])
    expect(status).toBe(1)
  })

  it('counts an error that no test was to blame for, although the failed tests passed then', () => {
    const { status, lines } = summarize({
      runs: '1 r.json run\n0 second-r.json\n',
      'r.json': report({ a: 'failed' }),
      'second-r.json': report({ a: 'passed' }),
      unhandled: 'read ECONNRESET\n',
    })
    expect(lines.slice(-2)).toEqual([
      'failed: outside of the tests: read ECONNRESET',
      '1 passed, 1 failed, 0 skipped',
    ])
    expect(status).toBe(1)
  })

  it('takes a file that told no tests as failed again where any of its second tries failed', () => {
    const { status, lines } = summarize({
      runs: '1 r.json run\n1 second-r.json\n',
      'r.json': {
        testResults: [...report({ a: 'passed' }).testResults, ...report({}, 'failed').testResults],
      },
      'second-r.json': {
        testResults: [...report({ a: 'passed' }).testResults, ...report({}, 'failed').testResults],
      },
    })
    expect(lines).toContain('failed: run: a.test.ts: why')
    expect(status).toBe(1)
  })

  it.each<[string, object]>([
    ['a', report({ a: 'failed', b: 'passed' })],
    ['a.test.ts: why', report({ a: 'passed', b: 'passed' }, 'failed')],
  ])('names what passed on its second try only (%s)', (name, first) => {
    const { status, lines } = summarize({
      runs: '1 r.json run\n0 second-r.json\n',
      'r.json': first,
      'second-r.json': report({ a: 'passed', b: 'passed' }),
    })
    expect(lines).toEqual([
      'run: 2 passed, 0 failed, 0 skipped',
      `passed on the second try only: run: ${name}`,
      '2 passed, 0 failed, 0 skipped',
    ])
    expect(status).toBe(0)
  })

  const files = (count: number, status: string) => ({
    testResults: Array.from({ length: count }, (_, at) => `${at}.test.ts`).flatMap(
      (name) => report({ [`of ${name}`]: status }, status, name).testResults,
    ),
  })

  it.each([
    { count: 2, failures: [] },
    { count: 3, failures: ['failed: 3 test files passed on the second try only, of which 2 are let pass'] },
  ])('lets two files at most pass on their second try: $count', ({ count, failures }) => {
    const { status, lines } = summarize({
      runs: '1 r.json run\n0 second-r.json\n',
      'r.json': files(count, 'failed'),
      'second-r.json': files(count, 'passed'),
    })
    expect(lines.filter((line) => line.startsWith('failed: '))).toEqual(failures)
    expect(status).toBe(failures.length)
  })

  it('counts what only the nightly run does apart from what was skipped', () => {
    const { testResults } = report({ a: 'skipped', b: 'skipped' }, 'passed', 'b.test.ts', ['nightly'])
    const { lines } = summarize({
      runs: '0 r.json run\n',
      'r.json': { testResults: [...report({ c: 'passed', d: 'skipped' }).testResults, ...testResults] },
    })
    expect(lines).toEqual([
      'run: 1 passed, 0 failed, 1 skipped',
      '2 tests run nightly only (test/run.sh --nightly)',
      'skipped: run: d',
      '1 passed, 0 failed, 1 skipped',
    ])
  })
})
