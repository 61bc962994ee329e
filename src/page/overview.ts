import type { NodeObject } from '../api/cluster-objects.ts'
import { summarizePod } from '../api/pod-summary.ts'
import type { PodObject } from '../api/resource.ts'
import { formatAgeOf } from '../api/served-kind.ts'
import type { SourceObject, UnitObject } from '../api/sources.ts'
import { readAmount } from './chart-shape.ts'
import { charts, spark } from './chart.ts'
import type { Measure } from './chart.ts'
import { element, eventSection, factList, nothing, section, table } from './dom.ts'
import type { Cell } from './dom.ts'
import { openUnits, podLink, sortPods } from './page-state.ts'
import type { PageState } from './page-state.ts'

/** The host, its pods, events and sources. */
export function overview(state: PageState, nowMs: number): readonly Node[] {
  const problems = listProblems(state)
  const { pods, events, sources, units } = state
  return [
    ...(problems.length === 0
      ? []
      : [section('Problems', element('ul', { class: 'problems' }, ...problems))]),
    section('Host', ...host(state, nowMs)),
    section('Pods', podTable(state, nowMs)),
    eventSection(events, nowMs, pods, 'None in the last hours.'),
    section('Updates', unitTable(units)),
    section('Sources', sourceTable(sources, nowMs)),
  ]
}

function listProblems({ status, refusals, node }: PageState): readonly HTMLElement[] {
  const item = (text: string, kind = 'error'): HTMLElement => element('li', { class: kind }, text)
  const conditions = node?.status.conditions ?? []
  const pressed = conditions.filter(({ type, status: value }) => type !== 'Ready' && value === 'True')
  return [
    ...refusals.map((message) => item(message)),
    ...(status?.runtime.healthy === false
      ? [item(`The runtime: ${status.runtime.message ?? 'not healthy'}`)]
      : []),
    ...(status?.draining === true ? [item('The host is drained: no pod is admitted.', 'warning')] : []),
    ...pressed.map(({ type, message }) => item(`${type}: ${message}`)),
    ...(status?.problems ?? []).map(({ severity, place, object, field, message, hint }) =>
      item(
        `${place.path}${object === undefined ? '' : ` (${object})`}: ${field === undefined ? '' : `${field}: `}${message}${hint === undefined ? '' : ` (${hint})`}`,
        severity,
      ),
    ),
    ...(status?.crashes ?? []).map(({ time, report }) => item(`podd crashed at ${time}; see ${report}`)),
    ...(status?.jobs ?? []).flatMap(({ name, error }) =>
      error === undefined ? [] : [item(`${name}: ${error}`, 'warning')],
    ),
  ]
}

function host({ node, status, usage, pods }: PageState, nowMs: number): readonly Node[] {
  const runtime = status?.runtime
  const facts = factList([
    ['podd', status && `${status.version}, for ${formatAgeOf(status.startedAt, nowMs)}`],
    ['Runtime', runtime && `${runtime.name ?? runtime.endpoint} ${runtime.version ?? ''}`],
    ['System', node && `${node.status.nodeInfo['osImage']}, ${node.status.nodeInfo['kernelVersion']}`],
    ['Addresses', node?.status.addresses.map(({ address }) => address).join(', ')],
    ['Pods', `${pods.length}${node === undefined ? '' : ` of ${node.status.allocatable['pods']} at most`}`],
  ])
  return [facts, charts(usage?.node, usage, (measure) => capacityOf(node, measure))]
}

function capacityOf(node: NodeObject | undefined, measure: Measure): number | undefined {
  const amount = readAmount(node?.status.capacity[measure])
  return amount === undefined || measure === 'memory' ? amount : amount * 1000
}

function podTable({ pods, usage }: PageState, nowMs: number): HTMLElement {
  if (pods.length === 0) return nothing('No pods.')
  const words = ['Namespace', 'Name', 'Ready', 'Status', 'Restarts', 'Age'].map((title) => ({ title }))
  const figures = ['CPU', 'Memory'].map((title) => ({ title, isFigure: true as const }))
  const rows = sortPods(pods).map((pod): readonly Cell[] => {
    const { namespace, name, uid, creationTimestamp } = pod.metadata
    const summary = summarizePod(pod)
    const series = usage?.pods.find((each) => each.uid === uid)
    const figure = (measure: Measure): Cell =>
      usage === undefined || series === undefined ? '-' : spark(measure, series, usage)
    return [
      namespace,
      [element('a', { href: podLink(namespace, name) }, name)],
      `${summary.ready}/${summary.total}`,
      [element('span', { class: statusClass(pod, summary.status) }, summary.status)],
      String(summary.restarts),
      formatAgeOf(creationTimestamp, nowMs),
      figure('cpu'),
      figure('memory'),
    ]
  })
  return table('Pods', [...words, ...figures], rows)
}

/** The colour of a pod's status, beside its text. */
export function statusClass({ status }: PodObject, word: string): string {
  if (word === 'Completed' || word === 'Succeeded') return 'faint'
  const isReady = status.conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True')
  if (isReady) return 'good'
  return /(?:Error|BackOff|Failed|Evicted|Killed|Invalid)/u.test(word) ? 'bad' : 'warn'
}

/** The files and URLs whose newest revision is not healthy. */
function unitTable(units: readonly UnitObject[] | undefined): HTMLElement {
  const open = openUnits(units ?? [])
  if (units === undefined || units.length === 0) return nothing('None.')
  if (open.length === 0)
    return nothing(
      units.length === 1
        ? 'The newest revision is healthy.'
        : `The newest revisions of all ${units.length} files and URLs are healthy.`,
    )
  const columns = ['File or URL', 'State', 'Active', 'Offered', 'Message'].map((title) => ({ title }))
  const colours = {
    Progressing: 'warn',
    RollbackRequested: 'warn',
    Failed: 'bad',
    RolledBack: 'bad',
    Healthy: 'good',
  }
  const rows = open.map(({ name, state, active, offered, message }): readonly Cell[] => [
    name,
    [element('span', { class: colours[state] }, state)],
    active,
    offered,
    message,
  ])
  return table('Updates', columns, rows)
}

function sourceTable(sources: readonly SourceObject[] | undefined, nowMs: number): HTMLElement {
  if (sources === undefined || sources.length === 0) return nothing('None.')
  const columns = ['Name', 'Place', 'State', 'Pods', 'Last answer', 'Message'].map((title) => ({ title }))
  const rows = sources.map(({ metadata, spec, status }): readonly Cell[] => {
    const { state, errors, pods, lastAnswerTime, message = '-' } = status
    const colour = state !== 'Following' ? 'bad' : errors > 0 ? 'warn' : 'good'
    const word = errors > 0 ? `${state}, ${errors} ${errors === 1 ? 'error' : 'errors'}` : state
    const answered = lastAnswerTime === undefined ? '-' : `${formatAgeOf(lastAnswerTime, nowMs)} ago`
    return [
      metadata.name,
      spec.place,
      [element('span', { class: colour }, word)],
      String(pods),
      answered,
      message,
    ]
  })
  return table('Sources', columns, rows)
}
