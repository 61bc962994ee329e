import type { FieldPath } from '../../pod/schema/issues.ts'
import { allContainers } from '../../pod/schema/pod-resources.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import type { SecurityPolicy } from '../../pod/validation/security-policy.ts'
import { parseImageName } from '../../pod/values/image-name.ts'
import { normalCapability, normalSysctl, safeSysctls } from '../../pod/values/kernel-names.ts'

/**
 * Why a source may not have this pod run, naming each rule that it breaks and the setting that would allow it;
 * undefined where it may. The rules are those of the Pod Security Standards (`k8s.io/pod-security-admission/policy`,
 * 1.36, latest).
 * @param settings the path of the policy in the config: `podSecurity.url`
 */
export function podSecurityProblem(
  spec: PodSpec,
  policy: SecurityPolicy,
  settings: string,
): { readonly message: string; readonly at: FieldPath | undefined } | undefined {
  const { level } = policy
  const rules =
    level === 'privileged'
      ? []
      : level === 'baseline'
        ? baselineRules(spec, policy)
        : [...baselineRules(spec, policy), ...restrictedRules(spec)]
  const images = imageViolations(spec, policy)
  if (rules.length === 0 && images.length === 0) return undefined
  const tell = ({ rule, detail }: Violation): string => `${rule} (${detail})`
  const parts = [
    ...(rules.length === 0
      ? []
      : [`violates PodSecurity "${level}:latest": ${rules.map((violation) => tell(violation)).join(', ')}`]),
    ...images.map((violation) => tell(violation)),
  ]
  const allowing = new Set([...rules, ...images].map(({ exception }) => allowedBy(exception, settings)))
  const message = `forbidden: ${parts.join('; ')}. ${[...allowing].join('; ')}`
  return { message, at: [...rules, ...images][0]?.at }
}

function allowedBy(exception: Violation['exception'], settings: string): string {
  return exception === undefined
    ? `Allowed by a lower ${settings}.level in podd's config`
    : `Allowed by ${settings}.${exception.field}: [${exception.value}]`
}

/** One rule that a pod breaks. */
interface Violation {
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

/** The rules of the level baseline, in the order in which Kubernetes checks them. */
function baselineRules(spec: PodSpec, exceptions: Exceptions): readonly Violation[] {
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

function capabilities(spec: PodSpec, { allowedCapabilities }: Exceptions): readonly Violation[] {
  const allowed = new Set(allowedCapabilities.map((name) => normalCapability(name)))
  return allContainers(spec).flatMap(({ name, securityContext }) => {
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
  return allContainers(spec).flatMap(({ name, ports }) => {
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
  return allContainers(spec).flatMap((container) => {
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
  return allContainers(spec)
    .filter(({ securityContext }) => securityContext?.privileged === true)
    .map(({ name }) => ({
      rule: 'privileged',
      detail: `container "${name}" must not set securityContext.privileged=true`,
      at: inContainer(spec, name, 'securityContext', 'privileged'),
    }))
}

function procMounts(spec: PodSpec): readonly Violation[] {
  return allContainers(spec)
    .filter(({ securityContext }) => (securityContext?.procMount ?? 'Default') !== 'Default')
    .map(({ name }) => ({
      rule: 'procMount',
      detail: `container "${name}" must not set securityContext.procMount to "Unmasked"`,
      at: inContainer(spec, name, 'securityContext', 'procMount'),
    }))
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

const harmlessSeLinuxTypes: readonly (string | undefined)[] = [
  undefined,
  '',
  'container_t',
  'container_init_t',
  'container_kvm_t',
  'container_engine_t',
]

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

/** The pod and each container, as messages name them, with their security settings. */
function contexts(spec: PodSpec) {
  return [
    { what: 'pod', context: spec.securityContext, at: ['spec', 'securityContext'] },
    ...allContainers(spec).map(({ name, securityContext }) => ({
      what: `container "${name}"`,
      context: securityContext,
      at: inContainer(spec, name, 'securityContext'),
    })),
  ]
}

function sysctls(spec: PodSpec): readonly Violation[] {
  const unsafe = (spec.securityContext?.sysctls ?? [])
    .map(({ name }) => normalSysctl(name))
    .filter((name) => !safeSysctls.includes(name))
  const at = ['spec', 'securityContext', 'sysctls']
  return unsafe.length === 0 ? [] : [{ rule: 'forbidden sysctls', detail: unsafe.join(', '), at }]
}

/**
 * The rules that the level restricted has beyond those of baseline. Root in a user namespace of the pod's own is an
 * unprivileged user on the host (`policy/check_runAsNonRoot.go`, `policy/check_procMount.go`, 1.36).
 */
function restrictedRules(spec: PodSpec): readonly Violation[] {
  const ownUsers = spec.hostUsers === false
  return [
    ...privilegeEscalation(spec),
    ...unrestrictedCapabilities(spec),
    ...volumes(spec),
    ...(ownUsers ? procMounts(spec) : [...nonRoot(spec), ...rootUsers(spec)]),
    ...seccomp(spec),
  ]
}

function privilegeEscalation(spec: PodSpec): readonly Violation[] {
  return allContainers(spec)
    .filter(({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false)
    .map(({ name }) => ({
      rule: 'allowPrivilegeEscalation != false',
      detail: `container "${name}" must set securityContext.allowPrivilegeEscalation=false`,
      at: inContainer(spec, name, 'securityContext', 'allowPrivilegeEscalation'),
    }))
}

function unrestrictedCapabilities(spec: PodSpec): readonly Violation[] {
  return allContainers(spec).flatMap(({ name, securityContext }) => {
    const { add = [], drop = [] } = securityContext?.capabilities ?? {}
    const details = [
      ...(drop.includes('ALL')
        ? []
        : [`container "${name}" must set securityContext.capabilities.drop=["ALL"]`]),
      ...(add.every((capability) => capability === 'NET_BIND_SERVICE')
        ? []
        : [
            `container "${name}" must not include anything but "NET_BIND_SERVICE" in securityContext.capabilities.add`,
          ]),
    ]
    const at = inContainer(spec, name, 'securityContext', 'capabilities')
    return details.map((detail) => ({ rule: 'unrestricted capabilities', detail, at }))
  })
}

/** What volumes a pod of the level restricted may have. */
const volumeKinds: ReadonlySet<string> = new Set([
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'persistentVolumeClaim',
  'projected',
  'secret',
])

function volumes(spec: PodSpec): readonly Violation[] {
  return spec.volumes.flatMap((volume, index) => {
    const kind = Object.keys(volume).find((key) => key !== 'name')
    // A hostPath is checked at the level baseline, where exceptions can allow it.
    if (kind === undefined || kind === 'hostPath' || volumeKinds.has(kind)) return []
    return [
      {
        rule: 'restricted volume types',
        detail: `volume "${volume.name}" uses restricted volume type "${kind}"`,
        at: ['spec', 'volumes', index, kind],
      },
    ]
  })
}

function nonRoot(spec: PodSpec): readonly Violation[] {
  const pod = spec.securityContext?.runAsNonRoot
  return allContainers(spec)
    .filter(({ securityContext }) => (securityContext?.runAsNonRoot ?? pod) !== true)
    .map(({ name }) => ({
      rule: 'runAsNonRoot != true',
      detail: `pod or container "${name}" must set securityContext.runAsNonRoot=true`,
      at: inContainer(spec, name, 'securityContext', 'runAsNonRoot'),
    }))
}

function rootUsers(spec: PodSpec): readonly Violation[] {
  const rule = 'runAsUser=0'
  return [
    ...(spec.securityContext?.runAsUser === 0
      ? [{ rule, detail: 'pod must not set runAsUser=0', at: ['spec', 'securityContext', 'runAsUser'] }]
      : []),
    ...allContainers(spec)
      .filter(({ securityContext }) => securityContext?.runAsUser === 0)
      .map(({ name }) => ({
        rule,
        detail: `container "${name}" must not set runAsUser=0`,
        at: inContainer(spec, name, 'securityContext', 'runAsUser'),
      })),
  ]
}

/** Unconfined is checked at the level baseline: here a profile has to be set. */
function seccomp(spec: PodSpec): readonly Violation[] {
  const pod = spec.securityContext?.seccompProfile
  return allContainers(spec)
    .filter(({ securityContext }) => (securityContext?.seccompProfile ?? pod) === undefined)
    .map(({ name }) => ({
      rule: 'seccompProfile',
      detail: `pod or container "${name}" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
      at: inContainer(spec, name, 'securityContext', 'seccompProfile'),
    }))
}

function imageViolations(spec: PodSpec, { allowedRegistries }: SecurityPolicy): readonly Violation[] {
  if (allowedRegistries.length === 0) return []
  const ofContainers = allContainers(spec).map(({ name, image }) => ({
    image,
    user: `container "${name}"`,
    at: inContainer(spec, name, 'image'),
  }))
  const ofVolumes = spec.volumes.flatMap(({ name, image }, index) =>
    image?.reference === undefined
      ? []
      : [
          {
            image: image.reference,
            user: `volume "${name}"`,
            at: ['spec', 'volumes', index, 'image', 'reference'],
          },
        ],
  )
  return [...ofContainers, ...ofVolumes].flatMap(({ image, user, at }) => {
    const { registry, repository } = parseImageName(image) ?? { registry: '', repository: image }
    const from = `${registry}/${repository}`
    if (allowedRegistries.some((allowed) => isWithin(from, allowed))) return []
    return [
      {
        rule: 'image registry',
        detail: `${user} uses an image of ${registry}`,
        exception: { field: 'allowedRegistries' as const, value: registry },
        at,
      },
    ]
  })
}

/** Whether a path is at or below another, compared by whole parts. */
function isWithin(path: string, top: string): boolean {
  const above = top.endsWith('/') ? top.slice(0, -1) : top
  return path === above || path.startsWith(`${above}/`)
}

/** A field of one of the pod's containers. */
function inContainer(spec: PodSpec, name: string, ...field: readonly string[]): FieldPath {
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const) {
    const index = spec[list].findIndex((container) => container.name === name)
    if (index >= 0) return ['spec', list, index, ...field]
  }
  return ['spec']
}
