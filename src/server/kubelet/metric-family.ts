/** A metric with all its series. */
export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly series: readonly Series[]
}

export interface Series {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** One series without labels. */
export function single(value: number): readonly Series[] {
  return [{ labels: {}, value }]
}

/** Series with unknown values are left out. */
export function seriesOf(
  entries: readonly {
    readonly labels: Readonly<Record<string, string>>
    readonly value: number | undefined
  }[],
): readonly Series[] {
  return entries.flatMap(({ labels, value }) => (value === undefined ? [] : [{ labels, value }]))
}

export function secondsOf(nanoSeconds: number | undefined): number | undefined {
  return nanoSeconds === undefined ? undefined : nanoSeconds / 1e9
}
