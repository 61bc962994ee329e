import { execFileSync } from 'node:child_process'
import { single, spreadOf } from '../figures.ts'
import type { Figure } from '../figures.ts'
import type { SourcesReport } from './sources-side.ts'

const side = new URL('sources-side.ts', import.meta.url).pathname
/** Of the daemon, as bin/podd has them. */
const settings = ['--max-semi-space-size=1', '--no-opt', '--no-maglev']
const mostStartMs = 1000

/** A directory of 500 manifests at start, and one changed manifest beside none, 499 and 1,999 others. */
export function benchSources(): readonly Figure[] {
  return [1, 500, 2000].flatMap((count) => {
    const { read, compared, changed }: SourcesReport = JSON.parse(
      execFileSync(process.execPath, [...settings, side, `${count}`], { encoding: 'utf8' }),
    )
    const limit = count === 500 ? mostStartMs : undefined
    const name = `${count} manifests`
    return [
      single(`${name} read, decoded and validated: CPU`, 'ms', read.cpuMs),
      single(`${name} compared with what runs: CPU`, 'ms', compared.cpuMs),
      single(`${name}, all of that at start: CPU`, 'ms', read.cpuMs + compared.cpuMs, limit),
      single(`${name}, all of that at start: time`, 'ms', read.wallMs + compared.wallMs, limit),
      { name: `one changed of ${name}: CPU`, unit: 'ms', podd: spreadOf(changed.map(({ cpuMs }) => cpuMs)) },
    ]
  })
}
