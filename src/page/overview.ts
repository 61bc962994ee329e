import type { NodeObject } from '../api/cluster-objects.ts'
import { summarizePod } from '../api/pod-summary.ts'
import type { PodObject } from '../api/resource.ts'
import { formatAgeOf } from '../api/served-kind.ts'
import type { SourceObject, UnitObject } from '../api/sources.ts'
import { quantityMilliValue, quantityValue } from '../pod/values/quantity.ts'
import { charts, spark } from './chart.ts'
import type { Measure } from './chart.ts'
import { element, eventSection, factList, nothing, section, table, words } from './dom.ts'
import type { Cell } from './dom.ts'
import { findTroubles, openUnits, podLink, sortPods } from './page-state.ts'
import type { PageState, Trouble } from './page-state.ts'

/**
 * The pods, the broken ones first, the host, events and sources.
 * @param open the UIDs of the pods and sources that are shown in full
 */
export function overview(state: PageState, open: ReadonlySet<string>, nowMs: number): readonly Node[] {
  const problems = listProblems(state)
  const { pods, events, sources, units } = state
  return [
    ...(problems.length === 0
      ? []
      : [section('Problems', element('ul', { class: 'problems' }, ...problems))]),
    section('Pods', podList(state, open, nowMs)),
    section('Host', ...host(state, nowMs)),
    eventSection(events, nowMs, pods, 'None in the last hours.'),
    section('Updates', unitTable(units)),
    section('Sources', sourceList(sources, open, nowMs)),
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
  const amount = node?.status.capacity[measure]
  if (amount === undefined) return undefined
  return measure === 'memory' ? quantityValue(amount) : quantityMilliValue(amount)
}

function podList(state: PageState, open: ReadonlySet<string>, nowMs: number): HTMLElement {
  if (state.pods.length === 0) return nothing('No pods.')
  const troubles = findTroubles(state)
  const items = sortPods(state.pods, troubles).map((pod) => {
    const { uid } = pod.metadata
    return podItem(pod, troubles.get(uid), open.has(uid), state, nowMs)
  })
  return element('ul', { class: 'lines pods' }, ...items)
}

/** A line about a pod, with the cause where it is broken, that opens. */
function podItem(
  pod: PodObject,
  trouble: Trouble | undefined,
  isOpen: boolean,
  { usage }: PageState,
  nowMs: number,
): HTMLElement {
  const { namespace, name, uid, creationTimestamp } = pod.metadata
  const { status, ready, total, restarts } = summarizePod(pod)
  const series = usage?.pods.find((each) => each.uid === uid)
  const figure = (measure: Measure): readonly Node[] =>
    usage === undefined || series === undefined ? [] : spark(measure, series, usage)
  const age = formatAgeOf(creationTimestamp, nowMs)
  const place = namespace === 'default' ? '' : `${namespace}/`
  const line = element(
    'summary',
    {},
    element('span', { class: 'name' }, element('span', { class: 'faint' }, place), name),
    element('span', { class: statusClass(pod, status) }, status),
    element('span', { class: 'more' }, `${ready}/${total} ready`),
    element('span', { class: 'more' }, restarts === 1 ? '1 restart' : `${restarts} restarts`),
    element('span', { class: 'more' }, `${age} old`),
    element('span', { class: 'most' }, ...figure('cpu')),
    element('span', { class: 'most' }, ...figure('memory')),
    ...(trouble === undefined
      ? []
      : [
          element('span', { class: 'why' }, ...words(trouble.why)),
          element('code', { class: 'why' }, ...words(trouble.lastLine ?? '')),
        ]),
  )
  const facts = factList([
    ['Name', `${namespace}/${name}`],
    ['Ready', `${ready}/${total}`],
    ['Restarts', String(restarts)],
    ['Age', age],
    ['Address', pod.status.podIPs?.map(({ ip }) => ip).join(', ')],
    ['CPU', series && figure('cpu')],
    ['Memory', series && figure('memory')],
  ])
  const link = element('a', { href: podLink(namespace, name) }, `Containers, events and log of ${name}`)
  return element(
    'li',
    { id: `pod-${uid}` },
    element('details', { 'data-uid': uid, open: isOpen }, line, facts, element('p', {}, link)),
  )
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
  const titles = ['File or URL', 'State', 'Active', 'Offered', 'Message']
  const colours = {
    Progressing: 'warn',
    RollbackRequested: 'warn',
    Failed: 'bad',
    RolledBack: 'bad',
    Invalid: 'bad',
    Held: 'warn',
    Unread: 'warn',
    Healthy: 'good',
  }
  const rows = open.map(({ name, state, active, offered, message }): readonly Cell[] => [
    name,
    [element('span', { class: colours[state] }, state)],
    active,
    offered,
    message,
  ])
  return table('Updates', titles, rows)
}

function sourceList(
  sources: readonly SourceObject[] | undefined,
  open: ReadonlySet<string>,
  nowMs: number,
): HTMLElement {
  if (sources === undefined || sources.length === 0) return nothing('None.')
  const items = sources.map((source) => sourceItem(source, open.has(sourceId(source)), nowMs))
  return element('ul', { class: 'lines sources' }, ...items)
}

function sourceId({ metadata }: SourceObject): string {
  return `source-${metadata.name}`
}

/** A line about a source, with its trouble where it has one, that opens. */
function sourceItem(source: SourceObject, isOpen: boolean, nowMs: number): HTMLElement {
  const { metadata, spec, status } = source
  const { state, errors, pods, lastAnswerTime, message = '' } = status
  const colour = state !== 'Following' ? 'bad' : errors > 0 ? 'warn' : 'good'
  const word = errors > 0 ? `${state}, ${errors} ${errors === 1 ? 'error' : 'errors'}` : state
  const answered = lastAnswerTime === undefined ? '' : `${formatAgeOf(lastAnswerTime, nowMs)} ago`
  const line = element(
    'summary',
    {},
    element('span', { class: 'name' }, metadata.name),
    element('span', { class: 'place more' }, spec.place),
    element('span', { class: colour }, word),
    element('span', { class: 'more' }, pods === 1 ? '1 pod' : `${pods} pods`),
    element('span', { class: 'more' }, answered),
    ...(message === '' ? [] : [element('span', { class: 'why' }, ...words(message))]),
  )
  const facts = factList([
    ['Place', spec.place],
    ['Pods', String(pods)],
    ['Last answer', answered],
  ])
  return element('li', {}, element('details', { 'data-uid': sourceId(source), open: isOpen }, line, facts))
}
