/**
 * node test/lib/failed-files.ts REPORT: the test files with a failure in it, by vitest's JSON report, one a line.
 * A file that failed on several containerds is told once.
 */
import { readReport } from './vitest-report.ts'

const files = readReport(process.argv[2] ?? '')?.testResults ?? []
for (const name of new Set(files.filter(({ status }) => status === 'failed').map(({ name }) => name)))
  console.log(name)
