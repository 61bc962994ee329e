import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readGinkgoReport } from './ginkgo-report.ts'
import type { SpecResult } from './ginkgo-report.ts'

/** What a run was. */
export interface RunFacts {
  /** Of containerd. */
  readonly release: string
  /** A regular expression of the specs that were left out; empty where none were. */
  readonly skip: string
}

const factsFile = 'run.json'
const listFile = 'list.json'

/** The rooms of the suite that are about a node. */
export const isOfNode = ({ file }: SpecResult): boolean =>
  /^(common\/node|common\/storage|node)\//u.test(file)

/** Notes beside the reports of a run what it was. */
export function writeRunFacts(directory: string, facts: RunFacts): void {
  writeFileSync(join(directory, factsFile), JSON.stringify(facts))
}

/**
 * What came of the specs of the first of some runs that left their reports: of a spec that more than one ran, in the last
 * of them. One that none reached is skipped. Throws where a directory has no run.
 */
export function readRuns(directories: readonly string[]): {
  readonly runs: readonly RunFacts[]
  readonly results: readonly SpecResult[]
} {
  const results = new Map<string, SpecResult>()
  const add = (specs: readonly SpecResult[]): void => {
    for (const spec of specs) if (results.has(keyOf(spec))) results.set(keyOf(spec), spec)
  }
  const [first = ''] = directories
  const listed = readGinkgoReport(join(first, listFile))
  for (const spec of listed.filter((each) => isOfNode(each) && each.state !== 'skipped'))
    results.set(keyOf(spec), { ...spec, state: 'skipped', message: 'not reached in this run' })
  for (const directory of directories) {
    const reports = readdirSync(directory).filter((name) => /\.go\..*\.json$/u.test(name))
    // What a report has of specs that it wasn't to run has no reason.
    for (const report of reports)
      add(
        readGinkgoReport(join(directory, report)).filter(
          ({ state, message }) => state !== 'skipped' || message !== '',
        ),
      )
  }
  return { runs: directories.map((directory) => readFacts(directory)), results: [...results.values()] }
}

const keyOf = ({ file, name }: SpecResult): string => `${file} ${name}`

/** Of the run that left its reports in a directory. */
export function readFacts(directory: string): RunFacts {
  return JSON.parse(readFileSync(join(directory, factsFile), 'utf8'))
}
