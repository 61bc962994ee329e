import type { SpecResult } from './ginkgo-report.ts'
import { reasonFor } from './reasons.ts'
import type { RunFacts } from './run-reports.ts'

/** Runs on one containerd, and the results of their specs. */
export interface ReleaseResults {
  readonly runs: readonly RunFacts[]
  readonly results: readonly SpecResult[]
}

/**
 * The text of docs/CONFORMANCE.md: the results of Kubernetes' specs, and the reasons of those that did not pass.
 * @param others runs of some of the specs on other releases of containerd
 */
export function formatConformance(
  { runs, results: unsorted }: ReleaseResults,
  others: readonly ReleaseResults[] = [],
): string {
  const results = sorted(unsorted)
  const ofNode = results.filter(({ isNodeConformance }) => isNodeConformance)
  const left = results.filter(({ state }) => state !== 'passed')
  return `# Kubernetes' own tests of a node

<!-- Written by npm run conformance. -->

Kubernetes' own end-to-end specs (\`test/e2e\`, Kubernetes 1.36: the files of \`common/node\`, \`common/storage\` and \`node\`)
run unchanged against podd's API, by a client with a token, on images of the same names that are built of Kubernetes'
\`agnhost\`, busybox and bash.
${formatRuns(runs)}

| | specs | passed | failed | skipped |
|---|---|---|---|---|
| [NodeConformance] | ${counts(ofNode)} |
| all | ${counts(results)} |

## Specs that did not pass

${formatLeft(left)}
${others.map((other) => formatOther(other)).join('')}
## All specs by file

| file | specs | passed | failed | skipped |
|---|---|---|---|---|
${[...Map.groupBy(results, ({ file }) => file)]
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .map(([file, specs]) => `| \`${file}\` | ${counts(specs)} |`)
  .join('\n')}
`
}

function sorted(results: readonly SpecResult[]): readonly SpecResult[] {
  return results.toSorted((a, b) => `${a.file} ${a.name}`.localeCompare(`${b.file} ${b.name}`, 'en'))
}

function formatOther({ runs, results }: ReleaseResults): string {
  const left = sorted(results).filter(({ state }) => state !== 'passed')
  const ofNode = results.filter(({ isNodeConformance }) => isNodeConformance)
  return `
## On containerd ${releasesOf(runs)}

| | specs | passed | failed | skipped |
|---|---|---|---|---|
| [NodeConformance] | ${counts(ofNode)} |
| all that were run | ${counts(results)} |

${formatLeft(left)}
`
}

function releasesOf(runs: readonly RunFacts[]): string {
  return [...new Set(runs.map(({ release }) => release))].join(' and ')
}

function formatRuns(runs: readonly RunFacts[]): string {
  const releases = releasesOf(runs)
  // What one run left out, another may have had.
  const isWhole = runs.some(({ skip }) => skip === '')
  const skips = isWhole ? [] : [...new Set(runs.map(({ skip }) => skip))]
  const left = skips.map((skip) => ` Specs whose names match \`${skip}\` were left out.`).join('')
  if (runs.length === 1) return `The results are of one run on containerd ${releases}.${left}`
  return `The results are of ${runs.length} runs on containerd ${releases}; where several ran a spec, the last one counts.${left}`
}

function counts(specs: readonly SpecResult[]): string {
  const count = (state: SpecResult['state']): number => specs.filter((spec) => spec.state === state).length
  return [specs.length, count('passed'), count('failed'), count('skipped')].join(' | ')
}

/** One row for each reason: `reasons.ts` has the patterns of all names. */
function formatLeft(left: readonly SpecResult[]): string {
  const groups = Map.groupBy(left, (spec) => `${spec.state} | ${whyOf(spec)}`)
  const rows = [...groups].map(([head, specs]) => {
    const [first] = specs
    const name = (first?.name ?? '').replace(/^\[sig-node\] /u, '')
    return [specs.length, head, name].join(' | ')
  })
  const head = '| specs | result | why | such as |\n|---|---|---|---|'
  return [head, ...rows.map((row) => `| ${row} |`)].join('\n')
}

function whyOf(spec: SpecResult): string {
  const why = reasonFor(spec) ?? (spec.state === 'skipped' ? spec.message : '')
  return why === '' ? '**not explained**' : why.replaceAll('|', String.raw`\|`)
}
