/**
 * node test/lib/order-files.ts REPORT...: writes what the test files took in the runs of these JSON reports of vitest to
 * test/lib/file-seconds.json, by which the next run begins with what takes longest. Files that took less than three
 * seconds are left out: their order does not matter. One that ran on several containerds counts by its longest run.
 */
import { writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { readReport } from './vitest-report.ts'

const fewestSeconds = 3
const root = join(import.meta.dirname, '../..')
const seconds = new Map<string, number>()
for (const path of process.argv.slice(2)) {
  const report = readReport(path)
  if (report === undefined) throw new Error(`${path} is no JSON report of vitest`)
  for (const { name, startTime, endTime } of report.testResults) {
    const file = relative(root, name)
    seconds.set(file, Math.max(seconds.get(file) ?? 0, Math.round((endTime - startTime) / 1000)))
  }
}
const long = [...seconds].filter(([, took]) => took >= fewestSeconds).toSorted(([, a], [, b]) => b - a)
writeFileSync(
  join(import.meta.dirname, 'file-seconds.json'),
  `${JSON.stringify(Object.fromEntries(long), null, 2)}\n`,
)
console.log(`${long.length} files of ${seconds.size} took ${fewestSeconds} s or more`)
