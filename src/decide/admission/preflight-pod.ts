import type { ContainerSpec, SecurityContext } from '../../pod/schema/container-schema.ts'
import type { FieldPath } from '../../pod/schema/issues.ts'
import { allContainers } from '../../pod/schema/pod-resources.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import type { HandlerFeatures, RuntimeFeatures } from '../../pod/state/observed.ts'
import { normalSysctl, safeSysctls, sysctlNamespace } from '../../pod/values/kernel-names.ts'
import type { Admission } from './admit-pod.ts'

/** The facts of the host and runtime against which a pod is checked before anything of it is created. */
export interface PreflightFacts {
  /** Undefined while the runtime's features are unknown; `any` for no particular runtime. */
  readonly runtime: RuntimeFeatures | 'any' | undefined
  /** The handler of the pod's RuntimeClass; empty for the default. */
  readonly runtimeHandler: string
  readonly allowedUnsafeSysctls: readonly string[]
  /** Whether AppArmor is enabled. */
  readonly appArmor: boolean
}

type Refusal = Exclude<Admission, { readonly kind: 'admitted' }>

/**
 * Why a pod can't have what it requests on this host or with this runtime; undefined where it can. What the config or
 * another runtime could allow is blocked, with the kubelet's reason where it has one: the pod starts once it is allowed.
 */
export function preflightPod(spec: PodSpec, facts: PreflightFacts): Refusal | undefined {
  // `pkg/kubelet/lifecycle/predicate.go`, rejectPodAdmissionBasedOnOSField, 1.36.
  if (spec.os !== undefined && spec.os.name !== 'linux') {
    const message = "Failed to admit pod as the OS field doesn't match node OS"
    return { kind: 'rejected', reason: 'PodOSNotSupported', message, at: ['spec', 'os', 'name'] }
  }
  const sysctl = sysctlProblem(spec, facts.allowedUnsafeSysctls)
  if (sysctl !== undefined) return forbidden('SysctlForbidden', sysctl.message, sysctl.at)
  const profile = facts.appArmor ? undefined : findAppArmorProfile(spec)
  if (profile !== undefined) {
    const message = 'Cannot enforce AppArmor: AppArmor is not enabled on the host'
    return forbidden('AppArmor', message, profile)
  }
  const needs = runtimeNeeds(spec)
  if (needs.length === 0 && facts.runtimeHandler === '') return undefined
  const { runtime } = facts
  if (runtime === 'any') return undefined
  if (runtime === undefined) {
    const message = 'waiting for the container runtime to say what it can do'
    const containers = allContainers(spec).map(({ name }) => name)
    return { kind: 'blocked', reason: 'RuntimeNotReady', message, containers }
  }
  const missing = needs.filter(({ has }) => !has(runtime, runtime.handlers?.get(facts.runtimeHandler)))
  if (missing.length === 0) return undefined
  const words = missing.map(({ field, from }) => `${field} needs ${from}`).join('; ')
  const message = `not supported by this container runtime (${runtime.runtime}): ${words}`
  const containers = [...new Set(missing.flatMap((need) => need.containers))]
  return { kind: 'blocked', reason: 'RuntimeUnsupported', message, containers }
}

/** `pkg/kubelet/kubelet.go`, canRunPod, 1.36: what runs of the pod is ended. */
function forbidden(reason: string, message: string, at: FieldPath): Refusal {
  return { kind: 'blocked', reason, message, at, isForbidden: true }
}

/**
 * Why a pod may not set one of its sysctls; undefined where it may set all (`pkg/kubelet/sysctl/allowlist.go`, 1.36:
 * reason SysctlForbidden).
 * @param allowedUnsafe names, or starts of names with `*` at their end
 */
function sysctlProblem(
  spec: Pick<PodSpec, 'securityContext' | 'hostNetwork' | 'hostIPC'>,
  allowedUnsafe: readonly string[],
): { readonly message: string; readonly at: FieldPath } | undefined {
  for (const [index, sysctl] of (spec.securityContext?.sysctls ?? []).entries()) {
    const name = normalSysctl(sysctl.name)
    const at = ['spec', 'securityContext', 'sysctls', index, 'name']
    if (!isAllowed(name, allowedUnsafe)) return { message: `forbidden sysctl: "${name}" not allowlisted`, at }
    const namespace = sysctlNamespace(name)
    const shared = (namespace === 'Net' && spec.hostNetwork) || (namespace === 'IPC' && spec.hostIPC)
    if (shared)
      return { message: `forbidden sysctl: "${name}" not allowed with host ${namespace} enabled`, at }
  }
  return undefined
}

function isAllowed(name: string, allowedUnsafe: readonly string[]): boolean {
  if (safeSysctls.includes(name)) return true
  if (sysctlNamespace(name) === undefined) return false
  return allowedUnsafe.some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  )
}

/** The first profile that AppArmor is needed for; Unconfined needs nothing (`pkg/security/apparmor/validate.go`, 1.36). */
function findAppArmorProfile(spec: PodSpec): FieldPath | undefined {
  const wants = (context: Pick<SecurityContext, 'appArmorProfile'> | undefined): boolean => {
    const type = context?.appArmorProfile?.type
    return type !== undefined && type !== 'Unconfined'
  }
  const own = ['securityContext', 'appArmorProfile']
  if (wants(spec.securityContext)) return ['spec', ...own]
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const) {
    const index = spec[list].findIndex(({ securityContext }) => wants(securityContext))
    if (index >= 0) return ['spec', list, index, ...own]
  }
  return undefined
}

interface RuntimeNeed {
  readonly field: string
  readonly from: string
  /** Those that would get more, or something else, than they ask for, were they created without it. */
  readonly containers: readonly string[]
  readonly has: (runtime: RuntimeFeatures, handler: HandlerFeatures | undefined) => boolean
}

function runtimeNeeds(spec: PodSpec): readonly RuntimeNeed[] {
  const needs: RuntimeNeed[] = []
  const all = allContainers(spec)
  const named = (isMeant: (container: ContainerSpec) => boolean): readonly string[] =>
    all.filter((container) => isMeant(container)).map(({ name }) => name)
  if (spec.securityContext?.supplementalGroupsPolicy === 'Strict') {
    needs.push({
      field: 'spec.securityContext.supplementalGroupsPolicy: Strict',
      from: 'containerd 2.0',
      containers: named(() => true),
      has: (runtime) => runtime.supplementalGroupsPolicy,
    })
  }
  if (spec.volumes.some(({ image }) => image !== undefined)) {
    needs.push({
      field: 'volumes.image',
      from: 'containerd 2.1',
      containers: named(({ volumeMounts }) => mountsOfImages(spec, volumeMounts).length > 0),
      has: (runtime) => runtime.imageVolumes,
    })
  }
  const partial = named(({ volumeMounts }) => showsPartOfImage(mountsOfImages(spec, volumeMounts)))
  if (partial.length > 0) {
    needs.push({
      field: 'volumeMounts.subPath of an image',
      from: 'containerd 2.2',
      containers: partial,
      has: (runtime) => runtime.imageSubPaths,
    })
  }
  if (all.some(({ lifecycle }) => lifecycle?.stopSignal !== undefined)) {
    needs.push({
      field: 'lifecycle.stopSignal',
      from: 'containerd 2.3; the STOPSIGNAL of the image works everywhere',
      // One that crashed is better restarted without its signal than not at all.
      containers: [],
      has: (runtime) => runtime.stopSignals,
    })
  }
  if (spec.hostUsers === false) {
    needs.push({
      field: 'spec.hostUsers: false',
      from: 'containerd 2.0 with runc 1.2 or crun 1.9',
      containers: named(() => true),
      has: (_runtime, handler) => handler?.userNamespaces === true,
    })
  }
  const recursive = named(({ volumeMounts }) =>
    volumeMounts.some(({ recursiveReadOnly }) => recursiveReadOnly === 'Enabled'),
  )
  if (recursive.length > 0) {
    needs.push({
      field: 'volumeMounts.recursiveReadOnly: Enabled',
      from: 'containerd 2.0',
      containers: recursive,
      has: (_runtime, handler) => handler?.recursiveReadOnlyMounts === true,
    })
  }
  return needs
}

type Mounts = ContainerSpec['volumeMounts']

function mountsOfImages({ volumes }: PodSpec, mounts: Mounts): Mounts {
  return mounts.filter((mount) =>
    volumes.some(({ name, image }) => image !== undefined && name === mount.name),
  )
}

/** containerd 2.1 accepts the path and mounts the whole image nevertheless. */
function showsPartOfImage(mounts: Mounts): boolean {
  return mounts.some(({ subPath = '', subPathExpr = '' }) => subPath !== '' || subPathExpr !== '')
}
