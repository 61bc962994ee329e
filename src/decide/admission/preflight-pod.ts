import type { HandlerFeatures, RuntimeFeatures } from '../../pod/state/runtime-features.ts'
import type { ContainerSpec, SecurityContext } from '../../pod/schema/container-schema.ts'
import type { PodSpec } from '../../pod/schema/pod-schema.ts'
import type { Admission } from './admit-pod.ts'
import { sysctlProblem } from './sysctls.ts'

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
 * Why a pod can't have what it requests on this host or with this runtime; undefined where it can. What the kubelet
 * refuses in its own admission is rejected with the kubelet's reason. What another version of the runtime could do is
 * blocked: the pod starts once that runtime is present.
 */
export function preflightPod(spec: PodSpec, facts: PreflightFacts): Refusal | undefined {
  // `pkg/kubelet/lifecycle/predicate.go`, rejectPodAdmissionBasedOnOSField, 1.36.
  if (spec.os !== undefined && spec.os.name !== 'linux') {
    const message = "Failed to admit pod as the OS field doesn't match node OS"
    return { kind: 'rejected', reason: 'PodOSNotSupported', message }
  }
  const sysctl = sysctlProblem(spec, facts.allowedUnsafeSysctls)
  if (sysctl !== undefined) return { kind: 'rejected', reason: 'SysctlForbidden', message: sysctl }
  if (!facts.appArmor && wantsAppArmor(spec)) {
    const message = 'Cannot enforce AppArmor: AppArmor is not enabled on the host'
    return { kind: 'rejected', reason: 'AppArmor', message }
  }
  const needs = runtimeNeeds(spec)
  if (needs.length === 0 && facts.runtimeHandler === '') return undefined
  const { runtime } = facts
  if (runtime === 'any') return undefined
  if (runtime === undefined) {
    const message = 'waiting for the container runtime to say what it can do'
    return { kind: 'blocked', reason: 'RuntimeNotReady', message }
  }
  const lacking = needs.filter(({ has }) => !has(runtime, runtime.handlers?.get(facts.runtimeHandler)))
  if (lacking.length === 0) return undefined
  const words = lacking.map(({ field, from }) => `${field} needs ${from}`).join('; ')
  const message = `not supported by this container runtime (${runtime.runtime}): ${words}`
  return { kind: 'blocked', reason: 'RuntimeUnsupported', message }
}

interface RuntimeNeed {
  readonly field: string
  readonly from: string
  readonly has: (runtime: RuntimeFeatures, handler: HandlerFeatures | undefined) => boolean
}

function runtimeNeeds(spec: PodSpec): readonly RuntimeNeed[] {
  const needs: RuntimeNeed[] = []
  if (spec.securityContext?.supplementalGroupsPolicy === 'Strict') {
    needs.push({
      field: 'spec.securityContext.supplementalGroupsPolicy: Strict',
      from: 'containerd 2.0',
      has: (runtime) => runtime.supplementalGroupsPolicy,
    })
  }
  if (spec.volumes.some(({ image }) => image !== undefined)) {
    needs.push({ field: 'volumes.image', from: 'containerd 2.1', has: (runtime) => runtime.imageVolumes })
  }
  if (showsPartOfImage(spec)) {
    const field = 'volumeMounts.subPath of an image'
    needs.push({ field, from: 'containerd 2.2', has: (runtime) => runtime.imageSubPaths })
  }
  if (allContainers(spec).some(({ lifecycle }) => lifecycle?.stopSignal !== undefined)) {
    needs.push({
      field: 'lifecycle.stopSignal',
      from: 'containerd 2.3; the STOPSIGNAL of the image works everywhere',
      has: (runtime) => runtime.stopSignals,
    })
  }
  if (spec.hostUsers === false) {
    needs.push({
      field: 'spec.hostUsers: false',
      from: 'containerd 2.0 with runc 1.2 or crun 1.9',
      has: (_runtime, handler) => handler?.userNamespaces === true,
    })
  }
  const wantsRecursive = allContainers(spec).some(({ volumeMounts }) =>
    volumeMounts.some(({ recursiveReadOnly }) => recursiveReadOnly === 'Enabled'),
  )
  if (wantsRecursive) {
    needs.push({
      field: 'volumeMounts.recursiveReadOnly: Enabled',
      from: 'containerd 2.0',
      has: (_runtime, handler) => handler?.recursiveReadOnlyMounts === true,
    })
  }
  return needs
}

/** containerd 2.1 accepts the path and mounts the whole image nevertheless. */
function showsPartOfImage(spec: PodSpec): boolean {
  const images = new Set(spec.volumes.filter(({ image }) => image !== undefined).map(({ name }) => name))
  return allContainers(spec).some(({ volumeMounts }) =>
    volumeMounts.some(
      ({ name, subPath = '', subPathExpr = '' }) =>
        images.has(name) && (subPath !== '' || subPathExpr !== ''),
    ),
  )
}

/** Unconfined needs nothing (`pkg/security/apparmor/validate.go`, 1.36). */
function wantsAppArmor(spec: PodSpec): boolean {
  const contexts: readonly (Pick<SecurityContext, 'appArmorProfile'> | undefined)[] = [
    spec.securityContext,
    ...allContainers(spec).map(({ securityContext }) => securityContext),
  ]
  return contexts.some((context) => {
    const type = context?.appArmorProfile?.type
    return type !== undefined && type !== 'Unconfined'
  })
}

function allContainers(spec: PodSpec): readonly ContainerSpec[] {
  return [...spec.initContainers, ...spec.containers, ...spec.ephemeralContainers]
}
