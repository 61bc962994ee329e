import type { FieldPath } from '../schema/field-path.ts'
import type { LifecycleHandler, Probe } from '../schema/container-schema.ts'
import type { Issues } from './issues.ts'
import { httpHeaderName, portName } from './name-rules.ts'

type Handler = Pick<Probe, 'exec' | 'httpGet' | 'tcpSocket' | 'grpc'>

export type ProbeKind = 'livenessProbe' | 'readinessProbe' | 'startupProbe'

/** Source: pkg/apis/core/validation (validateProbe, validateLivenessProbe, …), 1.36. */
export function validateProbe(kind: ProbeKind, probe: Probe, path: FieldPath, issues: Issues): void {
  validateHandler(probe, ['exec', 'httpGet', 'tcpSocket', 'grpc'], path, issues)
  for (const field of [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ] as const) {
    issues.range([...path, field], probe[field], 0)
  }
  if (kind !== 'readinessProbe' && probe.successThreshold !== 1) {
    issues.invalid([...path, 'successThreshold'], probe.successThreshold, 'must be 1')
  }
  const grace = probe.terminationGracePeriodSeconds
  if (grace === undefined) return
  const gracePath = [...path, 'terminationGracePeriodSeconds']
  if (kind === 'readinessProbe') issues.invalid(gracePath, grace, 'must not be set for readinessProbes')
  else if (grace <= 0) issues.invalid(gracePath, grace, 'must be greater than 0')
}

/** `graceSeconds` is the pod's, which a sleep must fit into. */
export function validateLifecycleHandler(
  handler: LifecycleHandler,
  graceSeconds: number,
  path: FieldPath,
  issues: Issues,
): void {
  const [first] = validateHandler(handler, ['exec', 'httpGet', 'tcpSocket', 'sleep'], path, issues)
  const seconds = first === 'sleep' ? handler.sleep?.seconds : undefined
  if (seconds !== undefined && (seconds < 0 || seconds > graceSeconds)) {
    issues.invalid(
      [...path, 'sleep'],
      seconds,
      `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`,
      [...path, 'sleep', 'seconds'],
    )
  }
}

/** The schema has checked that it is a signal of Linux. Source: pkg/apis/core/validation (validateStopSignal), 1.36. */
export function validateStopSignal(
  signal: string,
  os: string | undefined,
  path: FieldPath,
  issues: Issues,
): void {
  const ofWindows = ['SIGKILL', 'SIGTERM']
  if (os === undefined) issues.forbidden(path, 'may not be set for containers with empty `spec.os.name`')
  else if (os === 'windows' && !ofWindows.includes(signal)) issues.unsupported(path, signal, ofWindows)
}

/** Gives the kinds that were given. */
function validateHandler(
  handler: Handler | LifecycleHandler,
  kinds: readonly string[],
  path: FieldPath,
  issues: Issues,
): readonly string[] {
  const given = kinds.filter((kind) => kind in handler)
  if (given.length === 0) issues.required(path, 'must specify a handler type')
  for (const extra of given.slice(1)) {
    issues.oneTooMany([...path, extra], 'handler type')
  }
  // Of more than one it looks into the first.
  const isFirst = (kind: string): boolean => kind === given[0]
  const { exec, httpGet } = handler
  if (isFirst('exec') && exec?.command.length === 0) issues.required([...path, 'exec', 'command'])
  if (isFirst('httpGet') && httpGet !== undefined) {
    validatePort(httpGet.port, [...path, 'httpGet', 'port'], issues)
    for (const [index, header] of httpGet.httpHeaders.entries()) {
      const at = [...path, 'httpGet', 'httpHeaders']
      issues.name(at, header.name, httpHeaderName, [...at, index])
    }
  }
  if (isFirst('tcpSocket') && handler.tcpSocket !== undefined) {
    validatePort(handler.tcpSocket.port, [...path, 'tcpSocket', 'port'], issues)
  }
  if (isFirst('grpc') && 'grpc' in handler && handler.grpc !== undefined) {
    issues.range([...path, 'grpc', 'port'], handler.grpc.port, 1, 65_535)
  }
  return given
}

function validatePort(port: number | string, path: FieldPath, issues: Issues): void {
  if (typeof port === 'number') issues.range(path, port, 1, 65_535)
  else issues.name(path, port, portName)
}
