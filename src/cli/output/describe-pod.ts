import type { EventObject, PodObject } from '../../api/resource.ts'
import type { ProbeReportObject } from '../../api/usage.ts'
import { isJsonObject, entriesOf, objectAt, objectsAt, textAt } from '../../base/json.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { formatProblem } from '../../pod/objects/format-problem.ts'
import { formatAge } from '../../api/served-kind.ts'
import { formatSeen } from '../../api/served-kinds.ts'
import { describeContainer } from './describe-container.ts'
import { Description, describeTime } from './description.ts'
import { Table } from './table.ts'

export interface DescribePodInput {
  readonly pod: PodObject
  /** Of its containers. */
  readonly probes: readonly ProbeReportObject[]
  /** Of this pod, oldest first. */
  readonly events: readonly EventObject[]
  /** Of its manifest. */
  readonly problems: readonly Problem[]
  readonly nowMs: number
}

/** All about a pod, laid out as `kubectl describe pod` does. */
export function describePod(input: DescribePodInput): string {
  const { pod, events, problems, nowMs } = input
  const { metadata, spec, status } = pod
  const text = new Description()
  text.add(0, 'Name', metadata.name)
  text.add(0, 'Namespace', metadata.namespace)
  text.add(0, 'UID', metadata.uid)
  const node = [textAt(spec, 'nodeName'), status.hostIP].filter((part) => part !== undefined)
  text.add(0, 'Node', node.length === 0 ? '<none>' : node.join('/'))
  text.add(0, 'Start Time', status.startTime === undefined ? '<none>' : describeTime(status.startTime))
  text.add(0, 'Labels', entriesOf(metadata.labels, '='))
  text.add(0, 'Annotations', entriesOf(metadata.annotations, ': '))
  if (metadata.deletionTimestamp === undefined) text.add(0, 'Status', status.phase)
  else {
    const forMs = nowMs - Date.parse(metadata.deletionTimestamp)
    text.add(0, 'Status', forMs > 0 ? `Terminating (lasts ${formatAge(forMs)})` : 'Terminating')
    const grace = metadata.deletionGracePeriodSeconds
    if (grace !== undefined) text.add(0, 'Termination Grace Period', `${grace}s`, 26)
  }
  if (status.reason !== undefined) text.add(0, 'Reason', status.reason)
  if (status.message !== undefined) text.add(0, 'Message', status.message)
  text.add(0, 'IP', status.podIP ?? '')
  text.addBlock(
    0,
    'IPs',
    (status.podIPs ?? []).map(({ ip }) => `IP:  ${ip}`),
  )
  describeContainers(text, input, 'Init Containers', 'initContainers')
  describeContainers(text, input, 'Containers', 'containers')
  describeContainers(text, input, 'Ephemeral Containers', 'ephemeralContainers')
  const conditions = status.conditions.map(({ type, status }) => [type, status])
  text.addBlock(0, 'Conditions', tableLines([['Type', 'Status'], ...conditions]))
  describeVolumes(text, pod)
  text.add(0, 'QoS Class', status.qosClass)
  if (problems.length > 0)
    text.addBlock(
      0,
      'Manifest',
      problems.map((problem) => formatProblem(problem)),
    )
  text.addBlock(0, 'Events', describeEvents(events, nowMs))
  return text.toString()
}

function describeContainers(
  text: Description,
  { pod, probes }: DescribePodInput,
  label: string,
  list: 'containers' | 'initContainers' | 'ephemeralContainers',
): void {
  const containers = objectsAt(pod.spec, list)
  if (containers.length === 0) return
  const { initContainerStatuses, containerStatuses, ephemeralContainerStatuses } = pod.status
  const statuses = [initContainerStatuses, containerStatuses, ephemeralContainerStatuses].flatMap(
    (some) => some ?? [],
  )
  text.addLine(0, `${label}:`)
  for (const spec of containers) {
    const name = textAt(spec, 'name')
    const status = statuses.find((one) => one.name === name)
    describeContainer(text, { spec, status, probes: probes.filter(({ container }) => container === name) })
  }
}

function describeVolumes(text: Description, { spec }: PodObject): void {
  const volumes = objectsAt(spec, 'volumes')
  if (volumes.length === 0) {
    text.add(0, 'Volumes', '<none>')
    return
  }
  text.addLine(0, 'Volumes:')
  for (const volume of volumes) {
    text.addLine(1, `${textAt(volume, 'name') ?? '?'}:`)
    const type = Object.keys(volume).find((key) => isJsonObject(volume[key]))
    text.add(2, 'Type', type ?? 'emptyDir')
    for (const [key, value] of Object.entries(type === undefined ? {} : (objectAt(volume, type) ?? {})))
      text.add(2, key, typeof value === 'string' ? value : JSON.stringify(value))
  }
}

function describeEvents(events: readonly EventObject[], nowMs: number): readonly string[] {
  if (events.length === 0) return []
  return tableLines([
    ['Type', 'Reason', 'Age', 'From', 'Message'],
    ['----', '------', '---', '----', '-------'],
    ...events.map((event) => [
      event.type,
      event.reason,
      formatSeen(event, nowMs),
      event.source.component,
      event.message.trim(),
    ]),
  ])
}

function tableLines(rows: readonly (readonly string[])[]): readonly string[] {
  return new Table().layOut(rows).trimEnd().split('\n')
}
