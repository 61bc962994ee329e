import type { DNSConfigInput, PodSandboxConfigInput, PortMappingInput } from '../cri-types/cri-v1.ts'
import type { PodUid } from '../pod/values/ids.ts'
import { isSidecar } from '../pod/schema/pod-resources.ts'
import { normalSysctl } from '../pod/values/kernel-names.ts'
import { kernelHostname, podHostname } from './network/hostname.ts'
import { sandboxAnnotations, sandboxLabels } from './identity/labels.ts'
import { sandboxResources } from './resources/resources.ts'
import type { ResourceFacts } from './resources/resources.ts'
import { sandboxSecurityContext } from './security/security-context.ts'
import type { PodSpecView, PodView } from './spec/spec-view.ts'
import type { UserRange } from './security/user-namespace.ts'

/** A pod, and the host facts that its sandbox needs. */
export interface SandboxInput {
  readonly pod: PodView
  readonly uid: PodUid
  /** 0 for the pod's first sandbox, incremented for each replacement. */
  readonly attempt: number
  /** See labels.ts. */
  readonly instance: string
  readonly manifestHash: string
  /** The pod's own cgroup, in its driver's form. */
  readonly cgroupParent: string
  /** Absolute; see log-path.ts. */
  readonly logDirectory: string
  /** From podDns. */
  readonly dns: DNSConfigInput
  /** Empty where there is no cluster DNS. */
  readonly clusterDomain: string
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
export function toSandboxConfig(input: SandboxInput): PodSandboxConfigInput {
  const { pod, uid, attempt, instance, manifestHash } = input
  const { metadata, spec } = pod
  return {
    metadata: { name: metadata.name, uid, namespace: metadata.namespace, attempt },
    // On the host's network a pod has the host's name.
    hostname: spec.hostNetwork
      ? ''
      : kernelHostname(podHostname(pod, input.clusterDomain), spec.setHostnameAsFQDN ?? false),
    logDirectory: input.logDirectory,
    dnsConfig: input.dns,
    portMappings: spec.hostNetwork ? [] : portMappings(spec),
    labels: sandboxLabels({ pod, uid, instance }),
    annotations: sandboxAnnotations({ pod, manifestHash }),
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
function portMappings(spec: PodSpecView): readonly PortMappingInput[] {
  const main = mappingsOf(spec.containers)
  const sidecars = mappingsOf(spec.initContainers.filter((container) => isSidecar(spec, container)))
  const byPort = new Map<string, PortMappingInput>()
  for (const mapping of [...main, ...sidecars]) {
    const key = hostPortKey(mapping)
    if (!byPort.has(key)) byPort.set(key, mapping)
  }
  return [...sidecars, ...main].filter((mapping) => byPort.get(hostPortKey(mapping)) === mapping)
}

function hostPortKey({ protocol, hostPort, hostIp }: PortMappingInput): string {
  return `${protocol}/${hostIp}/${hostPort}`
}

function mappingsOf(containers: PodSpecView['containers']): readonly PortMappingInput[] {
  return containers.flatMap(({ ports }) =>
    ports.flatMap(({ hostPort, containerPort, protocol, hostIP }) =>
      hostPort === undefined || hostPort === 0
        ? []
        : [{ protocol, containerPort, hostPort, hostIp: hostIP ?? '' }],
    ),
  )
}
