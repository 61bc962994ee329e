import type { WorkloadObject } from '../../api/cluster-objects.ts'
import { summarizePod } from '../../api/pod-summary.ts'
import type { EventObject, PodObject, ResourceObject } from '../../api/resource.ts'
import { columnsFor, formatAge, formatAgeOf } from '../../api/served-kind.ts'
import type { ServedKind } from '../../api/served-kind.ts'
import { formatSeen, jobCompletions, jobState } from '../../api/served-kinds.ts'
import type { ProbeReportObject } from '../../api/usage.ts'
import { entriesOf, isJsonObject, objectAt, objectsAt, textAt, textsAt } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { escapeControls } from '../../base/text.ts'
import type { Problem } from '../../pod/objects/document.ts'
import { upToDateCondition } from '../../pod/state/status.ts'
import type { ContainerState, ContainerStatus } from '../../pod/state/status.ts'
import { formatProblem } from './report-format.ts'
import { Table } from './table.ts'

/**
 * All about a pod, laid out as `kubectl describe pod` does.
 * @param probes of its containers
 * @param events of this pod, oldest first
 * @param problems of its manifest
 */
export function describePod(
  pod: PodObject,
  probes: readonly ProbeReportObject[],
  events: readonly EventObject[],
  problems: readonly Problem[],
  nowMs: number,
): string {
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
  const [owner] = metadata.ownerReferences ?? []
  if (owner !== undefined) text.add(0, 'Controlled By', `${owner.kind}/${owner.name}`)
  if (status.reason !== undefined) text.add(0, 'Reason', status.reason)
  if (status.message !== undefined) text.add(0, 'Message', status.message)
  text.add(0, 'IP', status.podIP ?? '')
  const ips = (status.podIPs ?? []).map(({ ip }) => `IP:  ${ip}`)
  text.addBlock(0, 'IPs', ips)
  for (const [label, list, statuses] of [
    ['Init Containers', 'initContainers', status.initContainerStatuses],
    ['Containers', 'containers', status.containerStatuses],
    ['Ephemeral Containers', 'ephemeralContainers', status.ephemeralContainerStatuses],
  ] as const) {
    const containers = objectsAt(spec, list)
    if (containers.length > 0) text.addLine(0, `${label}:`)
    for (const container of containers) {
      const name = textAt(container, 'name')
      const ofContainer = statuses?.find((one) => one.name === name)
      const probesOfContainer = probes.filter((report) => report.container === name)
      describeContainer(text, container, ofContainer, probesOfContainer)
    }
  }
  const outdated = status.conditions.find(
    ({ type, status: is }) => type === upToDateCondition && is === 'False',
  )
  if (outdated?.message !== undefined) text.add(0, 'Update', outdated.message)
  const conditions = status.conditions.map(({ type, status }) => [type, status])
  text.addBlock(0, 'Conditions', tableLines(['Type', 'Status'], conditions))
  describeVolumes(text, pod.spec)
  text.add(0, 'QoS Class', status.qosClass)
  const problemLines = problems.map((problem) => formatProblem(problem))
  if (problemLines.length > 0) text.addBlock(0, 'Manifest', problemLines)
  text.addBlock(0, 'Events', describeEvents(events, nowMs, ['From', ({ source }) => source.component]))
  return text.toString()
}

function describeVolumes(text: Description, spec: JsonObject): void {
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

/** @param about the column between the age and the message */
function describeEvents(
  events: readonly EventObject[],
  nowMs: number,
  [title, read]: readonly [title: string, read: (event: EventObject) => string],
): readonly string[] {
  const rows = events.map((event) => [
    event.type,
    event.reason,
    formatSeen(event, nowMs),
    read(event),
    event.message.trim(),
  ])
  const titles = ['Type', 'Reason', 'Age', title, 'Message']
  const underlined = titles.map((word) => '-'.repeat(word.length))
  return rows.length === 0 ? [] : tableLines(titles, [underlined, ...rows])
}

/** None without rows. */
function tableLines(titles: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  return rows.length === 0
    ? []
    : new Table()
        .layOut([titles, ...rows])
        .trimEnd()
        .split('\n')
}

/**
 * One container as `kubectl describe pod` shows it (kubectl `pkg/describe/describe.go`, 1.36), and the last failures of
 * its probes.
 */
function describeContainer(
  text: Description,
  spec: JsonObject,
  status: ContainerStatus | undefined,
  probes: readonly ProbeReportObject[],
): void {
  text.addLine(1, `${textAt(spec, 'name') ?? '?'}:`)
  if (status !== undefined) text.add(2, 'Container ID', status.containerID ?? '')
  const image = textAt(spec, 'image') ?? ''
  text.add(2, 'Image', image)
  // The ID below is of the image that runs.
  const isOutdated = status?.containerID !== undefined && status.image !== image
  if (isOutdated) text.add(2, 'Running Image', status.image)
  if (status !== undefined) text.add(2, 'Image ID', status.imageID)
  describePorts(text, objectsAt(spec, 'ports'))
  for (const [label, key] of [
    ['Command', 'command'],
    ['Args', 'args'],
  ] as const) {
    const words = textsAt(spec, key)
    if (words.length > 0) text.addBlock(2, label, words)
  }
  if (status !== undefined) {
    describeState(text, 'State', status.state)
    if (Object.keys(status.lastState).length > 0) describeState(text, 'Last State', status.lastState)
    text.add(2, 'Ready', status.ready ? 'True' : 'False')
    text.add(2, 'Restart Count', String(status.restartCount))
  }
  const resources = objectAt(spec, 'resources') ?? {}
  for (const [label, key] of [
    ['Limits', 'limits'],
    ['Requests', 'requests'],
  ] as const) {
    const entries = entriesOf(objectAt(resources, key), ': ')
    if (entries.length > 0) text.addBlock(2, label, entries)
  }
  for (const [label, kind] of [
    ['Liveness', 'liveness'],
    ['Readiness', 'readiness'],
    ['Startup', 'startup'],
  ] as const) {
    const probe = objectAt(spec, `${kind}Probe`)
    if (probe === undefined) continue
    text.add(2, label, formatProbe(probe))
    const failure = probes.find((report) => report.probe === kind)?.lastFailure
    if (failure !== undefined)
      text.add(3, 'Last Failure', [describeTime(failure.time), ...failure.message.trimEnd().split('\n')])
  }
  const sources = objectsAt(spec, 'envFrom').map((source) => formatSource(source))
  if (sources.length > 0) text.addBlock(2, 'Environment Variables from', sources)
  const variables = objectsAt(spec, 'env').map((variable) => formatVariable(variable))
  text.addBlock(2, 'Environment', variables)
  const mounts = objectsAt(spec, 'volumeMounts').map((mount) => formatMount(mount))
  text.addBlock(2, 'Mounts', mounts)
}

function describePorts(text: Description, ports: readonly JsonObject[]): void {
  if (ports.length === 0) return
  const format = (key: string): string =>
    ports.map((port) => `${textAt(port, key) ?? '0'}/${textAt(port, 'protocol') ?? 'TCP'}`).join(', ')
  text.add(2, ports.length === 1 ? 'Port' : 'Ports', format('containerPort'))
  text.add(2, ports.length === 1 ? 'Host Port' : 'Host Ports', format('hostPort'))
}

function describeState(text: Description, label: string, state: ContainerState): void {
  const { running, terminated, waiting } = state
  if (running !== undefined) {
    text.add(2, label, 'Running')
    text.add(3, 'Started', describeTime(running.startedAt))
    return
  }
  text.add(2, label, terminated === undefined ? 'Waiting' : 'Terminated')
  const { reason, message } = terminated ?? waiting ?? {}
  if (reason !== undefined) text.add(3, 'Reason', reason)
  if (message !== undefined && message !== '') text.add(3, 'Message', message.trimEnd().split('\n'))
  if (terminated === undefined) return
  const { exitCode, signal, startedAt, finishedAt } = terminated
  text.add(3, 'Exit Code', String(exitCode))
  if (signal !== undefined && signal !== 0) text.add(3, 'Signal', String(signal))
  text.add(3, 'Started', describeTime(startedAt))
  text.add(3, 'Finished', describeTime(finishedAt))
}

/** `http-get http://:8080/healthz delay=0s timeout=1s period=10s #success=1 #failure=3`. */
function formatProbe(probe: JsonObject): string {
  const numbers = [
    `delay=${textAt(probe, 'initialDelaySeconds') ?? 0}s`,
    `timeout=${textAt(probe, 'timeoutSeconds') ?? 1}s`,
    `period=${textAt(probe, 'periodSeconds') ?? 10}s`,
    `#success=${textAt(probe, 'successThreshold') ?? 1}`,
    `#failure=${textAt(probe, 'failureThreshold') ?? 3}`,
  ].join(' ')
  return `${formatHandler(probe)} ${numbers}`
}

function formatHandler(probe: JsonObject): string {
  const exec = objectAt(probe, 'exec')
  if (exec !== undefined) return `exec [${textsAt(exec, 'command').join(' ')}]`
  const http = objectAt(probe, 'httpGet')
  if (http !== undefined) {
    const scheme = (textAt(http, 'scheme') ?? 'HTTP').toLowerCase()
    return `http-get ${scheme}://${textAt(http, 'host') ?? ''}:${textAt(http, 'port') ?? ''}${textAt(http, 'path') ?? '/'}`
  }
  const tcp = objectAt(probe, 'tcpSocket')
  if (tcp !== undefined) return `tcp-socket ${textAt(tcp, 'host') ?? ''}:${textAt(tcp, 'port') ?? ''}`
  const grpc = objectAt(probe, 'grpc')
  if (grpc !== undefined)
    return `grpc <pod>:${textAt(grpc, 'port') ?? ''} ${textAt(grpc, 'service') ?? ''}`.trim()
  return 'unknown'
}

/** `settings  ConfigMap with prefix 'APP_'  Optional: false`. */
function formatSource(source: JsonObject): string {
  const configMap = objectAt(source, 'configMapRef')
  const ref = configMap ?? objectAt(source, 'secretRef') ?? {}
  const prefix = textAt(source, 'prefix') ?? ''
  const kind = configMap === undefined ? 'Secret' : 'ConfigMap'
  const what = prefix === '' ? kind : `${kind} with prefix '${prefix}'`
  return `${textAt(ref, 'name') ?? ''}  ${what}  ${formatOptional(ref)}`
}

function formatOptional(ref: JsonObject): string {
  return `Optional: ${textAt(ref, 'optional') ?? 'false'}`
}

/** Shows the origin of a value, never the value of a Secret. */
function formatVariable(variable: JsonObject): string {
  const name = textAt(variable, 'name') ?? ''
  const source = objectAt(variable, 'valueFrom')
  if (source === undefined) return `${name}:  ${textAt(variable, 'value') ?? ''}`
  for (const [key, where] of [
    ['configMapKeyRef', (ref: JsonObject) => `of config map '${textAt(ref, 'name') ?? ''}'`],
    ['secretKeyRef', (ref: JsonObject) => `in secret '${textAt(ref, 'name') ?? ''}'`],
    [
      'fileKeyRef',
      (ref: JsonObject) =>
        `in file '${textAt(ref, 'path') ?? ''}' of volume '${textAt(ref, 'volumeName') ?? ''}'`,
    ],
  ] as const) {
    const ref = objectAt(source, key)
    if (ref === undefined) continue
    return `${name}:  <set to the key '${textAt(ref, 'key') ?? ''}' ${where(ref)}>  ${formatOptional(ref)}`
  }
  const field = objectAt(source, 'fieldRef')
  if (field !== undefined) return `${name}:   (${textAt(field, 'fieldPath') ?? ''})`
  const resource = objectAt(source, 'resourceFieldRef')
  return `${name}:   (${resource === undefined ? '' : (textAt(resource, 'resource') ?? '')})`
}

function formatMount(mount: JsonObject): string {
  const flags = [textAt(mount, 'readOnly') === 'true' ? 'ro' : 'rw']
  for (const [label, key] of [
    ['path', 'subPath'],
    ['path expression', 'subPathExpr'],
  ] as const) {
    const path = textAt(mount, key) ?? ''
    if (path !== '') flags.push(`${label}="${path}"`)
  }
  return `${textAt(mount, 'mountPath') ?? ''} from ${textAt(mount, 'name') ?? ''} (${flags.join(',')})`
}

/** A Deployment, StatefulSet, DaemonSet, Job or CronJob with what was made from it. */
export interface DescribedWorkload {
  readonly workload: WorkloadObject
  /** Of a CronJob, newest last. */
  readonly jobs: readonly WorkloadObject[]
  readonly pods: readonly PodObject[]
  /** Of itself, its Jobs and its pods, oldest first. */
  readonly events: readonly EventObject[]
  /** Of its manifest. */
  readonly problems: readonly Problem[]
}

/**
 * All about a workload, in the words of `kubectl describe` (kubectl `pkg/describe/describe.go`: DeploymentDescriber,
 * StatefulSetDescriber, DaemonSetDescriber, JobDescriber, CronJobDescriber, 1.36), with its Jobs and pods.
 */
export function describeWorkload(
  { workload, jobs, pods, events, problems }: DescribedWorkload,
  nowMs: number,
): string {
  const { kind, metadata, status } = workload
  const text = new Description()
  const add = (label: string, value: string | readonly string[]): void => text.add(0, label, value, 30)
  add('Name', metadata.name)
  add('Namespace', metadata.namespace)
  const [owner] = metadata.ownerReferences ?? []
  if (owner !== undefined) add('Controlled By', `${owner.kind}/${owner.name}`)
  add('CreationTimestamp', describeTime(metadata.creationTimestamp))
  add('Labels', entriesOf(metadata.labels, '='))
  add('Annotations', entriesOf(metadata.annotations, ': '))
  for (const [label, value] of workloadLines(workload)) add(label, value)
  text.addLine(0, 'Pod Template:')
  for (const line of describeTemplate(templateOf(workload))) text.addLine(1, line)
  const conditions = objectsAt(status, 'conditions').map((condition) =>
    ['type', 'status', 'reason', 'message'].map((key) => textAt(condition, key) ?? ''),
  )
  if (kind !== 'CronJob')
    text.addBlock(0, 'Conditions', tableLines(['Type', 'Status', 'Reason', 'Message'], conditions))
  else {
    add('Last Schedule Time', timeOr(status, 'lastScheduleTime'))
    add('Last Successful Time', timeOr(status, 'lastSuccessfulTime'))
    const names = objectsAt(status, 'active').flatMap((each) => textAt(each, 'name') ?? [])
    add('Active Jobs', names.length === 0 ? '<none>' : names.join(', '))
    const rows = jobs.map((job) => [job.metadata.name, jobState(job), jobCompletions(job)])
    text.addBlock(0, 'Jobs', tableLines(['Name', 'Status', 'Completions'], rows))
  }
  const rows = pods.map((pod) => {
    const { ready, total, status: state, restarts } = summarizePod(pod)
    const age = formatAgeOf(pod.metadata.creationTimestamp, nowMs)
    return [pod.metadata.name, `${ready}/${total}`, state, String(restarts), age]
  })
  text.addBlock(0, 'Pods', tableLines(['Name', 'Ready', 'Status', 'Restarts', 'Age'], rows))
  const problemLines = problems.map((problem) => formatProblem(problem))
  if (problemLines.length > 0) text.addBlock(0, 'Manifest', problemLines)
  const objectOf = ({ involvedObject: { kind: about, name } }: EventObject): string =>
    `${about.toLowerCase()}/${name}`
  text.addBlock(0, 'Events', describeEvents(events, nowMs, ['Object', objectOf]))
  return text.toString()
}

function timeOr(status: JsonObject, key: string): string {
  const time = textAt(status, key)
  return time === undefined ? '<unset>' : describeTime(time)
}

/** What kubectl prints of each kind before the template. */
function workloadLines({ kind, spec, status }: WorkloadObject): readonly Line[] {
  const count = (key: string): string => textAt(status, key) ?? '0'
  const given = (from: JsonObject, key: string): string => textAt(from, key) ?? '<unset>'
  const selector = entriesOf(objectAt(objectAt(spec, 'selector'), 'matchLabels'), '=').join(',') || '<unset>'
  const strategyOf = (key: string): JsonObject => objectAt(spec, key) ?? {}
  switch (kind) {
    case 'Deployment': {
      const strategy = strategyOf('strategy')
      const rolling = objectAt(strategy, 'rollingUpdate')
      const total = `${count('replicas')} total | ${count('availableReplicas')} available`
      return [
        ['Selector', selector],
        [
          'Replicas',
          `${given(spec, 'replicas')} desired | ${count('updatedReplicas')} updated | ${total} | ${count('unavailableReplicas')} unavailable`,
        ],
        ['StrategyType', given(strategy, 'type')],
        ['MinReadySeconds', textAt(spec, 'minReadySeconds') ?? '0'],
        ...(rolling === undefined
          ? []
          : [['RollingUpdateStrategy', `${given(rolling, 'maxUnavailable')} max unavailable`] as const]),
        ...(spec['paused'] === true ? [['Paused', 'true'] as const] : []),
      ]
    }
    case 'StatefulSet':
      return [
        ['Selector', selector],
        ['Replicas', `${given(spec, 'replicas')} desired | ${count('replicas')} total`],
        ['Update Strategy', given(strategyOf('updateStrategy'), 'type')],
        ['Pod Management Policy', given(spec, 'podManagementPolicy')],
      ]
    case 'DaemonSet':
      return [
        ['Selector', selector],
        ['Desired Number of Nodes Scheduled', count('desiredNumberScheduled')],
        ['Current Number of Nodes Scheduled', count('currentNumberScheduled')],
        ['Number of Nodes Scheduled with Up-to-date Pods', count('updatedNumberScheduled')],
        ['Number of Nodes Scheduled with Available Pods', count('numberAvailable')],
      ]
    case 'Job':
      return [...jobLines(spec), ...jobStatusLines(status)]
    case 'CronJob': {
      const job = objectAt(objectAt(spec, 'jobTemplate'), 'spec') ?? {}
      return [
        ['Schedule', given(spec, 'schedule')],
        ['Time Zone', given(spec, 'timeZone')],
        ['Concurrency Policy', given(spec, 'concurrencyPolicy')],
        ['Suspend', spec['suspend'] === true ? 'True' : 'False'],
        ['Successful Job History Limit', given(spec, 'successfulJobsHistoryLimit')],
        ['Failed Job History Limit', given(spec, 'failedJobsHistoryLimit')],
        [
          'Starting Deadline Seconds',
          textAt(spec, 'startingDeadlineSeconds') === undefined
            ? '<unset>'
            : `${given(spec, 'startingDeadlineSeconds')}s`,
        ],
        ...jobLines(job),
      ]
    }
  }
}

type Line = readonly [label: string, value: string]

/** None where the field is left out. */
function lineAt(from: JsonObject, label: string, key: string, unit = ''): readonly Line[] {
  const value = textAt(from, key)
  return value === undefined ? [] : [[label, `${value}${unit}`]]
}

function jobLines(spec: JsonObject): readonly Line[] {
  return [
    ['Parallelism', textAt(spec, 'parallelism') ?? '<unset>'],
    ['Completions', textAt(spec, 'completions') ?? '<unset>'],
    ...lineAt(spec, 'Completion Mode', 'completionMode'),
    ...(spec['suspend'] === true ? [['Suspend', 'true'] as const] : []),
    ...lineAt(spec, 'Backoff Limit', 'backoffLimit'),
    ...lineAt(spec, 'Active Deadline Seconds', 'activeDeadlineSeconds', 's'),
    ...lineAt(spec, 'TTL Seconds After Finished', 'ttlSecondsAfterFinished'),
  ]
}

function jobStatusLines(status: JsonObject): readonly Line[] {
  const [start, end] = ['startTime', 'completionTime'].map((key) => textAt(status, key))
  const ran = Date.parse(end ?? '') - Date.parse(start ?? '')
  const count = (key: string): string => textAt(status, key) ?? '0'
  return [
    ...(start === undefined ? [] : [['Start Time', describeTime(start)] as const]),
    ...(end === undefined ? [] : [['Completed At', describeTime(end)] as const]),
    ...(Number.isNaN(ran) ? [] : [['Duration', formatAge(ran)] as const]),
    [
      'Pods Statuses',
      `${count('active')} Active (${count('ready')} Ready) / ${count('succeeded')} Succeeded / ${count('failed')} Failed`,
    ],
    ...lineAt(status, 'Completed Indexes', 'completedIndexes'),
    ...lineAt(status, 'Failed Indexes', 'failedIndexes'),
  ]
}

function templateOf({ kind, spec }: WorkloadObject): JsonObject {
  const owner = kind === 'CronJob' ? objectAt(objectAt(spec, 'jobTemplate'), 'spec') : spec
  return objectAt(owner, 'template') ?? {}
}

function describeTemplate(template: JsonObject): readonly string[] {
  const text = new Description()
  const metadata = objectAt(template, 'metadata')
  const spec = objectAt(template, 'spec') ?? {}
  text.add(0, 'Labels', entriesOf(objectAt(metadata, 'labels'), '='))
  const annotations = entriesOf(objectAt(metadata, 'annotations'), ': ')
  if (annotations.length > 0) text.add(0, 'Annotations', annotations)
  for (const [label, list] of [
    ['Init Containers', 'initContainers'],
    ['Containers', 'containers'],
  ] as const) {
    const containers = objectsAt(spec, list)
    if (containers.length > 0) text.addLine(0, `${label}:`)
    for (const container of containers) describeContainer(text, container, undefined, [])
  }
  describeVolumes(text, spec)
  return text.lines
}

/** The columns of an object of any kind in the layout of `kubectl describe`, then its data. */
export function describeObject(kind: ServedKind, object: ResourceObject, nowMs: number): string {
  const { name, namespace, labels, annotations } = object.metadata
  const text = new Description()
  text.add(0, 'Name', name)
  if (namespace !== undefined) text.add(0, 'Namespace', namespace)
  text.add(0, 'Labels', entriesOf(labels, '='))
  text.add(0, 'Annotations', entriesOf(annotations, ': '))
  for (const { name, cell } of columnsFor('podd', kind)) {
    const label = name.charAt(0) + name.slice(1).toLowerCase()
    if (!['Name', 'Data', 'Keys'].includes(name)) text.add(0, label, String(cell(object, nowMs)) || '<none>')
  }
  if ('data' in object && isJsonObject(object.data)) text.addBlock(0, 'Data', entriesOf(object.data, ': '))
  // As kubectl writes it (`kubectl/pkg/describe/describe.go` ConfigMapDescriber, 1.36).
  if ('binaryData' in object && isJsonObject(object.binaryData)) {
    for (const line of ['', 'BinaryData', '====']) text.addLine(0, line)
    for (const line of sizesOf(object.binaryData)) text.addLine(0, line)
  }
  return text.toString()
}

/** Of base64: `key: 12 bytes`, sorted by key. */
function sizesOf(data: JsonObject): readonly string[] {
  return Object.keys(data)
    .sort()
    .map((key) => `${key}: ${Buffer.byteLength(textAt(data, key) ?? '', 'base64')} bytes`)
}

/** Builds an indented text of labelled values, as `kubectl describe` writes it. */
export class Description {
  readonly #lines: string[] = []

  /** `Label:  value`; further lines of the value below it. */
  add(
    level: number,
    label: string,
    value: string | readonly string[],
    width = level === 0 ? 18 : 20 - 2 * level,
  ): void {
    const lines = linesOf(typeof value === 'string' ? [value] : value)
    const head = `${'  '.repeat(level)}${`${label}: `.padEnd(width)}`
    const [first = '<none>', ...rest] = lines
    this.#lines.push(`${head}${first}`.trimEnd())
    for (const line of rest) this.#lines.push(`${' '.repeat(head.length)}${line}`)
  }

  /** A label, with its content on lines of their own, one level deeper. */
  addBlock(level: number, label: string, lines: readonly string[]): void {
    if (lines.length === 0) {
      this.add(level, label, '<none>')
      return
    }
    this.#lines.push(`${'  '.repeat(level)}${label}:`)
    for (const line of linesOf(lines)) this.#lines.push(`${'  '.repeat(level + 1)}${line}`)
  }

  addLine(level: number, line: string): void {
    this.#lines.push(`${'  '.repeat(level)}${line}`)
  }

  get lines(): readonly string[] {
    return this.#lines
  }

  toString(): string {
    return escapeControls(`${this.#lines.join('\n')}\n`)
  }
}

/** Further lines of a value are indented, so that they don't look like separate values. */
function linesOf(values: readonly string[]): readonly string[] {
  return values.flatMap((value) => value.trimEnd().replaceAll('\n', '\n  ').split('\n'))
}

/** As kubectl writes times: `Fri, 20 Nov 2026 11:08:02 +0000`. */
function describeTime(time: string | undefined): string {
  const timeMs = time === undefined ? Number.NaN : Date.parse(time)
  return Number.isNaN(timeMs) ? '<unknown>' : new Date(timeMs).toUTCString().replace('GMT', '+0000')
}
