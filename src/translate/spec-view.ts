/*
 * The parts of the Pod API that this room reads, whether the schema takes them yet or still refuses
 * them. A decoded Pod is a PodView as it stands: a field the schema refuses is simply never there.
 */
import type * as cri from '../cri-types/cri-v1.ts'
import type {
  ContainerSpec,
  SecurityContext,
  StopSignal,
  VolumeMount,
} from '../pod/schema/container-schema.ts'
import type { Pod, podSecurityContextSchema, PodSpec } from '../pod/schema/pod-schema.ts'
import type { Infer } from '../pod/schema/types.ts'

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

/** What the CRI calls them (`pkg/kubelet/kuberuntime/helpers.go`, signalNameToRuntimeEnum, 1.36). */
const criSignals: Readonly<Record<StopSignal, cri.Signal>> = {
  SIGABRT: 'SIGNAL_SIGABRT',
  SIGALRM: 'SIGNAL_SIGALRM',
  SIGBUS: 'SIGNAL_SIGBUS',
  SIGCHLD: 'SIGNAL_SIGCHLD',
  SIGCLD: 'SIGNAL_SIGCLD',
  SIGCONT: 'SIGNAL_SIGCONT',
  SIGFPE: 'SIGNAL_SIGFPE',
  SIGHUP: 'SIGNAL_SIGHUP',
  SIGILL: 'SIGNAL_SIGILL',
  SIGINT: 'SIGNAL_SIGINT',
  SIGIO: 'SIGNAL_SIGIO',
  SIGIOT: 'SIGNAL_SIGIOT',
  SIGKILL: 'SIGNAL_SIGKILL',
  SIGPIPE: 'SIGNAL_SIGPIPE',
  SIGPOLL: 'SIGNAL_SIGPOLL',
  SIGPROF: 'SIGNAL_SIGPROF',
  SIGPWR: 'SIGNAL_SIGPWR',
  SIGQUIT: 'SIGNAL_SIGQUIT',
  SIGRTMAX: 'SIGNAL_SIGRTMAX',
  'SIGRTMAX-1': 'SIGNAL_SIGRTMAXMINUS1',
  'SIGRTMAX-10': 'SIGNAL_SIGRTMAXMINUS10',
  'SIGRTMAX-11': 'SIGNAL_SIGRTMAXMINUS11',
  'SIGRTMAX-12': 'SIGNAL_SIGRTMAXMINUS12',
  'SIGRTMAX-13': 'SIGNAL_SIGRTMAXMINUS13',
  'SIGRTMAX-14': 'SIGNAL_SIGRTMAXMINUS14',
  'SIGRTMAX-2': 'SIGNAL_SIGRTMAXMINUS2',
  'SIGRTMAX-3': 'SIGNAL_SIGRTMAXMINUS3',
  'SIGRTMAX-4': 'SIGNAL_SIGRTMAXMINUS4',
  'SIGRTMAX-5': 'SIGNAL_SIGRTMAXMINUS5',
  'SIGRTMAX-6': 'SIGNAL_SIGRTMAXMINUS6',
  'SIGRTMAX-7': 'SIGNAL_SIGRTMAXMINUS7',
  'SIGRTMAX-8': 'SIGNAL_SIGRTMAXMINUS8',
  'SIGRTMAX-9': 'SIGNAL_SIGRTMAXMINUS9',
  SIGRTMIN: 'SIGNAL_SIGRTMIN',
  'SIGRTMIN+1': 'SIGNAL_SIGRTMINPLUS1',
  'SIGRTMIN+10': 'SIGNAL_SIGRTMINPLUS10',
  'SIGRTMIN+11': 'SIGNAL_SIGRTMINPLUS11',
  'SIGRTMIN+12': 'SIGNAL_SIGRTMINPLUS12',
  'SIGRTMIN+13': 'SIGNAL_SIGRTMINPLUS13',
  'SIGRTMIN+14': 'SIGNAL_SIGRTMINPLUS14',
  'SIGRTMIN+15': 'SIGNAL_SIGRTMINPLUS15',
  'SIGRTMIN+2': 'SIGNAL_SIGRTMINPLUS2',
  'SIGRTMIN+3': 'SIGNAL_SIGRTMINPLUS3',
  'SIGRTMIN+4': 'SIGNAL_SIGRTMINPLUS4',
  'SIGRTMIN+5': 'SIGNAL_SIGRTMINPLUS5',
  'SIGRTMIN+6': 'SIGNAL_SIGRTMINPLUS6',
  'SIGRTMIN+7': 'SIGNAL_SIGRTMINPLUS7',
  'SIGRTMIN+8': 'SIGNAL_SIGRTMINPLUS8',
  'SIGRTMIN+9': 'SIGNAL_SIGRTMINPLUS9',
  SIGSEGV: 'SIGNAL_SIGSEGV',
  SIGSTKFLT: 'SIGNAL_SIGSTKFLT',
  SIGSTOP: 'SIGNAL_SIGSTOP',
  SIGSYS: 'SIGNAL_SIGSYS',
  SIGTERM: 'SIGNAL_SIGTERM',
  SIGTRAP: 'SIGNAL_SIGTRAP',
  SIGTSTP: 'SIGNAL_SIGTSTP',
  SIGTTIN: 'SIGNAL_SIGTTIN',
  SIGTTOU: 'SIGNAL_SIGTTOU',
  SIGURG: 'SIGNAL_SIGURG',
  SIGUSR1: 'SIGNAL_SIGUSR1',
  SIGUSR2: 'SIGNAL_SIGUSR2',
  SIGVTALRM: 'SIGNAL_SIGVTALRM',
  SIGWINCH: 'SIGNAL_SIGWINCH',
  SIGXCPU: 'SIGNAL_SIGXCPU',
  SIGXFSZ: 'SIGNAL_SIGXFSZ',
}

/** The signal that a container is to get first when it is stopped; undefined: the runtime's choice, the image's. */
export function toCriSignal(signal: StopSignal | undefined): cri.Signal | undefined {
  return signal === undefined ? undefined : criSignals[signal]
}

/** As Kubernetes names it; undefined where the runtime does not report it. */
export function readCriSignal(signal: cri.Signal | undefined): string | undefined {
  return Object.entries(criSignals).find(([, reported]) => reported === signal)?.[0]
}
