import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import { inContainer, podContainers, procMounts } from './pod-security-rules.ts'
import type { Violation } from './pod-security-rules.ts'

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

/**
 * The rules that the level restricted has beyond those of baseline. Root in a user namespace of the pod's own is an unprivileged user on
 * the host (`policy/check_runAsNonRoot.go`, `policy/check_procMount.go`, 1.36).
 */
export function restrictedRules(spec: PodSpec): readonly Violation[] {
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
  return podContainers(spec)
    .filter(({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false)
    .map(({ name }) => ({
      rule: 'allowPrivilegeEscalation != false',
      detail: `container "${name}" must set securityContext.allowPrivilegeEscalation=false`,
      at: inContainer(spec, name, 'securityContext', 'allowPrivilegeEscalation'),
    }))
}

function unrestrictedCapabilities(spec: PodSpec): readonly Violation[] {
  return podContainers(spec).flatMap(({ name, securityContext }) => {
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
  return podContainers(spec)
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
    ...podContainers(spec)
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
  return podContainers(spec)
    .filter(({ securityContext }) => (securityContext?.seccompProfile ?? pod) === undefined)
    .map(({ name }) => ({
      rule: 'seccompProfile',
      detail: `pod or container "${name}" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
      at: inContainer(spec, name, 'securityContext', 'seccompProfile'),
    }))
}
