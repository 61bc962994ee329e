import type { JsonObject } from '../../base/json.ts'
import { isJsonObject } from '../../base/json.ts'
import type { FieldPath, FieldProblem } from '../schema/field-path.ts'
import type { ContainerSpec } from '../schema/container-schema.ts'
import type { Pod, PodSpec } from '../schema/pod-schema.ts'
import { podSecurityContextSchema } from '../schema/pod-schema.ts'
import { fieldOf, Issues } from './issues.ts'
import { dnsLabel, dnsSubdomain } from './name-rules.ts'
import { podNameTooLong } from './pod-name-length.ts'
import { validateAnnotations } from './validate-annotations.ts'
import { validateContainer } from './validate-container.ts'
import { validateScheduling } from './validate-scheduling.ts'
import { validateClusterMetadata, validateMetadata } from './validate-metadata.ts'
import { validateNetwork } from './validate-network.ts'
import { validateWindows } from './validate-windows.ts'
import { normalSysctl, sysctlNamespace } from '../values/sysctl-name.ts'
import { validatePodSecurityContext, validateSysAdmin } from './validate-security-context.ts'
import { validateOverhead, validatePodResources } from './validate-resources.ts'
import { validateRefusedFields } from './validate-refused-fields.ts'
import { validateVolumes } from './validate-volumes.ts'

const probeKinds = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const
const lists = ['initContainers', 'containers', 'ephemeralContainers'] as const

/**
 * Validates a defaulted Pod as Kubernetes does, with its messages and paths. (The schema check has already covered
 * types, names and enumerations.) Fields without effect are only in `manifest`. `checked`: the schema's result. Source:
 * pkg/apis/core/validation/validation.go, 1.36.
 */
export function validatePod(
  pod: Pod,
  manifest: JsonObject = {},
  checked: readonly FieldProblem[] = [],
): readonly FieldProblem[] {
  const issues = new Issues()
  const path = ['spec']
  validateMetadata(pod.metadata, ['metadata'], issues)
  validateNameLength(pod.metadata, ['metadata', 'name'], issues)
  validateClusterMetadata('Pod', manifest['metadata'], ['metadata'], issues)
  const given = isJsonObject(manifest['spec']) ? manifest['spec'] : {}
  validateAnnotations(pod, { nodeName: given['nodeName'] }, ['metadata', 'annotations'], issues)
  validateScheduling(given, path, issues)
  validateWindows(given, path, issues)
  validateSpec(pod.spec, path, issues)
  const { spec } = pod
  const volumes = validateVolumes(spec.volumes, [...path, 'volumes'], issues, {
    given: Array.isArray(given['volumes']) ? given['volumes'] : [],
    faulty: faultyVolumes(checked),
  })
  validateRefusedFields(given, volumes, path, issues)
  validateSysAdmin(given, path, issues)
  validateNames(spec, path, issues)
  for (const list of lists) {
    for (const [index, container] of spec[list].entries()) {
      validateContainer(container, { spec, volumes }, [...path, list, index], issues)
    }
  }
  pod.spec.initContainers.forEach((container, index) => {
    validateInitContainer(container, [...path, 'initContainers', index], issues)
  })
  validateEphemeralContainers(pod.spec, [...path, 'ephemeralContainers'], issues)
  validateHostPorts(pod.spec, path, issues)
  return issues.problems
}

function validateNameLength({ namespace, name }: Pod['metadata'], path: FieldPath, issues: Issues): void {
  const refusal = podNameTooLong({ namespace, name })
  if (refusal === undefined) return
  // What is no name at all has its problem.
  const isName = dnsSubdomain(name).length === 0 && dnsLabel(namespace).length === 0
  if (isName) issues.refused(path, refusal)
}

/** The indexes of volumes whose problems are already reported. */
function faultyVolumes(checked: readonly FieldProblem[]): ReadonlySet<string | number | undefined> {
  const errors = checked.filter(({ severity, reason }) => severity === 'error' && reason !== 'RefusedHere')
  const ofVolumes = errors.filter(({ path }) => path[0] === 'spec' && path[1] === 'volumes')
  return new Set(ofVolumes.map(({ path }) => path[2]))
}

function validateSpec(spec: PodSpec, path: FieldPath, issues: Issues): void {
  if (spec.containers.length === 0) issues.required([...path, 'containers'])
  issues.range([...path, 'activeDeadlineSeconds'], spec.activeDeadlineSeconds, 1, 2 ** 31 - 1)
  for (const field of ['hostname', 'subdomain'] as const) {
    const value = spec[field]
    if (value !== undefined && value !== '') issues.name([...path, field], value, dnsLabel)
  }
  if (spec.os !== undefined) validateOs(spec.os.name, [...path, 'os'], issues)
  if (spec.hostPID && spec.shareProcessNamespace) {
    issues.invalid(
      [...path, 'securityContext', 'shareProcessNamespace'],
      true,
      'ShareProcessNamespace and HostPID cannot both be enabled',
      [...path, 'shareProcessNamespace'],
    )
  }
  // Two of the paths begin with a capital in the API server, too.
  for (const [field, name] of [
    ['hostNetwork', 'hostNetwork'],
    ['hostPID', 'HostPID'],
    ['hostIPC', 'HostIPC'],
  ] as const) {
    if (spec.hostUsers === false && spec[field]) {
      issues.forbidden([...path, name], 'when `hostUsers` is false', [...path, field])
    }
  }
  const { priorityClassName = '', runtimeClassName } = spec
  if (priorityClassName !== '') issues.name([...path, 'priorityClassName'], priorityClassName, dnsSubdomain)
  if (runtimeClassName !== undefined) {
    issues.name([...path, 'runtimeClassName'], runtimeClassName, dnsSubdomain)
  }
  validateNetwork(spec, path, issues)
  validatePodResources(spec, [...path, 'resources'], issues)
  validateOverhead(spec.overhead, [...path, 'overhead'], issues, [...path, 'overhead'])
  const securityContext = fieldOf(spec, 'securityContext', podSecurityContextSchema)
  if (securityContext !== undefined) {
    validatePodSecurityContext(securityContext, spec, [...path, 'securityContext'], issues)
    validateHostSysctls(spec, path, issues)
  }
}

function validateOs(name: string, path: FieldPath, issues: Issues): void {
  const near = [...path, 'name']
  if (name === '') issues.required([...path, 'name'])
  // A pod for another operating system is rejected at admission.
  else if (name !== 'linux' && name !== 'windows') issues.unsupported(path, name, ['linux'], near)
}

/** No sysctl of a namespace shared with the host. Source: pkg/apis/core/validation (ValidateHostSysctl), 1.36. */
function validateHostSysctls(spec: PodSpec, path: FieldPath, issues: Issues): void {
  const shared = { Net: spec.hostNetwork, IPC: spec.hostIPC }
  for (const [index, { name }] of (spec.securityContext?.sysctls ?? []).entries()) {
    const namespace = sysctlNamespace(normalSysctl(name))
    if (namespace === undefined || !shared[namespace]) continue
    const field = namespace === 'Net' ? 'hostNetwork' : 'hostIPC'
    const at = [...path, 'securityContext', 'sysctls', index, 'name']
    issues.invalid(at, name, `may not be specified when '${field}' is true`)
  }
}

/** Names of containers are unique across all lists. */
function validateNames(spec: PodSpec, path: FieldPath, issues: Issues): void {
  // In this order, so that the complaint falls on the init container as it does in Kubernetes.
  const all = (['containers', 'initContainers', 'ephemeralContainers'] as const).flatMap((list) =>
    spec[list].map(({ name }, index) => ({ name, path: [...path, list, index, 'name'] })),
  )
  issues.unique(
    all,
    ({ name }) => name,
    (index) => all[index]?.path ?? path,
  )
}

function validateInitContainer(container: ContainerSpec, path: FieldPath, issues: Issues): void {
  if (container.restartPolicy === 'Always') return
  const detail = 'may not be set for init containers without restartPolicy=Always'
  for (const field of ['lifecycle', ...probeKinds] as const) {
    if (container[field] !== undefined) issues.forbidden([...path, field], detail)
  }
}

function validateEphemeralContainers(spec: PodSpec, path: FieldPath, issues: Issues): void {
  const names = new Set([...spec.containers, ...spec.initContainers].map(({ name }) => name))
  for (const [index, container] of spec.ephemeralContainers.entries()) {
    const at = [...path, index]
    for (const [position, mount] of container.volumeMounts.entries()) {
      for (const field of ['subPath', 'subPathExpr'] as const) {
        if ((mount[field] ?? '') === '') continue
        issues.forbidden([...at, 'volumeMounts', position, field], 'cannot be set for an Ephemeral Container')
      }
    }
    const target = container.targetContainerName
    if (target !== undefined && target !== '' && !names.has(target)) {
      issues.notFound([...at, 'targetContainerName'], target)
    }
  }
}

/**
 * Host ports are unique among main containers, and within an init container. A sidecar may use the port of another
 * container. Source: pkg/apis/core/validation (checkHostPortConflicts), 1.36.
 */
function validateHostPorts(spec: PodSpec, path: FieldPath, issues: Issues): void {
  for (const list of ['containers', 'initContainers'] as const) {
    let taken = new Set<string>()
    for (const [index, container] of spec[list].entries()) {
      if (list === 'initContainers') taken = new Set<string>()
      for (const [at, { protocol, hostIP, hostPort }] of container.ports.entries()) {
        if (hostPort === undefined || hostPort === 0) continue
        const key = `${protocol}/${hostIP ?? ''}/${hostPort}`
        if (taken.has(key)) issues.duplicate([...path, list, index, 'ports', at, 'hostPort'], key)
        taken.add(key)
      }
    }
  }
}
