/** node test/lib/failed-files.ts REPORT: the test files with a failure in it, by vitest's JSON report, one a line. */
import { readReport } from './vitest-report.ts'

for (const { name, status } of readReport(process.argv[2] ?? '')?.testResults ?? [])
  if (status === 'failed') console.log(name)
