import { normalCapability, normalSysctl, safeSysctls } from '../../pod/values/kernel-names.ts'
import type { FieldPath } from '../../pod/schema/issues.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import type { SecurityPolicy } from '../../pod/validation/security-policy.ts'

/** One rule that a pod breaks. */
export interface Violation {
  /** As Kubernetes names it: `host namespaces`, `privileged`, … */
  readonly rule: string
  readonly detail: string
  /** The field that breaks it, or where one is missing the one above. */
  readonly at: FieldPath
  /** The exception that would allow it, beside a lower level. */
  readonly exception?: {
    readonly field: 'allowedHostPaths' | 'allowedCapabilities' | 'allowedHostPorts' | 'allowedRegistries'
    readonly value: string
  }
}

export type Exceptions = Pick<SecurityPolicy, 'allowedHostPaths' | 'allowedCapabilities' | 'allowedHostPorts'>

export function podContainers(spec: PodSpec): readonly ContainerSpec[] {
  return [...spec.initContainers, ...spec.containers, ...spec.ephemeralContainers]
}

/** A field of one of the pod's containers. */
export function inContainer(spec: PodSpec, name: string, ...field: readonly string[]): FieldPath {
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const) {
    const index = spec[list].findIndex((container) => container.name === name)
    if (index >= 0) return ['spec', list, index, ...field]
  }
  return ['spec']
}

/** Capabilities that containers may add at the level baseline. */
const harmlessCapabilities = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
])

const harmlessSeLinuxTypes: readonly (string | undefined)[] = [
  undefined,
  '',
  'container_t',
  'container_init_t',
  'container_kvm_t',
  'container_engine_t',
]

/** The rules of the level baseline, in the order in which Kubernetes checks them. */
export function podSecurityRules(spec: PodSpec, exceptions: Exceptions): readonly Violation[] {
  return [
    ...capabilities(spec, exceptions),
    ...hostNamespaces(spec),
    ...hostPaths(spec, exceptions),
    ...hostPorts(spec, exceptions),
    ...hostProbes(spec),
    ...privileged(spec),
    // In a user namespace of its own a pod may have it (since 1.35).
    ...(spec.hostUsers === false ? [] : procMounts(spec)),
    ...confinement(spec),
    ...seLinux(spec),
    ...sysctls(spec),
  ]
}

function capabilities(spec: PodSpec, { allowedCapabilities }: Exceptions): readonly Violation[] {
  const allowed = new Set(allowedCapabilities.map((name) => normalCapability(name)))
  return podContainers(spec).flatMap(({ name, securityContext }) => {
    const beyond = (securityContext?.capabilities?.add ?? []).filter(
      (capability) => !harmlessCapabilities.has(capability) && !allowed.has(capability) && !allowed.has('*'),
    )
    if (beyond.length === 0) return []
    const detail = `container "${name}" must not include "${beyond.join('", "')}" in securityContext.capabilities.add`
    const exception = { field: 'allowedCapabilities' as const, value: beyond.join(', ') }
    const at = inContainer(spec, name, 'securityContext', 'capabilities', 'add')
    return [{ rule: 'non-default capabilities', detail, exception, at }]
  })
}

function hostNamespaces(spec: PodSpec): readonly Violation[] {
  const shared = (['hostNetwork', 'hostPID', 'hostIPC'] as const).filter((field) => spec[field])
  const [first] = shared
  if (first === undefined) return []
  const detail = shared.map((field) => `${field}=true`).join(', ')
  return [{ rule: 'host namespaces', detail, at: ['spec', first] }]
}

function hostPaths(spec: PodSpec, { allowedHostPaths }: Exceptions): readonly Violation[] {
  return spec.volumes.flatMap(({ name, hostPath }, index) => {
    if (hostPath === undefined || allowedHostPaths.some((top) => isBelow(hostPath.path, top))) return []
    const detail = `volume "${name}" mounts ${hostPath.path}`
    const exception = { field: 'allowedHostPaths' as const, value: hostPath.path }
    return [{ rule: 'hostPath volumes', detail, exception, at: ['spec', 'volumes', index, 'hostPath'] }]
  })
}

/** Compares whole parts of the path; a path with `..` is below nothing. */
function isBelow(path: string, top: string): boolean {
  const parts = (text: string): readonly string[] =>
    text.split('/').filter((part) => part !== '' && part !== '.')
  const [own, above] = [parts(path), parts(top)]
  return !own.includes('..') && above.every((part, index) => own[index] === part)
}

function hostPorts(spec: PodSpec, { allowedHostPorts }: Exceptions): readonly Violation[] {
  return podContainers(spec).flatMap(({ name, ports }) => {
    const refused = ports
      .map(({ hostPort }) => hostPort ?? 0)
      .filter((port) => port !== 0 && !allowedHostPorts.some((range) => isInRange(port, range)))
    if (refused.length === 0) return []
    const detail = `container "${name}" uses hostPort ${refused.join(', ')}`
    const exception = { field: 'allowedHostPorts' as const, value: refused.join(', ') }
    return [{ rule: 'hostPort', detail, exception, at: inContainer(spec, name, 'ports') }]
  })
}

function isInRange(port: number, range: string): boolean {
  if (range === '*') return true
  const [first = '', last = first] = range.split('-')
  return port >= Number(first) && port <= Number(last)
}

/** A probe or hook with a host of its own makes podd send requests to other machines. */
function hostProbes(spec: PodSpec): readonly Violation[] {
  return podContainers(spec).flatMap((container) => {
    const { lifecycle, livenessProbe, readinessProbe, startupProbe } = container
    const handlers = [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop]
    const hosts = handlers.flatMap((handler) => {
      const tcp = handler !== undefined && 'tcpSocket' in handler ? handler.tcpSocket?.host : undefined
      return [handler?.httpGet?.host, tcp]
    })
    const foreign = hosts.filter((host) => host !== undefined && host !== '')
    if (foreign.length === 0) return []
    const detail = `container "${container.name}" must not set probe or lifecycle handler host ${foreign.join(', ')}`
    return [{ rule: 'probe or lifecycle host', detail, at: inContainer(spec, container.name) }]
  })
}

function privileged(spec: PodSpec): readonly Violation[] {
  return podContainers(spec)
    .filter(({ securityContext }) => securityContext?.privileged === true)
    .map(({ name }) => ({
      rule: 'privileged',
      detail: `container "${name}" must not set securityContext.privileged=true`,
      at: inContainer(spec, name, 'securityContext', 'privileged'),
    }))
}

export function procMounts(spec: PodSpec): readonly Violation[] {
  return podContainers(spec)
    .filter(({ securityContext }) => (securityContext?.procMount ?? 'Default') !== 'Default')
    .map(({ name }) => ({
      rule: 'procMount',
      detail: `container "${name}" must not set securityContext.procMount to "Unmasked"`,
      at: inContainer(spec, name, 'securityContext', 'procMount'),
    }))
}

/** The pod and each container, as messages name them, with their security settings. */
function contexts(spec: PodSpec) {
  return [
    { what: 'pod', context: spec.securityContext, at: ['spec', 'securityContext'] },
    ...podContainers(spec).map(({ name, securityContext }) => ({
      what: `container "${name}"`,
      context: securityContext,
      at: inContainer(spec, name, 'securityContext'),
    })),
  ]
}

function confinement(spec: PodSpec): readonly Violation[] {
  return contexts(spec).flatMap(({ what, context, at }) =>
    (['appArmorProfile', 'seccompProfile'] as const)
      .filter((field) => context?.[field]?.type === 'Unconfined')
      .map((field) => ({
        rule: field,
        detail: `${what} must not set securityContext.${field}.type to "Unconfined"`,
        at: [...at, field, 'type'],
      })),
  )
}

function seLinux(spec: PodSpec): readonly Violation[] {
  return contexts(spec).flatMap(({ what, context, at }) => {
    const { type, user = '', role = '' } = context?.seLinuxOptions ?? {}
    const details = [
      ...(harmlessSeLinuxTypes.includes(type) ? [] : [`type "${type}"`]),
      ...(user === '' ? [] : ['user may not be set']),
      ...(role === '' ? [] : ['role may not be set']),
    ]
    if (details.length === 0) return []
    return [
      {
        rule: 'seLinuxOptions',
        detail: `${what} set forbidden securityContext.seLinuxOptions: ${details.join('; ')}`,
        at: [...at, 'seLinuxOptions'],
      },
    ]
  })
}

function sysctls(spec: PodSpec): readonly Violation[] {
  const unsafe = (spec.securityContext?.sysctls ?? [])
    .map(({ name }) => normalSysctl(name))
    .filter((name) => !safeSysctls.includes(name))
  const at = ['spec', 'securityContext', 'sysctls']
  return unsafe.length === 0 ? [] : [{ rule: 'forbidden sysctls', detail: unsafe.join(', '), at }]
}
