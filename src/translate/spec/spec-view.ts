import type { ContainerSpec, SecurityContext, VolumeMount } from '../../pod/schema/container-schema.ts'
import type { Pod, PodSpec, podSecurityContextSchema } from '../../pod/schema/pod-schema.ts'
import type { Infer } from '../../pod/schema/types.ts'

/*
 * The parts of the Pod API that this room reads, whether the schema takes them yet or still refuses
 * them. A decoded Pod is a PodView as it stands: a field the schema refuses is simply never there.
 */

export type PodSecurityContext = Infer<typeof podSecurityContextSchema>
export type SeccompProfile = NonNullable<SecurityContext['seccompProfile']>
export type AppArmorProfile = NonNullable<SecurityContext['appArmorProfile']>
export type SeLinuxOptions = NonNullable<SecurityContext['seLinuxOptions']>
export type Capabilities = NonNullable<SecurityContext['capabilities']>

export interface HostAlias {
  readonly ip: string
  readonly hostnames: readonly string[]
}

export interface PodDnsConfig {
  readonly nameservers: readonly string[]
  readonly searches: readonly string[]
  readonly options: readonly { readonly name: string; readonly value?: string }[]
}

export type ResourceList = Readonly<Record<string, string>>

export interface ResourceLists {
  readonly limits: ResourceList
  readonly requests: ResourceList
}

export type VolumeMountView = VolumeMount & {
  readonly recursiveReadOnly?: 'Disabled' | 'IfPossible' | 'Enabled'
  readonly mountPropagation?: 'None' | 'HostToContainer' | 'Bidirectional'
}

export type ContainerView = Omit<ContainerSpec, 'volumeMounts'> & {
  readonly volumeMounts: readonly VolumeMountView[]
  readonly securityContext?: SecurityContext
  readonly stdin?: boolean
  readonly stdinOnce?: boolean
  readonly tty?: boolean
  readonly targetContainerName?: string
}

export type PodSpecView = Omit<PodSpec, 'containers' | 'initContainers' | 'ephemeralContainers'> & {
  readonly containers: readonly ContainerView[]
  readonly initContainers: readonly ContainerView[]
  readonly ephemeralContainers: readonly ContainerView[]
  readonly securityContext?: PodSecurityContext
  readonly hostAliases?: readonly HostAlias[]
  readonly dnsConfig?: PodDnsConfig
  readonly overhead?: ResourceList
  readonly resources?: ResourceLists
  readonly setHostnameAsFQDN?: boolean
  readonly priorityClassName?: string
  readonly priority?: number
}

export interface PodView {
  readonly metadata: Pod['metadata']
  readonly spec: PodSpecView
}

/** Init, main and ephemeral containers, in this order. */
export function allContainers(spec: PodSpecView): readonly ContainerView[] {
  return [...spec.initContainers, ...spec.containers, ...spec.ephemeralContainers]
}
