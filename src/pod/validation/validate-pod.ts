import { listOrEmpty, objectOrEmpty, parseJson } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { ContainerSpec } from '../schema/container-schema.ts'
import { Issues } from '../schema/issues.ts'
import type { FieldProblem } from '../schema/issues.ts'
import { allContainers } from '../schema/pod-resources.ts'
import type { Pod, PodDnsConfig, PodSpec } from '../schema/pod-schema.ts'
import { tolerationSchema } from '../schema/scheduling-schema.ts'
import { list, readAs } from '../schema/types.ts'
import { normalSysctl, sysctlNamespace } from '../values/kernel-names.ts'
import { dnsLabel, dnsSubdomain, dnsSubdomainWithUnderscore, ipAddress, oneLine } from './name-rules.ts'
import { localPath } from './path-rules.ts'
import { probeKinds, validateContainer } from './validate-container.ts'
import { validateClusterMetadata, validateMetadata } from './validate-metadata.ts'
import { validateOverhead, validatePodResources } from './validate-resources.ts'
import { validateScheduling, validateTolerations } from './validate-scheduling.ts'
import { validatePodSecurityContext, validateSysAdmin } from './validate-security-context.ts'
import { validateVolumes } from './validate-volumes.ts'
import { validateWindows } from './validate-windows.ts'

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
  const root = new Issues()
  const issues = root.of('spec')
  validateMetadata(pod.metadata, root.of('metadata'))
  validateNameLength(pod.metadata, root.of('metadata', 'name'))
  validateClusterMetadata('Pod', manifest['metadata'], root.of('metadata'))
  const given = objectOrEmpty(manifest['spec'])
  validateAnnotations(pod, { nodeName: given['nodeName'] }, root.of('metadata', 'annotations'))
  validateScheduling(given, issues)
  validateWindows(given, issues)
  const { spec } = pod
  validateSpec(spec, issues)
  const volumes = validateVolumes(spec.volumes, issues.of('volumes'), {
    given: listOrEmpty(given['volumes']),
    faulty: faultyVolumes(checked),
  })
  validateSysAdmin(given, issues)
  validateNames(spec, issues)
  for (const list of lists) {
    for (const [index, container] of spec[list].entries()) {
      validateContainer(container, { spec, volumes }, issues.of(list, index))
    }
  }
  for (const [index, container] of spec.initContainers.entries())
    validateInitContainer(container, issues.of('initContainers', index))
  validateEphemeralContainers(spec, issues.of('ephemeralContainers'))
  validateHostPorts(spec, issues)
  return issues.problems
}

function validateNameLength({ namespace, name }: Pod['metadata'], issues: Issues): void {
  const refusal = podNameTooLong({ namespace, name })
  if (refusal === undefined) return
  // What is no name at all has its problem.
  const isName = dnsSubdomain(name).length === 0 && dnsLabel(namespace).length === 0
  if (isName) issues.refused(refusal)
}

/** The indexes of volumes whose problems are already reported. */
function faultyVolumes(checked: readonly FieldProblem[]): ReadonlySet<string | number | undefined> {
  const errors = checked.filter(({ severity, reason }) => severity === 'error' && reason !== 'RefusedHere')
  const ofVolumes = errors.filter(({ path }) => path[0] === 'spec' && path[1] === 'volumes')
  return new Set(ofVolumes.map(({ path }) => path[2]))
}

function validateSpec(spec: PodSpec, issues: Issues): void {
  if (spec.containers.length === 0) issues.of('containers').required()
  issues.of('activeDeadlineSeconds').range(spec.activeDeadlineSeconds, 1, 2 ** 31 - 1)
  for (const field of ['hostname', 'subdomain'] as const) issues.of(field).optionalName(spec[field], dnsLabel)
  if (spec.os !== undefined) validateOs(spec.os.name, issues.of('os'))
  if (spec.hostPID && spec.shareProcessNamespace) {
    const at = issues.of('securityContext', 'shareProcessNamespace')
    const detail = 'ShareProcessNamespace and HostPID cannot both be enabled'
    at.invalid(true, detail, issues.of('shareProcessNamespace'))
  }
  // Two of the paths begin with a capital in the API server, too.
  for (const [field, name] of [
    ['hostNetwork', 'hostNetwork'],
    ['hostPID', 'HostPID'],
    ['hostIPC', 'HostIPC'],
  ] as const) {
    if (spec.hostUsers === false && spec[field]) {
      issues.of(name).forbidden('when `hostUsers` is false', issues.of(field))
    }
  }
  const { priorityClassName = '', runtimeClassName } = spec
  issues.of('priorityClassName').optionalName(priorityClassName, dnsSubdomain)
  if (runtimeClassName !== undefined) {
    issues.of('runtimeClassName').name(runtimeClassName, dnsSubdomain)
  }
  validateNetwork(spec, issues)
  validatePodResources(spec, issues.of('resources'))
  validateOverhead(spec.overhead, issues.of('overhead'), issues.of('overhead'))
  const { securityContext } = spec
  if (securityContext !== undefined) {
    validatePodSecurityContext(securityContext, spec, issues.of('securityContext'))
    validateHostSysctls(spec, issues)
  }
}

function validateOs(name: string, issues: Issues): void {
  const near = issues.of('name')
  if (name === '') near.required()
  // A pod for another operating system is rejected at admission.
  else if (name !== 'linux' && name !== 'windows') issues.unsupported(name, ['linux'], near)
}

/** No sysctl of a namespace shared with the host. Source: pkg/apis/core/validation (ValidateHostSysctl), 1.36. */
function validateHostSysctls(spec: PodSpec, issues: Issues): void {
  const shared = { Net: spec.hostNetwork, IPC: spec.hostIPC }
  for (const [index, { name }] of (spec.securityContext?.sysctls ?? []).entries()) {
    const namespace = sysctlNamespace(normalSysctl(name))
    if (namespace === undefined || !shared[namespace]) continue
    const field = namespace === 'Net' ? 'hostNetwork' : 'hostIPC'
    const at = issues.of('securityContext', 'sysctls', index, 'name')
    at.invalid(name, `may not be specified when '${field}' is true`)
  }
}

/** Names of containers are unique across all lists. */
function validateNames(spec: PodSpec, issues: Issues): void {
  // In this order, so that the complaint falls on the init container as it does in Kubernetes.
  const all = (['containers', 'initContainers', 'ephemeralContainers'] as const).flatMap((list) =>
    spec[list].map(({ name }, index) => ({ name, at: issues.of(list, index, 'name') })),
  )
  issues.unique(
    all,
    ({ name }) => name,
    (index) => all[index]?.at ?? issues,
  )
}

function validateInitContainer(container: ContainerSpec, issues: Issues): void {
  if (container.restartPolicy === 'Always') return
  const detail = 'may not be set for init containers without restartPolicy=Always'
  for (const field of ['lifecycle', ...probeKinds] as const) {
    if (container[field] !== undefined) issues.of(field).forbidden(detail)
  }
}

function validateEphemeralContainers(spec: PodSpec, issues: Issues): void {
  const names = new Set([...spec.containers, ...spec.initContainers].map(({ name }) => name))
  for (const [index, container] of spec.ephemeralContainers.entries()) {
    const at = issues.of(index)
    for (const [position, mount] of container.volumeMounts.entries()) {
      for (const field of ['subPath', 'subPathExpr'] as const) {
        if ((mount[field] ?? '') === '') continue
        at.of('volumeMounts', position, field).forbidden('cannot be set for an Ephemeral Container')
      }
    }
    const target = container.targetContainerName
    if (target !== undefined && target !== '' && !names.has(target)) {
      at.of('targetContainerName').notFound(target)
    }
  }
}

/**
 * Host ports are unique among main containers, and within an init container. A sidecar may use the port of another
 * container. Source: pkg/apis/core/validation (checkHostPortConflicts), 1.36.
 */
function validateHostPorts(spec: PodSpec, issues: Issues): void {
  for (const list of ['containers', 'initContainers'] as const) {
    let taken = new Set<string>()
    for (const [index, container] of spec[list].entries()) {
      if (list === 'initContainers') taken = new Set<string>()
      for (const [at, { protocol, hostIP, hostPort }] of container.ports.entries()) {
        if (hostPort === undefined || hostPort === 0) continue
        const key = `${protocol}/${hostIP ?? ''}/${hostPort}`
        if (taken.has(key)) issues.of(list, index, 'ports', at, 'hostPort').duplicate(key)
        taken.add(key)
      }
    }
  }
}

const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/'
const seccompPrefixes = [
  'seccomp.security.alpha.kubernetes.io/pod',
  'container.seccomp.security.alpha.kubernetes.io/',
]

const tolerationListSchema = list(tolerationSchema)

/**
 * Annotations by which a pod requests something that podd would not give it. A profile that a field requests too, as the
 * API server writes it into both, is accepted.
 */
function validateAnnotations(
  { metadata, spec }: Pod,
  { nodeName }: { readonly nodeName?: Json | undefined },
  issues: Issues,
): void {
  const confined = confinedContainers(spec)
  const isPodConfined = spec.securityContext?.appArmorProfile !== undefined
  for (const [key, value] of Object.entries(metadata.annotations)) {
    const at = issues.of(key)
    if (/^kubernetes\.io\/(?:in|e)gress-bandwidth$/.test(key)) {
      at.refused('the network of pods has no limits of bandwidth')
    } else if (key.startsWith('cdi.k8s.io/')) {
      at.refused('podd hands out no devices: mount them by a hostPath, into a privileged container')
    } else if (key.startsWith(appArmorPrefix)) {
      if (!isPodConfined && !confined.has(key.slice(appArmorPrefix.length))) {
        at.refused('deprecated in Kubernetes: set securityContext.appArmorProfile')
      }
    } else if (key === 'kubernetes.io/config.mirror') {
      if ((nodeName ?? '') === '') at.invalid(value, 'must set spec.nodeName if mirror pod annotation is set')
    } else if (key === 'scheduler.alpha.kubernetes.io/tolerations') {
      validateTolerationList(key, value, issues)
    } else if (key === 'controller.kubernetes.io/pod-deletion-cost') {
      if (!isInt32(value)) at.invalid(value, 'must be a 32bit integer')
    } else if (seccompPrefixes.some((prefix) => key.startsWith(prefix))) {
      validateSeccomp(value, at)
    }
  }
}

/** Source: pkg/apis/core/validation (ValidateTolerationsInPodAnnotations), 1.36. */
function validateTolerationList(key: string, value: string, issues: Issues): void {
  if (value === '') return
  const given = parseJson(value)
  const list = readAs(tolerationListSchema, given)
  if (list !== undefined) validateTolerations(list, issues.of(key))
  else if (given !== null) issues.invalid(key, 'is no list of tolerations', issues.of(key))
}

/** Source: pkg/apis/core/validation (ValidateSeccompProfile), 1.36. */
function validateSeccomp(profile: string, issues: Issues): void {
  const local = 'localhost/'
  if (profile.startsWith(local)) localPath(profile.slice(local.length), issues)
  else if (!['runtime/default', 'docker/default', 'unconfined'].includes(profile)) {
    issues.invalid(profile, 'must be a valid seccomp profile')
  }
  issues.warn('has no effect, in Kubernetes since 1.27: set securityContext.seccompProfile')
}

/**
 * Zeros at its beginning are taken of a negative one alone (`pkg/apis/core/helper`, GetDeletionCostFromPodAnnotations,
 * 1.36).
 */
function isInt32(text: string): boolean {
  const value = Number(text)
  return /^(?:0|[1-9]\d*|-\d+)$/.test(text) && value < 2 ** 31 && value >= -(2 ** 31)
}

/** The names of containers with an AppArmor profile of their own. */
function confinedContainers(spec: Pod['spec']): ReadonlySet<string> {
  const confined = allContainers(spec).filter(
    ({ securityContext }) => securityContext?.appArmorProfile !== undefined,
  )
  return new Set(confined.map(({ name }) => name))
}

const maxNameservers = 3
const maxSearches = 32
const maxSearchCharacters = 2048
/** What the kernel takes. */
const longestHostname = 64

/** Names and name servers. Source: pkg/apis/core/validation (validatePodDNSConfig, ValidateHostAliases), 1.36. */
function validateNetwork(spec: PodSpec, issues: Issues): void {
  const { dnsConfig } = spec
  if (spec.dnsPolicy === 'None' && dnsConfig === undefined) {
    const detail = 'must provide `dnsConfig` when `dnsPolicy` is None'
    issues.of('dnsConfig').required(detail)
  } else if (spec.dnsPolicy === 'None' && dnsConfig?.nameservers.length === 0) {
    const detail = 'must provide at least one DNS nameserver when `dnsPolicy` is None'
    issues.of('dnsConfig', 'nameservers').required(detail)
  } else if (dnsConfig !== undefined) validateDnsConfig(dnsConfig, issues.of('dnsConfig'))
  validateHostnameOverride(spec, issues)
  for (const [index, { ip, hostnames }] of spec.hostAliases.entries()) {
    const at = issues.of('hostAliases', index)
    at.of('ip').name(ip, ipAddress)
    for (const [position, name] of hostnames.entries()) {
      at.of('hostnames', position).name(name, dnsSubdomain)
    }
  }
}

/** Source: pkg/apis/core/validation (ValidatePodSpec, hostnameOverride), 1.36. */
function validateHostnameOverride(spec: PodSpec, issues: Issues): void {
  const { hostnameOverride, hostNetwork, setHostnameAsFQDN } = spec
  if (hostnameOverride === undefined) return
  const at = issues.of('hostnameOverride')
  if (hostNetwork) at.forbidden('may not be specified when hostNetwork is true')
  if (setHostnameAsFQDN) at.forbidden('may not be specified when setHostnameAsFQDN is true')
  if (hostnameOverride.length > longestHostname) at.tooLong(longestHostname)
  at.name(hostnameOverride, dnsSubdomain)
}

function validateDnsConfig({ nameservers, searches, options }: PodDnsConfig, issues: Issues): void {
  if (nameservers.length > maxNameservers) {
    const detail = `must not have more than ${maxNameservers} nameservers`
    issues.of('nameservers').invalid(nameservers, detail)
  }
  for (const [index, server] of nameservers.entries()) {
    issues.of('nameservers', index).name(server, ipAddress)
  }
  if (searches.length > maxSearches) {
    const detail = `must not have more than ${maxSearches} search paths`
    issues.of('searches').invalid(searches, detail)
  }
  if (searches.join(' ').length > maxSearchCharacters) {
    const detail = `must not have more than ${maxSearchCharacters} characters (including spaces) in the search list`
    issues.of('searches').invalid(searches, detail)
  }
  for (const [index, search] of searches.entries()) {
    // A trailing dot makes it absolute, and `.` alone is the root.
    const name = search.replace(/\.$/, '')
    if (search !== '.') issues.of('searches', index).name(name, dnsSubdomainWithUnderscore)
  }
  for (const [index, option] of options.entries()) {
    const at = issues.of('options', index)
    if (option.name === '') at.required('must not be empty')
    at.of('name').name(option.name, oneLine)
    at.of('value').name(option.value ?? '', oneLine)
  }
}

/**
 * A pod's logs are in a directory named `<namespace>_<name>_<uid>`, and Linux takes file names of 255 bytes. The API
 * server takes longer names, and a kubelet never starts such a pod (kubernetes/kubernetes#104288).
 */
const longestTogether = 255 - '__'.length - 'xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx'.length

/** Why a pod can't have its name; undefined where it can. */
export function podNameTooLong(pod: {
  readonly namespace: string
  readonly name: string
}): string | undefined {
  const length = Buffer.byteLength(pod.namespace) + Buffer.byteLength(pod.name)
  return length <= longestTogether
    ? undefined
    : `a pod's name and namespace may have ${longestTogether} characters together, and these have ${length}: both are in the name of the directory of its logs; shorten the name`
}
