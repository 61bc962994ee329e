import type { SpecResult } from './ginkgo-report.ts'
import { reasonFor } from './reasons.ts'

/** The text of docs/CONFORMANCE.md: what came of Kubernetes' specs, and why those that did not pass did not. */
export function formatConformance(
  results: readonly SpecResult[],
  { release, skip }: { readonly release: string; readonly skip: string },
): string {
  const ofNode = results.filter(({ isNodeConformance }) => isNodeConformance)
  const left = results.filter(({ state }) => state !== 'passed')
  return `# Kubernetes' own tests of a node

<!-- Written by npm run conformance. -->

Kubernetes' own end-to-end specs (\`test/e2e\`, Kubernetes 1.36: the files of \`common/node\`, \`common/storage\` and \`node\`)
run against podd's API as they stand; images of their names are made of Kubernetes' \`agnhost\`, busybox and bash. This was
containerd ${release}.${skip === '' ? '' : ` Specs whose names match \`${skip}\` were left out of this run.`}

| | specs | passed | failed | skipped by themselves |
|---|---|---|---|---|
| [NodeConformance] | ${counts(ofNode)} |
| all | ${counts(results)} |

## Those that did not pass

| spec | what came of it | why |
|---|---|---|
${left.map((spec) => formatRow(spec)).join('\n')}

## All by their files

| file | specs | passed | failed | skipped by themselves |
|---|---|---|---|---|
${[...Map.groupBy(results, ({ file }) => file)]
  .toSorted(([a], [b]) => (a < b ? -1 : 1))
  .map(([file, specs]) => `| \`${file}\` | ${counts(specs)} |`)
  .join('\n')}
`
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
