import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type * as cri from '../../cri-types/cri-v1.ts'
import type { PodAction } from '../../decide/plan/pod-action.ts'
import type { Hold, HoldKey } from '../../decide/plan/hold.ts'
import type { ContainerResize } from '../../decide/plan/resize.ts'
import type { SourceName } from '../../pod/objects/document.ts'
import type { ResourceLists } from '../../pod/spec/pod-resources.ts'
import type { ContainerId, PodRef, SandboxId } from '../../pod/values/ids.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { EventRecorder } from '../../pod/state/pod-event.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { ImagePuller } from '../images/image-puller.ts'
import type { PresentImage } from '../images/image-request.ts'
import type { PodHost } from './pod-host.ts'

/** The sandbox that containers are started in. */
export interface SandboxInUse {
  readonly id: SandboxId
  readonly config: cri.PodSandboxConfigInput
  readonly ips: readonly string[]
}

/** A hook that was begun. */
export interface HookInFlight {
  /** Rejects where it could not be begun after all. */
  readonly ended: Promise<void>
}

/** A pod in the hands of its executors, for the length of one pass. */
export interface PodContext {
  readonly ref: PodRef
  readonly pod: Pod
  /** Where its manifest comes from. */
  readonly source: SourceName
  readonly manifestHash: string
  /** Of its RuntimeClass; empty for the runtime's default. */
  readonly runtimeHandler: string
  /** As read at the start of the pass. */
  readonly observed: ObservedPod
  readonly host: PodHost
  readonly images: ImagePuller
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
  /** Aborted when the pod is to end, or podd lets go of it; ends waits only. */
  readonly signal: AbortSignal
  /** Aborted also when the manifest has changed: for waits for what it may not want any more. */
  readonly manifestSignal: AbortSignal
  /** The runtime can make read-only what is mounted below a mount, too. */
  readonly recursiveReadOnly: boolean
  /** By when all containers shall be gone, where the pod is ending. */
  readonly deadlineMs: number | undefined
  /** To be called before each act that rests on `observed`. Throws OutdatedView where the runtime or podd was away since. */
  checkSeen(): void
  /** No process of the pod runs any more; its sandboxes are about to be stopped. */
  onContainersStopped(): void
  /** What may take its time begins: what has been done by then is looked at and shown meanwhile. */
  lookSoon(): void
  /** Whether this container's preStop hook is still to run; marks it as begun, durably. */
  claimPreStop(id: ContainerId): Promise<boolean>
  /** It could not be begun after all. */
  releasePreStop(id: ContainerId): Promise<void>
  /** PreStop hooks in flight, by container: they outlive the pass that began them. */
  readonly preStops: Map<ContainerId, HookInFlight>
  /** Aborted when podd lets go of the pod, or it is gone: ends hooks. */
  readonly lifeSignal: AbortSignal
  /** Has on record that this container, which is about to be stopped, is to have a successor whatever its policy says. */
  claimRestart(id: ContainerId): Promise<void>
  /** Has the cost of this restart on record before it is made. */
  charge(action: Extract<PodAction, { kind: 'start-container' }>): Promise<void>
  /** No sandbox was made under this number. */
  freeSandboxAttempt(attempt: number): void
  /** Undefined: nothing is held up any more. */
  hold(key: HoldKey, hold: Hold | undefined): void
  /** Begins what the pass doesn't wait for; one thing for each container. */
  fetchAhead(container: string, fetch: (signal: AbortSignal) => Promise<void>): void
  /** Nobody waits for it any more. */
  endFetch(container: string): void
  /** This image was made sure of just now. */
  noteFresh(image: string): void
  /** Whether it was; asks once. */
  takeFresh(image: string): boolean
  /** The pod with the resources that its running containers have by now. */
  appliedPod(): Pod
  /** A container has its new resources. */
  noteResized(resize: ContainerResize): void
  /** The pod itself has the cpu and memory that it asks for. */
  noteResizedPod(resources: ResourceLists): void
  /** Containers that were started and whose postStart hook isn't done. */
  readonly postStarts: Set<ContainerId>
  /** See linkLog. */
  readonly linkedLogs: Map<ContainerId, 'linked' | 'failed'>
  /** Images that are about to be needed, looked for beforehand. */
  readonly foreseen: Map<string, Promise<PresentImage | undefined>>
  /** Set by create-sandbox, or from what is observed. */
  sandbox: SandboxInUse | undefined
}

/** Records an event of the pod, or of one of its containers. */
export function recordEvent(
  ctx: Pick<PodContext, 'events' | 'ref'>,
  event: { type: 'Normal' | 'Warning'; reason: string; message: string; container?: string },
): void {
  ctx.events.record({ pod: ctx.ref, ...event })
}
