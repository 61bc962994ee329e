/**
 * node test/lib/summary.ts DIR: adds up a test run, and says what failed and what was skipped.
 *
 * DIR/runs has a line for each vitest run: its exit status, its JSON report, its name. DIR/checks has a line
 * for each check apart from vitest: `passed NAME`, `failed NAME` or `skipped COUNT NAME`; a name may say why.
 * Where test files that had failed were run once more, by themselves, DIR/runs has a line for `second-REPORT` too, which
 * tells how that went: what passed then has passed, and is named. More than two such files are a failure of their own.
 * DIR/unhandled has a line for each error that no test was to blame for; each is a failure.
 * Tests with the tag `nightly` that this run left to the nightly one are counted apart from those that were skipped.
 * The last line printed is `N passed, N failed, N skipped`. Exit status 1 if anything failed. A vitest run counts as one
 * failure more where it crashed, ran no test, ended otherwise than by its tests (a limit of time, a signal), or failed
 * without a failed test.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isNightly } from '../support/nightly.ts'
import { readReport } from './vitest-report.ts'
import type { TestFile, VitestReport } from './vitest-report.ts'

interface Tally {
  passed: number
  failed: number
  skipped: number
}

/** More skipped tests of one run than this are told by their number. */
const fewSkips = 20
/** More files that pass on their second try than a busy host explains. */
const maxSecondTries = 2
/** Of vitest: all went well, and tests failed. Any other is the end of a run that was cut off. */
const usualStatuses: readonly number[] = [0, 1]

const directory = process.argv[2] ?? '.'
const total: Tally = { passed: 0, failed: 0, skipped: 0 }
const failures: string[] = []
const skips: string[] = []
const secondTries: string[] = []
let secondTryFiles = 0
let nightly = 0

function linesOf(file: string): string[] {
  const path = join(directory, file)
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}

/** What came of a file in the end: its second try counts where that had no failure at all. */
function lastTry(name: string, file: TestFile, second: VitestReport | undefined): TestFile {
  const tries = second?.testResults.filter((other) => isSame(other, file)) ?? []
  const [again] = tries
  if (file.status !== 'failed' || !again || tries.some(({ status }) => status !== 'passed')) return file
  secondTryFiles++
  const failed = file.assertionResults.filter(({ status }) => status === 'failed')
  if (failed.length === 0) secondTries.push(`${name}: ${file.name}: ${firstLine(file.message)}`)
  for (const { fullName } of failed) secondTries.push(`${name}: ${fullName}`)
  return again
}

/** A file runs once for each containerd, which its tests' names mostly tell. One that told no tests may be any of these. */
function isSame(again: TestFile, file: TestFile): boolean {
  if (again.name !== file.name) return false
  const names = new Set(again.assertionResults.map(({ fullName }) => fullName))
  return file.assertionResults.every(({ fullName }) => names.has(fullName))
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? ''
}

interface Run {
  readonly name: string
  readonly status: number
  readonly report: VitestReport | undefined
  /** Undefined where nothing was run once more. */
  readonly second: SecondRun | undefined
}

interface SecondRun {
  readonly status: number
  readonly report: VitestReport | undefined
}

/** Whether it ended by itself, and failed only where a test file did. */
function isWhole({ status, report }: SecondRun): boolean {
  const hasFailed = report?.testResults.some((file) => file.status === 'failed')
  return usualStatuses.includes(status) && (status === 0 || hasFailed === true)
}

function addRun({ name, status, report, second }: Run): Tally {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 }
  const names: string[] = []
  const first = report?.testResults ?? []
  const files = first.map((file) => lastTry(name, file, second?.report))
  const isMended = files.some((file, at) => file !== first[at])
  for (const file of files) {
    for (const { fullName, status, tags = [] } of file.assertionResults) {
      if (status === 'passed') tally.passed++
      else if (status === 'failed') {
        tally.failed++
        failures.push(`${name}: ${fullName}`)
      } else if (tags.includes('nightly') && !isNightly) nightly++
      else {
        tally.skipped++
        names.push(`${name}: ${fullName}`)
      }
    }
    if (file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed')) {
      tally.failed++
      failures.push(`${name}: ${file.name}: ${firstLine(file.message)}`)
    }
  }
  if (names.length > fewSkips) skips.push(`${name} (${names.length} tests)`)
  else skips.push(...names)
  const ran = tally.passed + tally.failed + tally.skipped
  const fail = (why: string, ended: number): void => {
    tally.failed++
    failures.push(`${name}: ${why} (status ${ended})`)
  }
  if (!usualStatuses.includes(status)) fail('was cut off', status)
  else if (tally.failed === 0 && (report === undefined || ran === 0)) fail('ran no test', status)
  else if (tally.failed === 0 && status !== 0 && !isMended) fail('failed outside of its tests', status)
  if (second !== undefined && !isWhole(second))
    fail('failed outside of its tests on the second try', second.status)
  return tally
}

function addToTotal(tally: Tally): void {
  total.passed += tally.passed
  total.failed += tally.failed
  total.skipped += tally.skipped
}

function tallyLine({ passed, failed, skipped }: Tally): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`
}

const runs = linesOf('runs').map((line) => {
  const [status = '1', file = '', ...name] = line.split(' ')
  return { status: Number(status), file, report: readReport(join(directory, file)), name: name.join(' ') }
})
for (const { file, ...run } of runs.filter((each) => !each.file.startsWith('second-'))) {
  const tally = addRun({ ...run, second: runs.find((each) => each.file === `second-${file}`) })
  addToTotal(tally)
  console.log(`${run.name}: ${tallyLine(tally)}`)
}
if (secondTryFiles > maxSecondTries) {
  total.failed++
  failures.push(
    `${secondTryFiles} test files passed on the second try only, of which ${maxSecondTries} are let pass`,
  )
}

for (const message of linesOf('unhandled')) {
  total.failed++
  failures.push(`outside of the tests: ${message}`)
}

for (const line of linesOf('checks')) {
  const [verdict, first = '', ...rest] = line.split(' ')
  const name = [first, ...rest].join(' ')
  if (verdict === 'passed') total.passed++
  else if (verdict === 'skipped') {
    total.skipped += Number(first)
    skips.push(`${rest.join(' ')} (${first} tests)`)
  } else {
    total.failed++
    failures.push(name)
  }
}

if (nightly > 0) console.log(`${nightly} tests run nightly only (test/run.sh --nightly)`)
for (const name of secondTries) console.log(`passed on the second try only: ${name}`)
for (const skip of skips) console.log(`skipped: ${skip}`)
for (const failure of failures) console.log(`failed: ${failure}`)
console.log(tallyLine(total))
process.exitCode = total.failed > 0 ? 1 : 0
