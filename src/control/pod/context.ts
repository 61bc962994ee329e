import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { Backoff, BackoffKey } from '../../decide/plan/backoff.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { ContainerResize } from '../../decide/plan/resize.ts'
import type { ContainerSpec } from '../../pod/schema/container-schema.ts'
import type { ResourceLists } from '../../pod/schema/pod-resources.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { ContainerId, PodRef, SandboxId } from '../../pod/values/ids.ts'
import type { HostVolume } from '../../translate/mounts.ts'
import type { ImagePuller } from '../images/image-puller.ts'
import type { PodHost } from './host.ts'

/** The sandbox that containers are started in. */
export interface SandboxInUse {
  readonly id: SandboxId
  readonly config: cri.PodSandboxConfigInput
  readonly ips: readonly string[]
}

/** What a sandbox that is about to be made needs. */
export interface SandboxNeeds {
  readonly volumes: Promise<ReadonlyMap<string, HostVolume>>
  readonly config: Promise<cri.PodSandboxConfigInput>
}

/** A hook that was begun. */
export interface HookInFlight {
  /** Rejects where it could not be begun after all. */
  readonly ended: Promise<void>
}

/** What ends waits; calls that change something are never cancelled. */
export interface PassSignals {
  /** Aborted when the pod is to end, or podd stops. */
  readonly pass: AbortSignal
  /** Aborted also when the manifest has changed: for waits for what it may not want any more. */
  readonly manifest: AbortSignal
  /** Aborted when podd stops, or the pod is gone: for hooks, which outlive a pass. */
  readonly life: AbortSignal
}

/** What has to be on record before an act. */
export interface PodJournal {
  /** Resolves when the plan is on record: nothing in the runtime is changed before. Rejects as a save that is required. */
  readonly recorded: Promise<void>
  /**
   * Whether this container's preStop hook is still to run, or to be waited for; marks it as begun, durably.
   * @param isHeld see HookRunner
   */
  claimPreStop(id: ContainerId, isHeld: boolean): Promise<boolean>
  /** It could not be begun after all. */
  releasePreStop(id: ContainerId): Promise<void>
  /** Records that this container's postStart hook, which is held, is to run or to be waited for. */
  notePostStart(id: ContainerId): Promise<void>
  /** It has ended, and nothing is left to be done for that. */
  forgetPostStart(id: ContainerId): Promise<void>
  /** Records which of the containers that the plan stops it starts again, whatever their exit codes. */
  noteRestarts(): Promise<void>
  /** Records that this container, which is about to be stopped, is to have a successor whatever its policy says. */
  claimRestart(id: ContainerId): Promise<void>
  /** Records the backoff of this restart before it is made. */
  charge(action: Extract<PodAction, { kind: 'start-container' }>): Promise<void>
}

/** What the pass that executes a plan is asked or told in the middle of it. */
export interface PassHooks {
  /** To be called before each act that rests on `observed`. Throws OutdatedView where the runtime or podd was away since. */
  checkSeen(): void
  /** No process of the pod runs any more; its sandboxes are about to be stopped. */
  onContainersStopped(): void
  /** Something slow begins: the worker looks at what has been done by then, and publishes it. */
  lookSoon(): void
}

/** What goes on beyond the pass that began it. */
export interface PodInFlight {
  /** PreStop hooks, by container. */
  readonly preStops: Map<ContainerId, HookInFlight>
  /** Containers that were started and whose postStart hook isn't done. */
  readonly postStarts: Set<ContainerId>
  /** See linkLog. */
  readonly linkedLogs: Map<ContainerId, 'linked' | 'failed'>
}

/** What the executors of one pass have for their pod. What they change, they return (ActionOutcome). */
export interface PodContext {
  readonly ref: PodRef
  /** With the resources that it was admitted with. */
  readonly pod: Pod
  /** As it was at the start of the pass. */
  readonly record: PodRecord
  /** As read at the start of the pass. */
  readonly observed: ObservedPod
  /** Why the runtime can't make a sandbox with a network of its own, and what to do; undefined where it can. */
  readonly networkProblem: () => Promise<string | undefined>
  /** The runtime can make read-only what is mounted below a mount, too. */
  readonly recursiveReadOnly: boolean
  /** Images that were fetched for the next start, which need not ask the registry again. */
  readonly fresh: ReadonlySet<string>
  readonly host: PodHost
  readonly images: ImagePuller
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
  readonly signals: PassSignals
  readonly journal: PodJournal
  readonly pass: PassHooks
  readonly inFlight: PodInFlight
  /** The names of containers that this pass has made: `observed` is from before. */
  readonly made: Set<string>
}

/** Records an event of the pod, or of one of its containers. */
export function recordEvent(
  ctx: Pick<PodContext, 'events' | 'ref'>,
  event: { type: 'Normal' | 'Warning'; reason: string; message: string; container?: string },
): void {
  ctx.events.record({ pod: ctx.ref, ...event })
}

/** What an action has led to, as data. The pod's worker applies it (control/pod/execute.ts). */
export type ActionOutcome =
  /** It failed, and is not to be tried again before the backoff ends. */
  | { readonly kind: 'backoff'; readonly key: BackoffKey; readonly backoff: Backoff }
  /** No sandbox was created under this number, so that it can be given again. */
  | { readonly kind: 'attempt-unused'; readonly attempt: number }
  /** The start of this container never came to pass for what it waits for: its backoff does not count. */
  | { readonly kind: 'backoff-unused'; readonly container: string }
  /** The image of a container that keeps running is to be fetched meanwhile. */
  | { readonly kind: 'fetch-wanted'; readonly spec: ContainerSpec }
  /** All images that the next start of this container needs are present. */
  | { readonly kind: 'images-fetched'; readonly container: string; readonly images: readonly string[] }
  /** The container's start ensures its images from here on; a pull in flight goes on. */
  | { readonly kind: 'fetch-superseded'; readonly container: string }
  /** A start has used these images: the next one asks the registry again if the pull policy says so. */
  | { readonly kind: 'images-used'; readonly images: readonly string[] }
  /** These containers, and the pod itself where `podResources` is set, have their new resources. */
  | {
      readonly kind: 'resized'
      readonly resizes: readonly ContainerResize[]
      readonly podResources: ResourceLists | undefined
    }

/** Thrown into a pass to end its waits. */
export class Interrupted extends PoddError {
  constructor() {
    super('INTERRUPTED', 'the pod has more urgent work')
  }
}

/** Thrown by a pass whose view of the runtime is outdated: the pod is read again at once. */
export class OutdatedView extends Interrupted {}
