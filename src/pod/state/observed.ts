/* What the runtime shows: pods with their sandboxes and containers, its events, and what it can do. */
import type { Openness } from '../../base/keep-open.ts'
import type { ResourceList, ResourceLists } from '../schema/pod-resources.ts'
import type { ContainerId, PodUid, SandboxId } from '../values/ids.ts'
import type { LinuxContainerUser } from './status.ts'

/** All that the runtime holds of one pod. */
export interface ObservedPod {
  readonly uid: PodUid
  readonly namespace: string
  readonly name: string
  /** Newest first. */
  readonly sandboxes: readonly ObservedSandbox[]
  /** Of all sandboxes, newest first. */
  readonly containers: readonly ObservedContainer[]
}

export interface ObservedSandbox {
  readonly id: SandboxId
  readonly attempt: number
  readonly ready: boolean
  readonly createdAtMs: number
  /** The pod's addresses, the primary one first; empty on the host's network. */
  readonly ips: readonly string[]
  readonly hostNetwork: boolean
  readonly annotations: Readonly<Record<string, string>>
}

/** One container as the runtime reports it. Times are wall milliseconds; undefined where it hasn't happened. */
export interface ObservedContainer {
  readonly id: ContainerId
  readonly sandboxId: SandboxId
  readonly name: string
  /** CRI's attempt: 0 for the first container of this name in the pod, one more for each restart. */
  readonly restartCount: number
  readonly state: 'created' | 'running' | 'exited' | 'unknown'
  readonly createdAtMs: number
  readonly startedAtMs: number | undefined
  readonly finishedAtMs: number | undefined
  readonly exitCode: number | undefined
  /** The exit is taken from an event; the runtime itself does not report it yet. */
  readonly provisional?: boolean
  /**
   * Its start was cancelled with the podd that had asked for it, and it counts as created. `unrun`: no process of it was
   * started; else one may have been.
   */
  readonly cancelled?: 'unrun' | 'may-have-run'
  /** The runtime's reason for its exit: `Completed`, `Error`, `OOMKilled`, … */
  readonly reason: string
  readonly message: string
  /** The image's name in the manifest. */
  readonly image: string
  /** The id of the image that the name resolved to. */
  readonly imageId: string
  /** podd's hash of the spec it was created from, read back from its annotations; see hash.ts. */
  readonly specHash: string
  /** The cpu and memory it was created with, read back from its annotations; undefined where they don't say. */
  readonly resources?: ResourceLists | undefined
  /** The user of its first process; undefined where the runtime doesn't report it. */
  readonly user?: LinuxContainerUser | undefined
  /** Its stop signal; undefined where the runtime doesn't report it. */
  readonly stopSignal?: string | undefined
  /** The pod-level limits of cpu and memory at its creation; undefined where there were none. */
  readonly podLimits?: ResourceList | undefined
  readonly annotations: Readonly<Record<string, string>>
}

/** A hint that something changed in the runtime. Sandboxes are containers here too: `containerId` has their ids. */
export type RuntimeEvent =
  | { readonly kind: 'started' | 'oom' | 'deleted' | 'created'; readonly containerId: ContainerId }
  /** `exit`: how the process ended, where the event has it; the runtime's own records may lag behind it. */
  | { readonly kind: 'exited'; readonly containerId: ContainerId; readonly exit?: ProcessExit | undefined }
  /** After `opened` what happened before is unknown, so everything is to be listed again. */
  | Openness

/** The end of a container's first process. */
export interface ProcessExit {
  readonly exitCode: number
  /** Wall time. */
  readonly atMs: number
}

/** The features that the container runtime reports; see translate/observe.ts. */
export interface RuntimeFeatures {
  /** `containerd 1.6.20`, for messages about missing features. */
  readonly runtime: string
  /** By name; the empty name is the handler of pods without one. Undefined where the runtime doesn't report them. */
  readonly handlers: ReadonlyMap<string, HandlerFeatures> | undefined
  readonly supplementalGroupsPolicy: boolean
  readonly imageVolumes: boolean
  /** It supports sub-paths of image volumes. */
  readonly imageSubPaths: boolean
  /** It supports stop signals of containers. */
  readonly stopSignals: boolean
}

/** What one runtime handler (`runc`, `kata`, …) can do. */
export interface HandlerFeatures {
  readonly userNamespaces: boolean
  readonly recursiveReadOnlyMounts: boolean
}

/** Where a runtime looks for the pods' network, as far as it tells. */
export interface CniPlaces {
  readonly cniConfDir: string | undefined
  readonly cniPluginDirs: readonly string[]
}

/** How to give pods a network. */
export function cniHint({ cniConfDir, cniPluginDirs }: CniPlaces): string {
  return `Put a CNI network config into ${cniConfDir ?? '/etc/cni/net.d'}, and its plugins into ${cniPluginDirs[0] ?? '/opt/cni/bin'}; or let podd do it: --container-runtime-endpoint embedded.`
}
