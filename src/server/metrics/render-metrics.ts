import { systemClock, TurnPace } from '../../base/clock.ts'
import type { HistogramCounts } from '../../base/histogram.ts'

/**
 * The text format of Prometheus. Families without series are left out, as the kubelet does. Each is asked for in its turn: of
 * thousands of pods there are tens of thousands of series.
 */
export async function renderMetrics(
  families: Iterable<MetricFamily>,
): Promise<{ readonly contentType: string; readonly body: string }> {
  // Loaded with the first request for metrics.
  const { Counter, Gauge, Histogram, Registry } = await import('prom-client')
  /** One that was counted elsewhere. */
  class CountedHistogram extends Histogram {
    readonly #family: HistogramFamily

    constructor(family: HistogramFamily) {
      super({ name: family.name, help: family.help, registers: [registry] })
      this.#family = family
    }

    /** What the registry writes out. */
    async getForPromString(): Promise<object> {
      const { name, help, type, series } = this.#family
      return { name, help, type, values: series.flatMap((each) => histogramValues(name, each)) }
    }
  }
  const registry = new Registry()
  const texts: string[] = []
  const pace = new TurnPace(systemClock)
  for (const family of families) {
    if (pace.isOver) await pace.next()
    const [first] = family.series
    if (first === undefined) continue
    // It registers itself.
    if (family.type === 'histogram') void new CountedHistogram(family)
    else {
      const { name, help, type, series } = family
      const about = { name, help, labelNames: Object.keys(first.labels), registers: [registry] }
      const metric = type === 'counter' ? new Counter(about) : new Gauge(about)
      for (const { labels, value } of series) {
        if (pace.isOver) await pace.next()
        metric.inc({ ...labels }, value)
      }
    }
    if (pace.isOver) await pace.next()
    texts.push(await registry.getSingleMetricAsString(family.name))
  }
  return { contentType: registry.contentType, body: `${texts.join('\n\n')}\n` }
}

/** The series that a histogram consists of. */
function histogramValues(
  name: string,
  { labels, counts: { buckets, count, sum } }: HistogramFamily['series'][number],
): readonly { readonly metricName: string; readonly labels: object; readonly value: number }[] {
  const bounded = buckets.map((bucket) => ({ le: bucket.bound, value: bucket.count }))
  return [
    ...[...bounded, { le: '+Inf', value: count }].map(({ le, value }) => ({
      metricName: `${name}_bucket`,
      labels: { ...labels, le },
      value,
    })),
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: count },
  ]
}

/** A metric with all its series. */
export type MetricFamily = ValueFamily | HistogramFamily

interface ValueFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly series: readonly Series[]
}

interface HistogramFamily {
  readonly name: string
  readonly help: string
  readonly type: 'histogram'
  readonly series: readonly { readonly labels: Series['labels']; readonly counts: HistogramCounts }[]
}

interface Series {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export type Values =
  | number
  | readonly { readonly labels: Series['labels']; readonly value: number | undefined }[]

/** @param values a number: one series without labels; series with unknown values are left out */
export function gauge(name: string, help: string, values: Values): MetricFamily {
  return { name, help, type: 'gauge', series: seriesOf(values) }
}

/** As `gauge`. */
export function counter(name: string, help: string, values: Values): MetricFamily {
  return { name, help, type: 'counter', series: seriesOf(values) }
}

export function histogram(name: string, help: string, series: HistogramFamily['series']): MetricFamily {
  return { name, help, type: 'histogram', series }
}

function seriesOf(values: Values): readonly Series[] {
  if (typeof values === 'number') return [{ labels: {}, value: values }]
  return values.flatMap(({ labels, value }) => (value === undefined ? [] : [{ labels, value }]))
}

export function secondsOf(nanoSeconds: number | undefined): number | undefined {
  return nanoSeconds === undefined ? undefined : nanoSeconds / 1e9
}
