import type { SpecResult } from './ginkgo-report.ts'
import { reasonFor } from './reasons.ts'
import type { RunFacts } from './run-reports.ts'

/** The text of docs/CONFORMANCE.md: what came of Kubernetes' specs, and why those that did not pass did not. */
export function formatConformance(runs: readonly RunFacts[], unsorted: readonly SpecResult[]): string {
  const results = unsorted.toSorted((a, b) =>
    `${a.file} ${a.name}`.localeCompare(`${b.file} ${b.name}`, 'en'),
  )
  const ofNode = results.filter(({ isNodeConformance }) => isNodeConformance)
  const left = results.filter(({ state }) => state !== 'passed')
  return `# Kubernetes' own tests of a node

<!-- Written by npm run conformance. -->

Kubernetes' own end-to-end specs (\`test/e2e\`, Kubernetes 1.36: the files of \`common/node\`, \`common/storage\` and \`node\`)
run against podd's API as they stand; images of their names are made of Kubernetes' \`agnhost\`, busybox and bash.
${formatRuns(runs)}

| | specs | passed | failed | skipped |
|---|---|---|---|---|
| [NodeConformance] | ${counts(ofNode)} |
| all | ${counts(results)} |

## Those that did not pass

| spec | what came of it | why |
|---|---|---|
${left.map((spec) => formatRow(spec)).join('\n')}

## All by their files

| file | specs | passed | failed | skipped |
|---|---|---|---|---|
${[...Map.groupBy(results, ({ file }) => file)]
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .map(([file, specs]) => `| \`${file}\` | ${counts(specs)} |`)
  .join('\n')}
`
}

function formatRuns(runs: readonly RunFacts[]): string {
  const releases = [...new Set(runs.map(({ release }) => release))].join(' and ')
  const skips = [...new Set(runs.map(({ skip }) => skip))].filter((skip) => skip !== '')
  const left = skips.map((skip) => ` Specs whose names match \`${skip}\` were left out.`).join('')
  if (runs.length === 1) return `This was one run on containerd ${releases}.${left}`
  return `These were ${runs.length} runs on containerd ${releases}; the last that had a spec counts.${left}`
}

function counts(specs: readonly SpecResult[]): string {
  const count = (state: SpecResult['state']): number => specs.filter((spec) => spec.state === state).length
  return [specs.length, count('passed'), count('failed'), count('skipped')].join(' | ')
}

function formatRow(spec: SpecResult): string {
  const why = reasonFor(spec) ?? (spec.state === 'skipped' ? spec.message : '')
  const cells = [spec.name, spec.state, why === '' ? '**not explained**' : why]
  return `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`
}
