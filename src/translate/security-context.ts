/* Security settings of sandboxes and containers, and the ids that a user namespace maps. */
import type * as cri from '../cri-types/cri-v1.ts'
import type { IDMapping, Sent } from '../cri-types/cri-v1.ts'
import type {
  AppArmorProfile,
  ContainerSpec,
  SeccompProfile,
  SecurityContext,
} from '../pod/schema/container-schema.ts'
import { allContainers } from '../pod/schema/pod-resources.ts'
import type { PodSecurityContext, PodSpec } from '../pod/schema/pod-schema.ts'

/** The facts of the host and the image for security settings. */
export interface SecurityFacts {
  /** Where Localhost seccomp profiles lie: `<root>/seccomp`, absolute. */
  readonly seccompRoot: string
  /** Give RuntimeDefault to containers that name no profile (the kubelet's `seccompDefault`). */
  readonly seccompDefault: boolean
  /** Whether AppArmor is enabled: without it the runtime rejects profiles. */
  readonly appArmor: boolean
}

/** The user an image runs as, where the pod names none. */
export interface ImageUser {
  readonly uid?: number | undefined
  readonly username?: string | undefined
}

/** An image that names no user runs as root (`kuberuntime_image.go` and `kuberuntime_manager.go`, getImageUser, 1.36). */
export function imageUserOf(image: Pick<cri.Image, 'uid' | 'username'>): ImageUser {
  if (image.uid !== null) return { uid: image.uid.value }
  return image.username === '' ? { uid: 0 } : { username: image.username }
}

/** `pkg/securitycontext/util.go` (1.36): DefaultMaskedPaths, DefaultReadonlyPaths. */
const defaultMaskedPaths: readonly string[] = [
  '/proc/asound',
  '/proc/acpi',
  '/proc/interrupts',
  '/proc/kcore',
  '/proc/keys',
  '/proc/latency_stats',
  '/proc/timer_list',
  '/proc/timer_stats',
  '/proc/sched_debug',
  '/proc/scsi',
  '/sys/firmware',
  '/sys/devices/virtual/powercap',
]
const defaultReadonlyPaths: readonly string[] = [
  '/proc/bus',
  '/proc/fs',
  '/proc/irq',
  '/proc/sys',
  '/proc/sysrq-trigger',
]

/**
 * The container's settings, by default the pod's (`pkg/securitycontext/util.go`, DetermineEffectiveSecurityContext,
 * 1.36).
 */
export function effectiveSecurityContext(
  pod: PodSecurityContext | undefined,
  container: SecurityContext | undefined,
): SecurityContext {
  const { seLinuxOptions, runAsUser, runAsGroup, runAsNonRoot, seccompProfile, appArmorProfile } = pod ?? {}
  return {
    ...(seLinuxOptions && { seLinuxOptions }),
    ...(runAsUser !== undefined && { runAsUser }),
    ...(runAsGroup !== undefined && { runAsGroup }),
    ...(runAsNonRoot !== undefined && { runAsNonRoot }),
    ...(seccompProfile && { seccompProfile }),
    ...(appArmorProfile && { appArmorProfile }),
    ...container,
  }
}

/** `pkg/kubelet/kuberuntime/util/util.go`, NamespacesForPod (1.36). */
export function namespaceOptions(
  spec: PodSpec,
  userRange: UserRange | undefined,
): cri.Sent<cri.NamespaceOption> {
  return {
    network: spec.hostNetwork ? 'NODE' : 'POD',
    ipc: spec.hostIPC ? 'NODE' : 'POD',
    pid: spec.hostPID ? 'NODE' : spec.shareProcessNamespace ? 'POD' : 'CONTAINER',
    // A user namespace of the pod's own (`pkg/kubelet/userns/userns_manager.go`, GetOrCreateUserNamespaceMappings, 1.36).
    ...(userRange && {
      usernsOptions: { mode: 'POD', uids: idMappings(userRange), gids: idMappings(userRange) },
    }),
  }
}

/** fsGroup first, then the supplemental groups. */
function podGroups(pod: PodSecurityContext | undefined): readonly number[] {
  return [...(pod?.fsGroup === undefined ? [] : [pod.fsGroup]), ...(pod?.supplementalGroups ?? [])]
}

export function hasPrivilegedContainer(spec: PodSpec): boolean {
  return allContainers(spec).some(({ securityContext }) => securityContext?.privileged === true)
}

/**
 * The security context of the sandbox's own process. It is always confined by the runtime's default seccomp profile,
 * whatever the pod requests for its containers (`kuberuntime_sandbox.go`, generatePodSandboxLinuxConfig, 1.36), or by
 * the one at `seccompPath`.
 */
export function sandboxSecurityContext(
  spec: PodSpec,
  own: { readonly userRange?: UserRange | undefined; readonly seccompPath?: string | undefined } = {},
): cri.Sent<cri.LinuxSandboxSecurityContext> {
  const pod = spec.securityContext
  return {
    namespaceOptions: namespaceOptions(spec, own.userRange),
    privileged: hasPrivilegedContainer(spec),
    seccomp:
      own.seccompPath === undefined
        ? { profileType: 'RuntimeDefault' }
        : { profileType: 'Localhost', localhostRef: own.seccompPath },
    supplementalGroups: podGroups(pod),
    supplementalGroupsPolicy: pod?.supplementalGroupsPolicy ?? 'Merge',
    ...sandboxRunAs(pod),
    ...(pod?.seLinuxOptions && { selinuxOptions: pod.seLinuxOptions }),
  }
}

/**
 * CRI takes a group only beside a user, and which user the sandbox's image has is the runtime's to know: without one,
 * the pod's group is its containers' alone. The kubelet sends the group, and no such pod starts.
 */
function sandboxRunAs(pod: PodSecurityContext | undefined): cri.Sent<cri.LinuxSandboxSecurityContext> {
  if (pod?.runAsUser === undefined) return {}
  const group = pod.runAsGroup === undefined ? {} : { runAsGroup: { value: pod.runAsGroup } }
  return { runAsUser: { value: pod.runAsUser }, ...group }
}

/**
 * `security_context.go`, determineEffectiveSecurityContext (1.36). `targetContainerId` is the container
 * whose processes an ephemeral container is to see.
 */
export function containerSecurityContext(
  spec: PodSpec,
  container: ContainerSpec,
  input: {
    readonly imageUser: ImageUser
    readonly security: SecurityFacts
    readonly targetContainerId?: string | undefined
    readonly userRange?: UserRange | undefined
  },
): cri.Sent<cri.LinuxContainerSecurityContext> {
  const { imageUser, security, targetContainerId } = input
  const pod = spec.securityContext
  const effective = effectiveSecurityContext(pod, container.securityContext)
  const { capabilities, seLinuxOptions, appArmorProfile } = effective
  const namespaces = namespaceOptions(spec, input.userRange)
  const masked = effective.procMount !== 'Unmasked'
  return {
    privileged: effective.privileged ?? false,
    readonlyRootfs: effective.readOnlyRootFilesystem ?? false,
    noNewPrivs: effective.allowPrivilegeEscalation === false,
    namespaceOptions:
      targetContainerId === undefined || namespaces.pid !== 'CONTAINER'
        ? namespaces
        : { ...namespaces, pid: 'TARGET', targetId: targetContainerId },
    supplementalGroups: podGroups(pod),
    supplementalGroupsPolicy: pod?.supplementalGroupsPolicy ?? 'Merge',
    maskedPaths: masked ? defaultMaskedPaths : [],
    readonlyPaths: masked ? defaultReadonlyPaths : [],
    seccomp: toSeccompProfile(effective, security),
    ...toRunAs(effective, imageUser),
    // The runtime takes names without `CAP_`, which they have in a defaulted pod.
    ...(capabilities && {
      capabilities: { addCapabilities: capabilities.add, dropCapabilities: capabilities.drop },
    }),
    ...(seLinuxOptions && { selinuxOptions: seLinuxOptions }),
    ...(appArmorProfile && security.appArmor && toAppArmor(appArmorProfile)),
  }
}

function toRunAs(effective: SecurityContext, image: ImageUser): cri.Sent<cri.LinuxContainerSecurityContext> {
  const group = effective.runAsGroup === undefined ? {} : { runAsGroup: { value: effective.runAsGroup } }
  if (effective.runAsUser !== undefined) return { ...group, runAsUser: { value: effective.runAsUser } }
  // CRI takes a group only beside a user.
  if (image.uid !== undefined) return { ...group, runAsUser: { value: image.uid } }
  return image.username === undefined || image.username === ''
    ? group
    : { ...group, runAsUsername: image.username }
}

/** `helpers.go`, getSeccompProfile (1.36). A privileged container is unconfined whatever this says. */
function toSeccompProfile(effective: SecurityContext, facts: SecurityFacts): cri.Sent<cri.SecurityProfile> {
  const profile: SeccompProfile = effective.seccompProfile ?? {
    type: facts.seccompDefault ? 'RuntimeDefault' : 'Unconfined',
  }
  return profile.type === 'Localhost'
    ? { profileType: 'Localhost', localhostRef: `${facts.seccompRoot}/${profile.localhostProfile ?? ''}` }
    : { profileType: profile.type }
}

/** Both of CRI's fields, as the kubelet sets them: containerd before 1.7 reads only the old one. */
function toAppArmor({
  type,
  localhostProfile = '',
}: AppArmorProfile): cri.Sent<cri.LinuxContainerSecurityContext> {
  switch (type) {
    case 'RuntimeDefault':
      return { apparmor: { profileType: type }, apparmorProfile: 'runtime/default' }
    case 'Unconfined':
      return { apparmor: { profileType: type }, apparmorProfile: 'unconfined' }
    case 'Localhost':
      return {
        apparmor: { profileType: type, localhostRef: localhostProfile },
        apparmorProfile: `localhost/${localhostProfile}`,
      }
  }
}

/** Why a container that must not run as root would; undefined when it won't. */
export function runAsRootProblem(effective: SecurityContext, image: ImageUser): string | undefined {
  if (effective.runAsNonRoot !== true) return undefined
  if (effective.runAsUser !== undefined) {
    return effective.runAsUser === 0 ? "container's runAsUser breaks non-root policy" : undefined
  }
  if (image.uid === 0) return 'container has runAsNonRoot and image will run as root'
  if (image.username !== undefined && image.username !== '') {
    return `container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root`
  }
  return undefined
}

/** The users, and groups, of the host that a pod's own are mapped to, from its root on. */
export interface UserRange {
  readonly firstId: number
  readonly length: number
}

export function idMappings({ firstId, length }: UserRange): readonly Sent<IDMapping>[] {
  return [{ hostId: firstId, containerId: 0, length }]
}
