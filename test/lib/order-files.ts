/**
 * node test/lib/order-files.ts REPORT...: writes what the test files took in the runs of these JSON reports of vitest to
 * test/lib/file-seconds.json, by which the next run begins with what takes longest. Files that took less than three
 * seconds are left out: their order does not matter. One that ran on several containerds counts by its longest run; one
 * whose tests were all left to the nightly run keeps what it took there.
 */
import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileSeconds } from './slow-suites.ts'
import { readReport } from './vitest-report.ts'

const fewestSeconds = 3
const root = join(import.meta.dirname, '../..')
const seconds = new Map<string, number>()
for (const path of process.argv.slice(2)) {
  const report = readReport(path)
  if (report === undefined) throw new Error(`${path} is no JSON report of vitest`)
  for (const { name, startTime, endTime, assertionResults } of report.testResults) {
    const file = relative(root, name)
    const ran = assertionResults.some(({ status }) => status === 'passed' || status === 'failed')
    const took = ran ? Math.round((endTime - startTime) / 1000) : (fileSeconds[file] ?? 0)
    seconds.set(file, Math.max(seconds.get(file) ?? 0, took))
  }
}
const long = [...seconds].filter(([, took]) => took >= fewestSeconds).toSorted(([, a], [, b]) => b - a)
writeFileSync(
  join(import.meta.dirname, 'file-seconds.json'),
  `${JSON.stringify(Object.fromEntries(long), null, 2)}\n`,
)
console.log(`${long.length} files of ${seconds.size} took ${fewestSeconds} s or more`)
