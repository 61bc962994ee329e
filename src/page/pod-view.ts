import { summarizePod } from '../api/pod-summary.ts'
import type { PodObject } from '../api/resource.ts'
import { formatAgeOf } from '../api/served-kind.ts'
import type { ContainerStatus } from '../pod/state/status.ts'
import { charts } from './chart.ts'
import { element, eventSection, factList, section, table } from './dom.ts'
import type { Cell } from './dom.ts'
import { statusClass } from './overview.ts'
import { findTroubles } from './page-state.ts'
import type { PageState } from './page-state.ts'

/** A pod's containers with their kinds, as a log may be chosen among them. */
export function containersOf({ status }: PodObject): readonly (readonly [kind: string, ContainerStatus])[] {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = status
  return [
    ...containerStatuses.map((each) => ['', each] as const),
    ...initContainerStatuses.map((each) => ['init', each] as const),
    ...ephemeralContainerStatuses.map((each) => ['debug', each] as const),
  ]
}

/** One pod, but for its logs. */
export function podView(pod: PodObject, state: PageState, nowMs: number): readonly Node[] {
  const { usage, events, lastLines } = state
  const { namespace, name, uid, annotations = {} } = pod.metadata
  const { status } = pod
  const { status: word, ready, total, restarts } = summarizePod(pod)
  const trouble = findTroubles({ pods: [pod], events, lastLines }).get(uid)
  const facts = factList([
    ['Namespace', namespace],
    ['Status', [element('span', { class: statusClass(pod, word) }, word)]],
    ['Why', trouble?.why],
    ['Last log line', trouble?.lastLine],
    ['Message', trouble === undefined ? status.message : undefined],
    ['Ready', `${ready}/${total}`],
    ['Restarts', String(restarts)],
    ['Age', formatAgeOf(pod.metadata.creationTimestamp, nowMs)],
    ['Address', status.podIPs?.map(({ ip }) => ip).join(', ')],
    ['Quality of service', status.qosClass],
    ['Manifest', annotations['podd.dev/path']],
  ])
  const series = usage?.pods.find((each) => each.uid === uid)
  const own = events.filter(({ involvedObject }) => involvedObject.uid === uid)
  return [
    element('p', {}, element('a', { href: '#' }, 'All pods')),
    section(`Pod ${name}`, facts, charts(series, usage)),
    section('Containers', containerTable(pod, nowMs)),
    eventSection(own, nowMs, undefined, 'None.'),
  ]
}

function containerTable(pod: PodObject, nowMs: number): HTMLElement {
  const titles = ['Name', 'State', 'Ready', 'Restarts', 'Image', 'Message']
  const rows = containersOf(pod).map(([kind, status]): readonly Cell[] => {
    const { name, state, lastState, ready, restartCount, image } = status
    const { waiting, running, terminated } = state
    const word =
      running !== undefined
        ? `Running for ${formatAgeOf(running.startedAt, nowMs)}`
        : terminated !== undefined
          ? `${terminated.reason ?? 'Ended'} (exit code ${terminated.exitCode})`
          : (waiting?.reason ?? 'Waiting')
    const before = lastState.terminated
    const last = before === undefined ? '' : `last: ${before.reason ?? 'ended'}, exit code ${before.exitCode}`
    const message = waiting?.message ?? terminated?.message ?? last
    const shown = kind === '' ? name : `${name} (${kind})`
    return [shown, word, ready ? 'yes' : 'no', String(restartCount), image, message || '-']
  })
  return table('Containers', titles, rows)
}
