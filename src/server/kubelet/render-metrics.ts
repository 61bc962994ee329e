import type { MetricFamily } from './metric-family.ts'

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
