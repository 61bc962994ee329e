import type { UsageHistoryReply, UsageSeries } from '../api/usage.ts'
import { formatBytes } from '../base/text.ts'
import { computeChartShape, formatCpu } from './chart-shape.ts'
import type { ChartShape } from './chart-shape.ts'
import { drawing, element } from './dom.ts'

const measures = {
  cpu: { title: 'CPU', values: (series: UsageSeries) => series.cpuMillis, format: formatCpu },
  memory: {
    title: 'Memory',
    values: (series: UsageSeries) => series.memoryBytes,
    format: (bytes: number) => formatBytes(Math.round(bytes)),
  },
} as const

export type Measure = keyof typeof measures

const width = 240
const height = 60

/**
 * A chart of the usage over the last hour, with its figures as text.
 * @param capacity left out, the chart's top is the largest figure
 */
export function chart(
  measure: Measure,
  series: UsageSeries,
  usage: UsageHistoryReply,
  capacity?: number,
): HTMLElement {
  const { title, format } = measures[measure]
  const shape = shapeOf(measure, series, usage, capacity)
  const now = shape.last === undefined ? 'not measured yet' : format(shape.last)
  const of = capacity === undefined ? '' : ` of ${format(capacity)}`
  const most = shape.most === undefined ? '' : `, ${format(shape.most)} at most`
  return element(
    'figure',
    {},
    element(
      'figcaption',
      {},
      element('strong', {}, title),
      element('span', {}, shape.last === undefined ? now : `${now}${of}${most}`),
    ),
    paths(shape, { measure, kind: 'chart', label: `${title} over the last hour: ${now}${of}${most}` }),
    element('div', { class: 'axis', 'aria-hidden': 'true' }, ...axis(usage.spanSeconds)),
  )
}

function axis(spanSeconds: number): readonly HTMLElement[] {
  return [element('span', {}, `${Math.round(spanSeconds / 60)} min ago`), element('span', {}, 'now')]
}

/** The same in a line of text. */
export function spark(measure: Measure, series: UsageSeries, usage: UsageHistoryReply): Node[] {
  const { title, format } = measures[measure]
  const shape = shapeOf(measure, series, usage, undefined)
  if (shape.last === undefined) return [element('span', { class: 'faint' }, '-')]
  const most = format(shape.most ?? 0)
  return [
    paths(shape, {
      measure,
      kind: 'spark',
      label: `${title}: ${most} at most in the last hour`,
    }),
    document.createTextNode(format(shape.last)),
  ]
}

function shapeOf(
  measure: Measure,
  series: UsageSeries,
  usage: UsageHistoryReply,
  capacity: number | undefined,
): ChartShape {
  const untilMs = usage.times.at(-1) ?? 0
  const facts = {
    times: usage.times,
    values: measures[measure].values(series),
    fromMs: untilMs - usage.spanSeconds * 1000,
    untilMs,
    top: capacity,
  }
  return computeChartShape(facts, width, height)
}

function paths(
  shape: ChartShape,
  {
    measure,
    kind,
    label,
  }: { readonly measure: Measure; readonly kind: 'chart' | 'spark'; readonly label: string },
): SVGElement {
  return drawing(
    'svg',
    {
      class: `${kind} ${measure}`,
      viewBox: `0 -1 ${width} ${height + 2}`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': label,
    },
    drawing('path', { class: 'area', d: shape.area }),
    drawing('path', { class: 'line', d: shape.line }),
  )
}
