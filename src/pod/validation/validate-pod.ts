import { isJsonObject } from '../../base/json.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { ContainerSpec } from '../schema/container-schema.ts'
import { fieldOf, Issues } from '../schema/issues.ts'
import type { FieldPath, FieldProblem } from '../schema/issues.ts'
import { hostAliasSchema, podDNSConfigSchema, podSecurityContextSchema } from '../schema/pod-schema.ts'
import type { Pod, PodSpec } from '../schema/pod-schema.ts'
import { tolerationSchema } from '../schema/scheduling-schema.ts'
import { fillDefaults, list } from '../schema/types.ts'
import type { Infer } from '../schema/types.ts'
import { normalSysctl, sysctlNamespace } from '../values/kernel-names.ts'
import { dnsLabel, dnsSubdomain, dnsSubdomainWithUnderscore, ipAddress, oneLine } from './name-rules.ts'
import { localPath } from './path-rules.ts'
import { validateContainer } from './validate-container.ts'
import { validateClusterMetadata, validateMetadata } from './validate-metadata.ts'
import { validateRefusedFields, validateWindows } from './validate-refused-fields.ts'
import { validateOverhead, validatePodResources } from './validate-resources.ts'
import { validateScheduling, validateTolerations } from './validate-scheduling.ts'
import { validatePodSecurityContext, validateSysAdmin } from './validate-security-context.ts'
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
  path: FieldPath,
  issues: Issues,
): void {
  const confined = confinedContainers(spec)
  const isPodConfined = spec.securityContext?.appArmorProfile !== undefined
  for (const [key, value] of Object.entries(metadata.annotations)) {
    const at = [...path, key]
    if (/^kubernetes\.io\/(?:in|e)gress-bandwidth$/.test(key)) {
      issues.refused(at, 'the network of pods has no limits of bandwidth')
    } else if (key.startsWith('cdi.k8s.io/')) {
      issues.refused(at, 'podd hands out no devices: mount them by a hostPath, into a privileged container')
    } else if (key.startsWith(appArmorPrefix)) {
      if (!isPodConfined && !confined.has(key.slice(appArmorPrefix.length))) {
        issues.refused(at, 'deprecated in Kubernetes: set securityContext.appArmorProfile')
      }
    } else if (key === 'kubernetes.io/config.mirror') {
      if ((nodeName ?? '') === '')
        issues.invalid(at, value, 'must set spec.nodeName if mirror pod annotation is set')
    } else if (key === 'scheduler.alpha.kubernetes.io/tolerations') {
      validateTolerationList(key, value, path, issues)
    } else if (key === 'controller.kubernetes.io/pod-deletion-cost') {
      if (!isInt32(value)) issues.invalid(at, value, 'must be a 32bit integer')
    } else if (seccompPrefixes.some((prefix) => key.startsWith(prefix))) {
      validateSeccomp(value, at, issues)
    }
  }
}

/** Source: pkg/apis/core/validation (ValidateTolerationsInPodAnnotations), 1.36. */
function validateTolerationList(key: string, value: string, path: FieldPath, issues: Issues): void {
  if (value === '') return
  const given = parseJson(value)
  const items = Array.isArray(given) ? given : undefined
  const list = fieldOf(
    { items: items?.map((item: Json) => (isJsonObject(item) ? fillDefaults(tolerationSchema, item) : item)) },
    'items',
    tolerationListSchema,
  )
  if (list !== undefined) validateTolerations(list, [...path, key], issues)
  else if (given !== null) issues.invalid(path, key, 'is no list of tolerations', [...path, key])
}

function parseJson(text: string): Json | undefined {
  try {
    const value: Json = JSON.parse(text)
    return value
  } catch {
    // No JSON is no list either.
    return undefined
  }
}

/** Source: pkg/apis/core/validation (ValidateSeccompProfile), 1.36. */
function validateSeccomp(profile: string, path: FieldPath, issues: Issues): void {
  const local = 'localhost/'
  if (profile.startsWith(local)) localPath(profile.slice(local.length), path, issues)
  else if (!['runtime/default', 'docker/default', 'unconfined'].includes(profile)) {
    issues.invalid(path, profile, 'must be a valid seccomp profile')
  }
  issues.warn(path, 'has no effect, in Kubernetes since 1.27: set securityContext.seccompProfile')
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
  const all = [...spec.containers, ...spec.initContainers, ...spec.ephemeralContainers]
  const confined = all.filter(({ securityContext }) => securityContext?.appArmorProfile !== undefined)
  return new Set(confined.map(({ name }) => name))
}

const maxNameservers = 3
const maxSearches = 32
const maxSearchCharacters = 2048
/** What the kernel takes. */
const longestHostname = 64

/** Names and name servers. Source: pkg/apis/core/validation (validatePodDNSConfig, ValidateHostAliases), 1.36. */
function validateNetwork(spec: PodSpec, path: FieldPath, issues: Issues): void {
  const dnsConfig = fieldOf(spec, 'dnsConfig', podDNSConfigSchema)
  if (spec.dnsPolicy === 'None' && dnsConfig === undefined) {
    const detail = 'must provide `dnsConfig` when `dnsPolicy` is None'
    issues.required([...path, 'dnsConfig'], detail)
  } else if (spec.dnsPolicy === 'None' && dnsConfig?.nameservers.length === 0) {
    const detail = 'must provide at least one DNS nameserver when `dnsPolicy` is None'
    issues.required([...path, 'dnsConfig', 'nameservers'], detail)
  } else if (dnsConfig !== undefined) validateDnsConfig(dnsConfig, [...path, 'dnsConfig'], issues)
  const aliases = fieldOf(spec, 'hostAliases', list(hostAliasSchema)) ?? []
  validateHostnameOverride(spec, path, issues)
  for (const [index, { ip, hostnames }] of aliases.entries()) {
    const at = [...path, 'hostAliases', index]
    issues.name([...at, 'ip'], ip, ipAddress)
    for (const [position, name] of hostnames.entries()) {
      issues.name([...at, 'hostnames', position], name, dnsSubdomain)
    }
  }
}

/** Source: pkg/apis/core/validation (ValidatePodSpec, hostnameOverride), 1.36. */
function validateHostnameOverride(spec: PodSpec, path: FieldPath, issues: Issues): void {
  const { hostnameOverride, hostNetwork, setHostnameAsFQDN } = spec
  if (hostnameOverride === undefined) return
  const at = [...path, 'hostnameOverride']
  if (hostNetwork) issues.forbidden(at, 'may not be specified when hostNetwork is true')
  if (setHostnameAsFQDN) issues.forbidden(at, 'may not be specified when setHostnameAsFQDN is true')
  if (hostnameOverride.length > longestHostname) issues.tooLong(at, longestHostname)
  issues.name(at, hostnameOverride, dnsSubdomain)
}

function validateDnsConfig(
  { nameservers, searches, options }: Infer<typeof podDNSConfigSchema>,
  path: FieldPath,
  issues: Issues,
): void {
  if (nameservers.length > maxNameservers) {
    const detail = `must not have more than ${maxNameservers} nameservers`
    issues.invalid([...path, 'nameservers'], nameservers, detail)
  }
  for (const [index, server] of nameservers.entries()) {
    issues.name([...path, 'nameservers', index], server, ipAddress)
  }
  if (searches.length > maxSearches) {
    const detail = `must not have more than ${maxSearches} search paths`
    issues.invalid([...path, 'searches'], searches, detail)
  }
  if (searches.join(' ').length > maxSearchCharacters) {
    const detail = `must not have more than ${maxSearchCharacters} characters (including spaces) in the search list`
    issues.invalid([...path, 'searches'], searches, detail)
  }
  for (const [index, search] of searches.entries()) {
    // A trailing dot makes it absolute, and `.` alone is the root.
    const name = search.replace(/\.$/, '')
    if (search !== '.') issues.name([...path, 'searches', index], name, dnsSubdomainWithUnderscore)
  }
  for (const [index, option] of options.entries()) {
    const at = [...path, 'options', index]
    if (option.name === '') issues.required(at, 'must not be empty')
    issues.name([...at, 'name'], option.name, oneLine)
    issues.name([...at, 'value'], option.value ?? '', oneLine)
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
