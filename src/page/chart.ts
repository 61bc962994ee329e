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
 * The charts of the usage over the last hour; nothing where it is not known.
 * @param capacityOf left out, or where it gives none, a chart's top is its largest figure
 */
export function charts(
  series: UsageSeries | undefined,
  usage: UsageHistoryReply | undefined,
  capacityOf: (measure: Measure) => number | undefined = () => undefined,
): HTMLElement {
  const shown =
    usage === undefined || series === undefined
      ? []
      : (['cpu', 'memory'] as const).map((measure) => chart(measure, series, usage, capacityOf(measure)))
  return element('div', { class: 'charts' }, ...shown)
}

/** A chart with its figures as text. */
function chart(
  measure: Measure,
  series: UsageSeries,
  usage: UsageHistoryReply,
  capacity: number | undefined,
): HTMLElement {
  const { title, format } = measures[measure]
  const shape = shapeOf(measure, series, usage, capacity)
  const now = shape.last === undefined ? 'not measured yet' : format(shape.last)
  const of = capacity === undefined ? '' : ` of ${format(capacity)}`
  const most = shape.most === undefined ? '' : `, ${format(shape.most)} at most`
  const said = element('span', {}, shape.last === undefined ? now : `${now}${of}${most}`)
  const from = element('span', {}, `${Math.round(usage.spanSeconds / 60)} min ago`)
  return element(
    'figure',
    {},
    element('figcaption', {}, element('strong', {}, title), said),
    paths(shape, `chart ${measure}`, `${title} over the last hour: ${now}${of}${most}`),
    element('div', { class: 'axis', 'aria-hidden': 'true' }, from, element('span', {}, 'now')),
  )
}

/** The same in a line of text. */
export function spark(measure: Measure, series: UsageSeries, usage: UsageHistoryReply): Node[] {
  const { title, format } = measures[measure]
  const shape = shapeOf(measure, series, usage, undefined)
  if (shape.last === undefined) return [element('span', { class: 'faint' }, '-')]
  const label = `${title}: ${format(shape.most ?? 0)} at most in the last hour`
  return [paths(shape, `spark ${measure}`, label), document.createTextNode(format(shape.last))]
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

function paths(shape: ChartShape, name: string, label: string): SVGElement {
  const viewBox = `0 -1 ${width} ${height + 2}`
  return drawing(
    'svg',
    { class: name, viewBox, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    drawing('path', { class: 'area', d: shape.area }),
    drawing('path', { class: 'line', d: shape.line }),
  )
}
