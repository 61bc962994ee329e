/**
 * node test/lib/summary.ts DIR: adds up a test run, and says what failed and what was skipped.
 *
 * DIR/runs has a line for each vitest run: its exit status, its JSON report, its name. DIR/checks has a line
 * for each check apart from vitest: `passed NAME`, `failed NAME` or `skipped COUNT NAME`; a name may say why.
 * The last line printed is `N passed, N failed, N skipped`. Exit status 1 if anything failed; a vitest run
 * that crashed, ran no test, or failed without a failed test counts as one failure.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

interface VitestReport {
  readonly testResults: readonly {
    readonly name: string
    readonly status: string
    readonly message: string
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[]
  }[]
}

interface Tally {
  passed: number
  failed: number
  skipped: number
}

/** More skipped tests of one run than this are told by their number. */
const fewSkips = 20

const folder = process.argv[2] ?? '.'
const total: Tally = { passed: 0, failed: 0, skipped: 0 }
const failures: string[] = []
const skips: string[] = []

function linesOf(file: string): string[] {
  const path = join(folder, file)
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
}

function readReport(path: string): VitestReport | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, path), 'utf8')) as VitestReport
  } catch {
    return undefined
  }
}

function addRun(name: string, status: number, report: VitestReport | undefined): Tally {
  const tally: Tally = { passed: 0, failed: 0, skipped: 0 }
  const names: string[] = []
  for (const file of report?.testResults ?? []) {
    for (const { fullName, status } of file.assertionResults) {
      if (status === 'passed') tally.passed++
      else if (status === 'failed') {
        tally.failed++
        failures.push(`${name}: ${fullName}`)
      } else {
        tally.skipped++
        names.push(`${name}: ${fullName}`)
      }
    }
    if (file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed')) {
      tally.failed++
      failures.push(`${name}: ${file.name}: ${file.message.split('\n')[0] ?? ''}`)
    }
  }
  if (names.length > fewSkips) skips.push(`${name} (${names.length} tests)`)
  else skips.push(...names)
  const ran = tally.passed + tally.failed + tally.skipped
  if (tally.failed === 0 && (report === undefined || ran === 0 || status !== 0)) {
    tally.failed++
    failures.push(`${name}: ${ran === 0 ? 'ran no test' : 'failed outside of its tests'} (status ${status})`)
  }
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

for (const line of linesOf('runs')) {
  const [status = '1', report = '', ...name] = line.split(' ')
  const tally = addRun(name.join(' '), Number(status), readReport(report))
  addToTotal(tally)
  console.log(`${name.join(' ')}: ${tallyLine(tally)}`)
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

for (const skip of skips) console.log(`skipped: ${skip}`)
for (const failure of failures) console.log(`failed: ${failure}`)
console.log(tallyLine(total))
process.exitCode = total.failed > 0 ? 1 : 0
