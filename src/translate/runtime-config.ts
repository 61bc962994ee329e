import type * as cri from '../cri-types/cri-v1.ts'
import type { DNSConfig, PodSandboxConfig, PortMapping, Sent } from '../cri-types/cri-v1.ts'
import { isSidecar } from '../pod/schema/pod-resources.ts'
import type { PodUid } from '../pod/values/ids.ts'
import { normalSysctl } from '../pod/values/kernel-names.ts'
import type { ContainerCommand, Environment } from './environment.ts'
import {
  containerAnnotations,
  containerLabels,
  containerLogPath,
  sandboxAnnotations,
  sandboxLabels,
} from './identity.ts'
import { kernelHostname, podHostname } from './network.ts'
import { containerResources, sandboxResources } from './resources.ts'
import type { ResourceFacts } from './resources.ts'
import { containerSecurityContext, sandboxSecurityContext } from './security-context.ts'
import type { ImageUser, SecurityFacts, UserRange } from './security-context.ts'
import type { ContainerSpec } from '../pod/schema/container-schema.ts'
import type { Pod, PodSpec } from '../pod/schema/pod-schema.ts'

/** A pod, and the host facts that its sandbox needs. */
export interface SandboxInput {
  readonly pod: Pod
  readonly uid: PodUid
  /** 0 for the pod's first sandbox, incremented for each replacement. */
  readonly attempt: number
  /** See identity.ts. */
  readonly instance: string
  readonly manifestHash: string
  /** The pod's own cgroup, in its driver's form. */
  readonly cgroupParent: string
  /** Absolute; see identity.ts. */
  readonly logDirectory: string
  /** From podDns. */
  readonly dns: Sent<DNSConfig>
  readonly resources: ResourceFacts
  /** For a pod with a user namespace. */
  readonly userRange?: UserRange | undefined
  /** See sandboxSecurityContext. */
  readonly seccompPath?: string | undefined
}

/**
 * `kuberuntime_sandbox.go`, generatePodSandboxConfig (1.36).
 * @throws PoddError POD_HOSTNAME_TOO_LONG
 */
export function toSandboxConfig(input: SandboxInput): Sent<PodSandboxConfig> {
  const { pod, uid, attempt, instance, manifestHash } = input
  const { metadata, spec } = pod
  return {
    metadata: { name: metadata.name, uid, namespace: metadata.namespace, attempt },
    // On the host's network a pod has the host's name.
    hostname: spec.hostNetwork ? '' : kernelHostname(podHostname(pod), spec.setHostnameAsFQDN ?? false),
    logDirectory: input.logDirectory,
    dnsConfig: input.dns,
    portMappings: spec.hostNetwork ? [] : portMappings(spec),
    labels: sandboxLabels({ pod, uid, instance }),
    annotations: sandboxAnnotations(pod, manifestHash),
    linux: {
      cgroupParent: input.cgroupParent,
      securityContext: sandboxSecurityContext(spec, input),
      sysctls: Object.fromEntries(
        (spec.securityContext?.sysctls ?? []).map(({ name, value }) => [normalSysctl(name), value]),
      ),
      ...sandboxResources(spec, input.resources),
    },
  }
}

/**
 * The ports that the host opens for the pod: those of its main containers and of its sidecars. Where a sidecar asks
 * for the port of a main container, it is the main container's, as in the kubelet, which opens no other
 * (`pkg/kubelet/kuberuntime/kuberuntime_sandbox.go`, 1.36).
 */
function portMappings(spec: PodSpec): readonly Sent<PortMapping>[] {
  const main = mappingsOf(spec.containers)
  const sidecars = mappingsOf(spec.initContainers.filter((container) => isSidecar(spec, container)))
  const byPort = new Map<string, Sent<PortMapping>>()
  for (const mapping of [...main, ...sidecars]) {
    const key = hostPortKey(mapping)
    if (!byPort.has(key)) byPort.set(key, mapping)
  }
  return [...sidecars, ...main].filter((mapping) => byPort.get(hostPortKey(mapping)) === mapping)
}

function hostPortKey({ protocol, hostPort, hostIp }: Sent<PortMapping>): string {
  return `${protocol}/${hostIp}/${hostPort}`
}

function mappingsOf(containers: PodSpec['containers']): readonly Sent<PortMapping>[] {
  return containers.flatMap(({ ports }) =>
    ports.flatMap(({ hostPort, containerPort, protocol, hostIP }) =>
      hostPort === undefined || hostPort === 0
        ? []
        : [{ protocol, containerPort, hostPort, hostIp: hostIP ?? '' }],
    ),
  )
}

/** A container of a pod with all resolved inputs. */
export interface ContainerInput {
  readonly pod: Pod
  readonly uid: PodUid
  readonly container: ContainerSpec
  readonly restartCount: number
  /** See identity.ts. */
  readonly instance: string
  /** The hash to find a changed spec by; see pod/values/hash.ts. */
  readonly specHash: string
  /** What the image's name resolved to: the runtime's id of it. */
  readonly imageRef: string
  readonly imageUser: ImageUser
  /** Expanded already; see environment.ts. */
  readonly environment: Environment
  /** Expanded with it; see environment.ts. */
  readonly command: ContainerCommand
  /** From containerMounts. */
  readonly mounts: readonly cri.Sent<cri.Mount>[]
  readonly resources: ResourceFacts
  readonly security: SecurityFacts
  /** For a pod with a user namespace. */
  readonly userRange?: UserRange | undefined
  /** The container whose processes an ephemeral container sees. */
  readonly targetContainerId?: string | undefined
}

/** `kuberuntime_container.go`, generateContainerConfig (1.36). */
export function toContainerConfig(input: ContainerInput): cri.Sent<cri.ContainerConfig> {
  const { pod, uid, container, restartCount, instance, environment } = input
  return {
    metadata: { name: container.name, attempt: restartCount },
    image: { image: input.imageRef, userSpecifiedImage: container.image },
    command: input.command.command,
    args: input.command.args,
    workingDir: container.workingDir ?? '',
    envs: [...environment].map(([key, value]) => ({ key, value: Buffer.from(value) })),
    mounts: input.mounts,
    labels: containerLabels({ pod, uid, instance, container }),
    annotations: containerAnnotations(pod.spec, container, input.specHash, restartCount),
    logPath: containerLogPath(container.name, restartCount),
    stdin: container.stdin,
    stdinOnce: container.stdinOnce,
    tty: container.tty,
    stopSignal: toSignal(container.lifecycle?.stopSignal),
    linux: {
      resources: containerResources(pod.spec, container, input.resources),
      securityContext: containerSecurityContext(pod.spec, container, input),
    },
  }
}

/**
 * The signal that a container is to get first when it is stopped (`pkg/kubelet/kuberuntime/helpers.go`,
 * signalNameToRuntimeEnum, 1.36); undefined: the runtime's choice, the image's.
 */
function toSignal(signal: string | undefined): cri.Signal | undefined {
  const name = `SIGNAL_${signal?.replace('+', 'PLUS').replace('-', 'MINUS')}`
  return isSignal(name) ? name : undefined
}

/** The schema takes no others. */
function isSignal(name: string): name is cri.Signal {
  return name.startsWith('SIGNAL_SIG')
}
