/** The text format of Prometheus. Families without series are left out, as the kubelet does. */
export async function renderMetrics(
  families: readonly MetricFamily[],
): Promise<{ readonly contentType: string; readonly body: string }> {
  // Loaded with the first request for metrics.
  const { Counter, Gauge, Registry } = await import('prom-client')
  const registry = new Registry()
  for (const { name, help, type, series } of families) {
    const [first] = series
    if (first === undefined) continue
    const about = { name, help, labelNames: Object.keys(first.labels), registers: [registry] }
    const metric = type === 'counter' ? new Counter(about) : new Gauge(about)
    for (const { labels, value } of series) metric.inc({ ...labels }, value)
  }
  return { contentType: registry.contentType, body: await registry.metrics() }
}

/** A metric with all its series. */
export interface MetricFamily {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge'
  readonly series: readonly Series[]
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

function seriesOf(values: Values): readonly Series[] {
  if (typeof values === 'number') return [{ labels: {}, value: values }]
  return values.flatMap(({ labels, value }) => (value === undefined ? [] : [{ labels, value }]))
}

export function secondsOf(nanoSeconds: number | undefined): number | undefined {
  return nanoSeconds === undefined ? undefined : nanoSeconds / 1e9
}
