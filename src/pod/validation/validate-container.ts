import type {
  ContainerPort,
  ContainerSpec,
  LifecycleHandler,
  Probe,
  VolumeMount,
} from '../schema/container-schema.ts'
import type { Issues } from '../schema/issues.ts'
import type { PodSpec } from '../schema/pod-schema.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
import { dnsLabel, httpHeaderName, ipAddress, portName } from './name-rules.ts'
import { localPath } from './path-rules.ts'
import { validateEnv } from './validate-env.ts'
import { validateResources } from './validate-resources.ts'
import { validateSecurityContext } from './validate-security-context.ts'

export const probeKinds = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const

/** A pod's volumes by their names. */
export type VolumesByName = ReadonlyMap<string, VolumeSpec>

/** What holds for every container, of whichever list. Source: pkg/apis/core/validation (validateContainerCommon). */
export function validateContainer(
  container: ContainerSpec,
  { spec, volumes }: { readonly spec: PodSpec; readonly volumes: VolumesByName },
  issues: Issues,
): void {
  const { name, image, terminationMessagePath } = container
  issues.of('name').requiredName(name, dnsLabel)
  if (image === '') issues.of('image').required()
  else if (image.trim() !== image) {
    issues.of('image').invalid(image, 'must not have leading or trailing whitespace')
  }
  if (terminationMessagePath === '') issues.of('terminationMessagePath').required()
  validatePorts(container.ports, spec.hostNetwork, issues.of('ports'))
  validateEnv(container, new Map(spec.volumes.map((volume) => [volume.name, volume])), issues)
  validateMounts(container, volumes, issues.of('volumeMounts'))
  validateResources(container.resources, issues.of('resources'))
  validateResizePolicy(container, spec, issues.of('resizePolicy'))
  validateRestartRules(container, issues)
  for (const kind of probeKinds) {
    const probe = container[kind]
    if (probe !== undefined) validateProbe(kind, probe, issues.of(kind))
  }
  for (const hook of ['postStart', 'preStop'] as const) {
    const handler = container.lifecycle?.[hook]
    if (handler === undefined) continue
    validateLifecycleHandler(handler, spec.terminationGracePeriodSeconds, issues.of('lifecycle', hook))
  }
  const signal = container.lifecycle?.stopSignal
  if (signal !== undefined) validateStopSignal(signal, spec.os?.name, issues.of('lifecycle', 'stopSignal'))
  const { securityContext } = container
  if (securityContext !== undefined) {
    validateSecurityContext(securityContext, spec, issues.of('securityContext'))
  }
}

function validatePorts(ports: readonly ContainerPort[], hostNetwork: boolean, issues: Issues): void {
  issues.unique(
    ports,
    (port) => port.name,
    (index) => issues.of(index, 'name'),
  )
  for (const [index, port] of ports.entries()) {
    const at = issues.of(index)
    at.of('name').optionalName(port.name, portName)
    if (port.containerPort === 0) at.of('containerPort').required()
    else at.of('containerPort').range(port.containerPort, 1, 65_535)
    if (port.hostPort !== undefined && port.hostPort !== 0) {
      at.of('hostPort').range(port.hostPort, 1, 65_535)
      if (hostNetwork && port.hostPort !== port.containerPort) {
        at.of('hostPort').invalid(port.hostPort, 'must match `containerPort` when `hostNetwork` is true')
      }
    }
    const { hostIP = '', hostPort = 0 } = port
    if (hostIP !== '' && hostPort !== 0 && ipAddress(hostIP).length > 0) {
      at.of('hostIP').refused(`${JSON.stringify(hostIP)} is no IP address`)
    }
    // Linux sends nothing from ::1 to another interface, as route_localnet lets it do from 127.0.0.1.
    if (hostIP === '::1' && hostPort !== 0 && !hostNetwork)
      at.of('hostIP').warn(
        'nothing answers there: Linux forwards no packets from ::1 to pods',
        'Use 127.0.0.1, or an address of this host that is not its loopback.',
      )
  }
}

function validateMounts(
  { volumeMounts, securityContext }: ContainerSpec,
  volumes: VolumesByName,
  issues: Issues,
): void {
  const mountPaths = new Set<string>()
  for (const [index, mount] of volumeMounts.entries()) {
    const at = issues.of(index)
    if (mount.name === '') at.of('name').required()
    if (!volumes.has(mount.name)) at.of('name').notFound(mount.name)
    if (mount.mountPath === '') at.of('mountPath').required()
    if (mountPaths.has(mount.mountPath)) {
      at.of('mountPath').invalid(mount.mountPath, 'must be unique')
    }
    mountPaths.add(mount.mountPath)
    const { subPath = '', subPathExpr = '' } = mount
    if (subPath !== '') localPath(subPath, issues.of('subPath'), at.of('subPath'))
    validatePropagation(mount, securityContext?.privileged === true, issues, at)
    if (subPathExpr === '') continue
    if (subPath !== '') {
      at.of('subPathExpr').invalid(subPathExpr, 'subPathExpr and subPath are mutually exclusive')
    }
    localPath(subPathExpr, issues.of('subPathExpr'), at.of('subPathExpr'))
  }
}

function validateResizePolicy({ resizePolicy }: ContainerSpec, spec: PodSpec, issues: Issues): void {
  const seen = new Set<string>()
  for (const [index, policy] of resizePolicy.entries()) {
    const near = issues.of(index)
    if (seen.has(policy.resourceName)) near.duplicate(policy.resourceName)
    seen.add(policy.resourceName)
    for (const [field, words] of Object.entries(resizeWords)) {
      const word = field === 'resourceName' ? policy.resourceName : policy.restartPolicy
      if (word === '') issues.required(undefined, near)
      else if (!words.includes(word)) issues.unsupported(word, words, near.of(field))
    }
    if (spec.restartPolicy !== 'Never' || policy.restartPolicy === 'NotRequired') continue
    const detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
    issues.invalid(policy.restartPolicy, detail, near.of('restartPolicy'))
  }
}

const resizeWords: Readonly<Record<'resourceName' | 'restartPolicy', readonly string[]>> = {
  resourceName: ['cpu', 'memory'],
  restartPolicy: ['NotRequired', 'RestartContainer'],
}

/** Source: pkg/apis/core/validation (validateMountPropagation, validateMountRecursiveReadOnly), 1.36. */
function validatePropagation(mount: VolumeMount, privileged: boolean, issues: Issues, near: Issues): void {
  const { mountPropagation = 'None', recursiveReadOnly = 'Disabled' } = mount
  if (mountPropagation === 'Bidirectional' && !privileged) {
    const detail = 'Bidirectional mount propagation is available only to privileged containers'
    issues.of('mountPropagation').forbidden(detail, near.of('mountPropagation'))
  }
  if (recursiveReadOnly === 'Disabled') return
  const at = issues.of('recursiveReadOnly')
  const nearAt = near.of('recursiveReadOnly')
  if (!mount.readOnly) at.forbidden('may only be specified when readOnly is true', nearAt)
  if (mountPropagation !== 'None') {
    at.forbidden('may only be specified when mountPropagation is None or not specified', nearAt)
  }
}

const probeNumbers = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const

type Handler = Pick<Probe, 'exec' | 'httpGet' | 'tcpSocket' | 'grpc'>

/** Source: pkg/apis/core/validation (validateProbe, validateLivenessProbe, …), 1.36. */
function validateProbe(kind: (typeof probeKinds)[number], probe: Probe, issues: Issues): void {
  validateHandler(probe, ['exec', 'httpGet', 'tcpSocket', 'grpc'], issues)
  for (const field of probeNumbers) issues.of(field).range(probe[field], 0)
  if (kind !== 'readinessProbe' && probe.successThreshold !== 1) {
    issues.of('successThreshold').invalid(probe.successThreshold, 'must be 1')
  }
  const grace = probe.terminationGracePeriodSeconds
  if (grace === undefined) return
  const at = issues.of('terminationGracePeriodSeconds')
  if (kind === 'readinessProbe') at.invalid(grace, 'must not be set for readinessProbes')
  else if (grace <= 0) at.invalid(grace, 'must be greater than 0')
}

/** `graceSeconds` is the pod's, which a sleep must fit into. */
function validateLifecycleHandler(handler: LifecycleHandler, graceSeconds: number, issues: Issues): void {
  const [first] = validateHandler(handler, ['exec', 'httpGet', 'tcpSocket', 'sleep'], issues)
  const seconds = first === 'sleep' ? handler.sleep?.seconds : undefined
  if (seconds !== undefined && (seconds < 0 || seconds > graceSeconds)) {
    const detail = `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`
    issues.of('sleep').invalid(seconds, detail, issues.of('sleep', 'seconds'))
  }
}

/** The schema has checked that it is a signal of Linux. Source: pkg/apis/core/validation (validateStopSignal), 1.36. */
function validateStopSignal(signal: string, os: string | undefined, issues: Issues): void {
  const ofWindows = ['SIGKILL', 'SIGTERM']
  if (os === undefined) issues.forbidden('may not be set for containers with empty `spec.os.name`')
  else if (os === 'windows' && !ofWindows.includes(signal)) issues.unsupported(signal, ofWindows)
}

/** Gives the kinds that were given. */
function validateHandler(
  handler: Handler | LifecycleHandler,
  kinds: readonly string[],
  issues: Issues,
): readonly string[] {
  const given = kinds.filter((kind) => kind in handler)
  if (given.length === 0) issues.required('must specify a handler type')
  for (const extra of given.slice(1)) {
    issues.of(extra).oneTooMany('handler type')
  }
  // Of more than one it looks into the first.
  const isFirst = (kind: string): boolean => kind === given[0]
  const { exec, httpGet } = handler
  if (isFirst('exec') && exec?.command.length === 0) issues.of('exec', 'command').required()
  if (isFirst('httpGet') && httpGet !== undefined) {
    validatePort(httpGet.port, issues.of('httpGet', 'port'))
    for (const [index, header] of httpGet.httpHeaders.entries()) {
      const at = issues.of('httpGet', 'httpHeaders')
      at.name(header.name, httpHeaderName, at.of(index))
    }
  }
  if (isFirst('tcpSocket') && handler.tcpSocket !== undefined) {
    validatePort(handler.tcpSocket.port, issues.of('tcpSocket', 'port'))
  }
  if (isFirst('grpc') && 'grpc' in handler && handler.grpc !== undefined) {
    issues.of('grpc', 'port').range(handler.grpc.port, 1, 65_535)
  }
  return given
}

function validatePort(port: number | string, issues: Issues): void {
  if (typeof port === 'number') issues.range(port, 1, 65_535)
  else issues.name(port, portName)
}

const maxRules = 20
const maxExitCodes = 255

/** Source: pkg/apis/core/validation (validateContainerRestartPolicy), 1.36. */
function validateRestartRules({ restartPolicy, restartPolicyRules }: ContainerSpec, issues: Issues): void {
  if (restartPolicyRules.length === 0) return
  const at = issues.of('restartPolicyRules')
  if (restartPolicy === undefined) {
    issues.of('restartPolicy').required('must specify restartPolicy when restart rules are used')
  }
  if (restartPolicyRules.length > maxRules) {
    at.tooMany(restartPolicyRules.length, maxRules)
  }
  for (const [index, { exitCodes }] of restartPolicyRules.entries()) {
    const rulePath = at.of(index, 'exitCodes')
    if (exitCodes === undefined) {
      rulePath.required('must be specified')
      continue
    }
    const { values } = exitCodes
    if (values.length > maxExitCodes) rulePath.of('values').tooMany(values.length, maxExitCodes)
  }
}
