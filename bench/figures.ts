import { median, percentile } from './podd-under-test.ts'

export interface Spread {
  readonly p10: number
  readonly p50: number
  readonly p90: number
  readonly p99: number
  readonly count: number
}

/** One line of the report. */
export interface Figure {
  readonly name: string
  readonly unit: 'ms' | 's' | '% of a core' | 'MiB' | 'KiB' | 'syncs' | 'hosts' | '/s'
  readonly podd: Spread
  /** The same by the bare CRI calls, or by what else is beside it. */
  readonly bare?: Spread
  /** What podd's figure is to be at most, in the same unit; a factor of the bare one's, or an addition to it. */
  readonly atMost?: number
  /** The figure that is held against it; the median where nothing is said. */
  readonly at?: 'p50' | 'p99'
}

export function spreadOf(values: readonly number[]): Spread {
  const at = (share: number): number => percentile(values, share)
  return { p10: at(0.1), p50: median(values), p90: at(0.9), p99: at(0.99), count: values.length }
}

/** Two lines of pairs that were measured in turn: by the median and by the slowest in a hundred. */
export function pairFigures(
  name: string,
  { podd, bare }: { readonly podd: readonly number[]; readonly bare: readonly number[] },
  limits: { readonly p50: (bareMs: number) => number; readonly p99?: (bareMs: number) => number },
): readonly Figure[] {
  const sides = { podd: spreadOf(podd), bare: spreadOf(bare) }
  const first: Figure = { name, unit: 'ms', ...sides, atMost: limits.p50(sides.bare.p50), at: 'p50' }
  if (limits.p99 === undefined) return [first]
  return [
    first,
    { name: `${name}, p99`, unit: 'ms', ...sides, atMost: limits.p99(sides.bare.p50), at: 'p99' },
  ]
}

/** A figure that was measured once. */
export function single(name: string, unit: Figure['unit'], podd: number, atMost?: number): Figure {
  return { name, unit, podd: spreadOf([podd]), ...(atMost === undefined ? {} : { atMost }) }
}

/** The report as a table for people. */
export function formatFigures(figures: readonly Figure[]): string {
  const rows = figures.map((figure) => {
    const { name, unit, podd, bare, atMost } = figure
    const at = figure.at ?? 'p50'
    const show = (spread: Spread): string =>
      `${round(spread[at])} ${unit}${spread.count > 1 ? ` (${round(spread.p10)}-${round(spread.p90)})` : ''}`
    const beside = bare === undefined ? '' : show(bare)
    const factor = bare === undefined ? '' : `, ${round(podd[at] / bare[at])}x`
    const target = atMost === undefined ? '' : `${round(atMost)} ${unit}`
    return [name, beside, `${show(podd)}${factor}`, target, verdict(podd[at], atMost)]
  })
  const table = [['figure', 'bare', 'podd', 'target', 'holds?'], ...rows]
  const widths = [0, 1, 2, 3].map((column) => Math.max(...table.map((row) => row[column]?.length ?? 0)))
  return table
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function verdict(value: number, atMost: number | undefined): string {
  if (atMost === undefined) return ''
  return value <= atMost ? 'yes' : `no, ${round(value - atMost)} above`
}

function round(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2)
}
