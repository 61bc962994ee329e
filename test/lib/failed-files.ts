/** node test/lib/failed-files.ts REPORT: the test files with a failure in it, by vitest's JSON report, one a line. */
import { existsSync, readFileSync } from 'node:fs'

interface Report {
  readonly testResults: readonly { readonly name: string; readonly status: string }[]
}

const path = process.argv[2] ?? ''
const report = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Report) : { testResults: [] }
for (const { name, status } of report.testResults) if (status === 'failed') console.log(name)
