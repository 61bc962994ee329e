/** The points of a chart: moments, each with a figure; null where there was none. */
export interface ChartFacts {
  /** Wall milliseconds, oldest first. */
  readonly times: readonly number[]
  readonly values: readonly (number | null)[]
  /** The moments at the left and the right edge. */
  readonly fromMs: number
  readonly untilMs: number
  /** The figure at the top edge; undefined: the largest one. */
  readonly top: number | undefined
}

/** Paths of SVG over a field of `width` by `height`. */
export interface ChartShape {
  readonly line: string
  readonly area: string
  readonly top: number
  /** Undefined where there is no figure. */
  readonly last: number | undefined
  readonly most: number | undefined
}

/** The figures as lines from point to point, interrupted where one is missing. */
export function computeChartShape(facts: ChartFacts, width: number, height: number): ChartShape {
  const { times, values, fromMs, untilMs } = facts
  const known = values.filter((value) => value !== null)
  const most = known.length === 0 ? undefined : Math.max(...known)
  const top = facts.top ?? Math.max(most ?? 0, Number.MIN_VALUE)
  const runs: (readonly [x: number, y: number])[][] = []
  let run: [number, number][] | undefined
  for (const [at, value] of values.entries()) {
    const time = times[at]
    if (value === null || time === undefined || time < fromMs) {
      run = undefined
      continue
    }
    if (run === undefined) runs.push((run = []))
    const x = ((time - fromMs) / Math.max(1, untilMs - fromMs)) * width
    run.push([round(Math.min(width, x)), round(height - Math.min(1, value / top) * height)])
  }
  const lines = runs.map((points) => `M${points.map(([x, y]) => `${x} ${y}`).join('L')}`)
  const areas = runs.map(
    (points, at) => `${lines[at]}L${points.at(-1)?.[0]} ${height}L${points[0]?.[0]} ${height}Z`,
  )
  return { line: lines.join(''), area: areas.join(''), top, last: known.at(-1), most }
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}

/** CPU as people read it: `250m`, `1.5` CPUs. */
export function formatCpu(millis: number): string {
  if (millis < 10) return `${Math.round(millis * 10) / 10}m`
  return millis < 1000 ? `${Math.round(millis)}m` : (millis / 1000).toFixed(2)
}
