/**
 * `node test/conformance/write-doc.ts DIR...` writes docs/CONFORMANCE.md from the reports that runs of `npm run
 * conformance` left in `PODD_CONFORMANCE_REPORTS`.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatConformance } from './conformance-doc.ts'
import { readRuns } from './run-reports.ts'

const { runs, results } = readRuns(process.argv.slice(2))
writeFileSync(join(import.meta.dirname, '../../docs/CONFORMANCE.md'), formatConformance(runs, results))
