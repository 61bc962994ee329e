import { securityContextSchema } from '../schema/container-schema.ts'
import type {
  ContainerPort,
  ContainerSpec,
  LifecycleHandler,
  Probe,
  VolumeMount,
} from '../schema/container-schema.ts'
import { fieldOf } from '../schema/issues.ts'
import type { FieldPath, Issues } from '../schema/issues.ts'
import type { PodSpec } from '../schema/pod-schema.ts'
import { string } from '../schema/types.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
import { dnsLabel, httpHeaderName, ipAddress, portName } from './name-rules.ts'
import { localPath } from './path-rules.ts'
import { validateEnv } from './validate-env.ts'
import { validateResources } from './validate-resources.ts'
import { validateSecurityContext } from './validate-security-context.ts'

const probeKinds = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const

/** A pod's volumes by their names. */
export type VolumesByName = ReadonlyMap<string, VolumeSpec>

/** What holds for every container, of whichever list. Source: pkg/apis/core/validation (validateContainerCommon). */
export function validateContainer(
  container: ContainerSpec,
  { spec, volumes }: { readonly spec: PodSpec; readonly volumes: VolumesByName },
  path: FieldPath,
  issues: Issues,
): void {
  const { name, image, terminationMessagePath } = container
  if (name === '') issues.required([...path, 'name'])
  else issues.name([...path, 'name'], name, dnsLabel)
  if (image === '') issues.required([...path, 'image'])
  else if (image.trim() !== image) {
    issues.invalid([...path, 'image'], image, 'must not have leading or trailing whitespace')
  }
  if (terminationMessagePath === '') issues.required([...path, 'terminationMessagePath'])
  validatePorts(container.ports, spec.hostNetwork, [...path, 'ports'], issues)
  validateEnv(container, new Map(spec.volumes.map((volume) => [volume.name, volume])), path, issues)
  validateMounts(container, volumes, [...path, 'volumeMounts'], issues)
  validateResources(container.resources, [...path, 'resources'], issues)
  validateResizePolicy(container, spec, [...path, 'resizePolicy'], issues)
  validateRestartRules(container, path, issues)
  for (const kind of probeKinds) {
    const probe = container[kind]
    if (probe !== undefined) validateProbe(kind, probe, [...path, kind], issues)
  }
  for (const hook of ['postStart', 'preStop'] as const) {
    const handler = container.lifecycle?.[hook]
    if (handler === undefined) continue
    validateLifecycleHandler(
      handler,
      spec.terminationGracePeriodSeconds,
      [...path, 'lifecycle', hook],
      issues,
    )
  }
  const signal = container.lifecycle?.stopSignal
  if (signal !== undefined)
    validateStopSignal(signal, spec.os?.name, [...path, 'lifecycle', 'stopSignal'], issues)
  const securityContext = fieldOf(container, 'securityContext', securityContextSchema)
  if (securityContext !== undefined) {
    validateSecurityContext(securityContext, spec, [...path, 'securityContext'], issues)
  }
}

function validatePorts(
  ports: readonly ContainerPort[],
  hostNetwork: boolean,
  path: FieldPath,
  issues: Issues,
): void {
  issues.unique(
    ports,
    (port) => port.name,
    (index) => [...path, index, 'name'],
  )
  for (const [index, port] of ports.entries()) {
    const at = [...path, index]
    if (port.name !== undefined && port.name !== '') issues.name([...at, 'name'], port.name, portName)
    if (port.containerPort === 0) issues.required([...at, 'containerPort'])
    else issues.range([...at, 'containerPort'], port.containerPort, 1, 65_535)
    if (port.hostPort !== undefined && port.hostPort !== 0) {
      issues.range([...at, 'hostPort'], port.hostPort, 1, 65_535)
      if (hostNetwork && port.hostPort !== port.containerPort) {
        issues.invalid(
          [...at, 'hostPort'],
          port.hostPort,
          'must match `containerPort` when `hostNetwork` is true',
        )
      }
    }
    const { hostIP = '', hostPort = 0 } = port
    if (hostIP !== '' && hostPort !== 0 && ipAddress(hostIP).length > 0) {
      issues.refused([...at, 'hostIP'], `${JSON.stringify(hostIP)} is no IP address`)
    }
  }
}

function validateMounts(
  { volumeMounts, securityContext }: ContainerSpec,
  volumes: VolumesByName,
  path: FieldPath,
  issues: Issues,
): void {
  const mountPaths = new Set<string>()
  for (const [index, mount] of volumeMounts.entries()) {
    const at = [...path, index]
    if (mount.name === '') issues.required([...at, 'name'])
    if (!volumes.has(mount.name)) issues.notFound([...at, 'name'], mount.name)
    if (mount.mountPath === '') issues.required([...at, 'mountPath'])
    if (mountPaths.has(mount.mountPath)) {
      issues.invalid([...at, 'mountPath'], mount.mountPath, 'must be unique')
    }
    mountPaths.add(mount.mountPath)
    const subPath = fieldOf(mount, 'subPath', string)
    if (subPath !== undefined && subPath !== '') {
      localPath(subPath, [...path, 'subPath'], issues, [...at, 'subPath'])
    }
    validatePropagation(mount, securityContext?.privileged === true, path, issues, at)
    const subPathExpr = fieldOf(mount, 'subPathExpr', string)
    if (subPathExpr === undefined || subPathExpr === '') continue
    if (subPath !== undefined && subPath !== '') {
      issues.invalid([...at, 'subPathExpr'], subPathExpr, 'subPathExpr and subPath are mutually exclusive')
    }
    localPath(subPathExpr, [...path, 'subPathExpr'], issues, [...at, 'subPathExpr'])
  }
}

function validateResizePolicy(
  { resizePolicy }: ContainerSpec,
  spec: PodSpec,
  path: FieldPath,
  issues: Issues,
): void {
  const seen = new Set<string>()
  for (const [index, policy] of resizePolicy.entries()) {
    const near = [...path, index]
    if (seen.has(policy.resourceName)) issues.duplicate(near, policy.resourceName)
    seen.add(policy.resourceName)
    for (const [field, words] of Object.entries(resizeWords)) {
      const word = field === 'resourceName' ? policy.resourceName : policy.restartPolicy
      if (word === '') issues.required(path, undefined, near)
      else if (!words.includes(word)) issues.unsupported(path, word, words, [...near, field])
    }
    if (spec.restartPolicy !== 'Never' || policy.restartPolicy === 'NotRequired') continue
    const detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
    issues.invalid(path, policy.restartPolicy, detail, [...near, 'restartPolicy'])
  }
}

const resizeWords: Readonly<Record<'resourceName' | 'restartPolicy', readonly string[]>> = {
  resourceName: ['cpu', 'memory'],
  restartPolicy: ['NotRequired', 'RestartContainer'],
}

/** Source: pkg/apis/core/validation (validateMountPropagation, validateMountRecursiveReadOnly), 1.36. */
function validatePropagation(
  mount: VolumeMount,
  privileged: boolean,
  path: FieldPath,
  issues: Issues,
  near: FieldPath,
): void {
  const { mountPropagation = 'None', recursiveReadOnly = 'Disabled' } = mount
  if (mountPropagation === 'Bidirectional' && !privileged) {
    const detail = 'Bidirectional mount propagation is available only to privileged containers'
    issues.forbidden([...path, 'mountPropagation'], detail, [...near, 'mountPropagation'])
  }
  if (recursiveReadOnly === 'Disabled') return
  const at = [...path, 'recursiveReadOnly']
  const nearAt = [...near, 'recursiveReadOnly']
  if (!mount.readOnly) issues.forbidden(at, 'may only be specified when readOnly is true', nearAt)
  if (mountPropagation !== 'None') {
    issues.forbidden(at, 'may only be specified when mountPropagation is None or not specified', nearAt)
  }
}

type Handler = Pick<Probe, 'exec' | 'httpGet' | 'tcpSocket' | 'grpc'>

export type ProbeKind = 'livenessProbe' | 'readinessProbe' | 'startupProbe'

/** Source: pkg/apis/core/validation (validateProbe, validateLivenessProbe, …), 1.36. */
function validateProbe(kind: ProbeKind, probe: Probe, path: FieldPath, issues: Issues): void {
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
function validateLifecycleHandler(
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
function validateStopSignal(signal: string, os: string | undefined, path: FieldPath, issues: Issues): void {
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

const maxRules = 20
const maxExitCodes = 255

/** Source: pkg/apis/core/validation (validateContainerRestartPolicy), 1.36. */
function validateRestartRules(
  { restartPolicy, restartPolicyRules }: ContainerSpec,
  path: FieldPath,
  issues: Issues,
): void {
  if (restartPolicyRules.length === 0) return
  const at = [...path, 'restartPolicyRules']
  if (restartPolicy === undefined) {
    issues.required([...path, 'restartPolicy'], 'must specify restartPolicy when restart rules are used')
  }
  if (restartPolicyRules.length > maxRules) {
    issues.tooMany(at, restartPolicyRules.length, maxRules)
  }
  for (const [index, { exitCodes }] of restartPolicyRules.entries()) {
    const rulePath = [...at, index, 'exitCodes']
    if (exitCodes === undefined) {
      issues.required(rulePath, 'must be specified')
      continue
    }
    const { values } = exitCodes
    if (values.length > maxExitCodes) issues.tooMany([...rulePath, 'values'], values.length, maxExitCodes)
  }
}
