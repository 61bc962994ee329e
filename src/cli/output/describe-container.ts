import type { ProbeReportObject } from '../../api/usage.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ContainerState, ContainerStatus } from '../../pod/state/status.ts'
import type { Description } from './description.ts'
import { describeTime } from './description.ts'
import { entriesOf, objectAt, objectsAt, textAt, textsAt } from '../../base/json.ts'

interface DescribedContainer {
  readonly spec: JsonObject
  readonly status: ContainerStatus | undefined
  readonly probes: readonly ProbeReportObject[]
}

/**
 * One container as `kubectl describe pod` shows it (kubectl `pkg/describe/describe.go`, 1.36), and the last failures of
 * its probes.
 */
export function describeContainer(text: Description, { spec, status, probes }: DescribedContainer): void {
  text.addLine(1, `${textAt(spec, 'name') ?? '?'}:`)
  if (status !== undefined) text.add(2, 'Container ID', status.containerID ?? '')
  text.add(2, 'Image', textAt(spec, 'image') ?? '')
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
    describeLastFailure(
      text,
      probes.find((report) => report.probe === kind),
    )
  }
  const sources = objectsAt(spec, 'envFrom').map((source) => formatSource(source))
  if (sources.length > 0) text.addBlock(2, 'Environment Variables from', sources)
  text.addBlock(
    2,
    'Environment',
    objectsAt(spec, 'env').map((variable) => formatVariable(variable)),
  )
  text.addBlock(
    2,
    'Mounts',
    objectsAt(spec, 'volumeMounts').map((mount) => formatMount(mount)),
  )
}

function describePorts(text: Description, ports: readonly JsonObject[]): void {
  if (ports.length === 0) return
  const format = (key: string): string =>
    ports.map((port) => `${textAt(port, key) ?? '0'}/${textAt(port, 'protocol') ?? 'TCP'}`).join(', ')
  text.add(2, ports.length === 1 ? 'Port' : 'Ports', format('containerPort'))
  text.add(2, ports.length === 1 ? 'Host Port' : 'Host Ports', format('hostPort'))
}

function describeState(text: Description, label: string, state: ContainerState): void {
  if (state.running !== undefined) {
    text.add(2, label, 'Running')
    text.add(3, 'Started', describeTime(state.running.startedAt))
  } else if (state.terminated !== undefined) {
    const { reason, message, exitCode, signal, startedAt, finishedAt } = state.terminated
    text.add(2, label, 'Terminated')
    if (reason !== undefined) text.add(3, 'Reason', reason)
    if (message !== undefined && message !== '') text.add(3, 'Message', message.trimEnd().split('\n'))
    text.add(3, 'Exit Code', String(exitCode))
    if (signal !== undefined && signal !== 0) text.add(3, 'Signal', String(signal))
    text.add(3, 'Started', describeTime(startedAt))
    text.add(3, 'Finished', describeTime(finishedAt))
  } else {
    text.add(2, label, 'Waiting')
    const { reason, message } = state.waiting ?? {}
    if (reason !== undefined) text.add(3, 'Reason', reason)
    if (message !== undefined && message !== '') text.add(3, 'Message', message.trimEnd().split('\n'))
  }
}

function describeLastFailure(text: Description, report: ProbeReportObject | undefined): void {
  if (report?.lastFailure === undefined) return
  const { time, message } = report.lastFailure
  text.add(3, 'Last Failure', [describeTime(time), ...message.trimEnd().split('\n')])
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
