import { execFileSync } from 'node:child_process'
import { single, spreadOf } from '../figures.ts'
import type { Figure } from '../figures.ts'
import type { SourcesReport } from './sources-side.ts'

const side = new URL('sources-side.ts', import.meta.url).pathname
/** Of the daemon, as bin/podd has them. */
const settings = ['--max-semi-space-size=1', '--no-opt', '--no-maglev', '--memory-saver-mode']

/** How much more a change may cost beside four times as many others. */
const mostGrowth = 1.2

/** A directory of 500 manifests at start, and one changed manifest beside none, 499, 1,999 and 3,999 others. */
export function benchSources(): readonly Figure[] {
  const reports = [1, 500, 2000, 4000].map((count) => ({ count, report: measure(count) }))
  const changedCpu = (count: number): Figure['podd'] => {
    const found = reports.find((each) => each.count === count)
    return spreadOf((found?.report.changed ?? []).map(({ cpuMs }) => cpuMs))
  }
  return [
    ...reports.flatMap(({ count, report: { read, compared } }) => {
      const name = `${count} manifests`
      return [
        single(`${name} read, decoded and validated: CPU`, 'ms', read.cpuMs),
        single(`${name} compared with what runs: CPU`, 'ms', compared.cpuMs),
        single(`${name}, all of that at start: CPU`, 'ms', read.cpuMs + compared.cpuMs),
        single(`${name}, all of that at start: time`, 'ms', read.wallMs + compared.wallMs),
        { name: `one changed of ${name}: CPU`, unit: 'ms' as const, podd: changedCpu(count) },
      ]
    }),
    {
      name: 'one changed of 2000 manifests, beside one of 500: CPU',
      unit: 'ms',
      podd: changedCpu(2000),
      bare: changedCpu(500),
      atMost: mostGrowth * changedCpu(500).p50,
    },
  ]
}

function measure(count: number): SourcesReport {
  const args = [...settings, side, `${count}`]
  const report: SourcesReport = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }))
  return report
}
