/**
 * `node test/conformance/write-doc.ts DIR...` writes docs/CONFORMANCE.md from the reports that runs of `npm run
 * conformance` left in `PODD_CONFORMANCE_REPORTS`: those on the containerd of the first, then those on others.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { formatConformance } from './conformance-doc.ts'
import { readFacts, readRuns } from './run-reports.ts'

const byRelease = Map.groupBy(process.argv.slice(2), (directory) => readFacts(directory).release)
const [first, ...others] = [...byRelease.values()].map((directories) => readRuns(directories))
if (first === undefined) throw new Error('write-doc: names no directory of reports')
writeFileSync(join(import.meta.dirname, '../../docs/CONFORMANCE.md'), formatConformance(first, others))
