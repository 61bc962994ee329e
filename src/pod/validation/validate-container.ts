import type { FieldPath } from '../schema/field-path.ts'
import type { ContainerPort, ContainerSpec, VolumeMount } from '../schema/container-schema.ts'
import { securityContextSchema } from '../schema/container-schema.ts'
import { string } from '../schema/types.ts'
import type { PodSpec } from '../schema/pod-schema.ts'
import type { VolumeSpec } from '../schema/volume-schema.ts'
import type { Issues } from './issues.ts'
import { fieldOf } from './issues.ts'
import { dnsLabel, ipAddress, portName } from './name-rules.ts'
import { validateEnv } from './validate-env.ts'
import { validateLifecycleHandler, validateProbe, validateStopSignal } from './validate-handlers.ts'
import { validateResources } from './validate-resources.ts'
import { validateRestartRules } from './validate-restart-rules.ts'
import { validateSecurityContext } from './validate-security-context.ts'
import { localPath } from './path-rules.ts'

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
