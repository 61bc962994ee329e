import type { Clock, SharedTurns } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { RandomSource } from '../../base/random.ts'
import type { Changes } from '../../base/waits.ts'
import type { ContainerGarbagePolicy } from '../../decide/node/plan-container-garbage.ts'
import type { BackoffLimits } from '../../decide/plan/backoff.ts'
import type { Pod } from '../../pod/schema/pod-schema.ts'
import type { EventRecorder, NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { PodRecord } from '../../pod/state/pod-record.ts'
import type { PodRef, PodUid, SourceName } from '../../pod/values/ids.ts'
import type { PodRecordStore } from '../../store/pod-records.ts'
import type { ImagePuller } from '../images/image-puller.ts'
import type { RuntimeObserver } from '../runtime/runtime-observer.ts'
import type { RuntimeKnowledge, SystemState } from '../runtime/runtime-watch.ts'
import type { PodCounters } from '../serving/pod-counters.ts'
import type { StatusStore } from '../serving/status-store.ts'
import type { PodHost } from './host.ts'
import type { Prober } from './prober.ts'

/** What all pods share: everything outside of a pod that its passes ask, act on or tell. */
export interface PodEnv extends PodHost {
  readonly clock: Clock
  readonly random: RandomSource
  readonly logger: Logger
  readonly events: EventRecorder & NodeEventRecorder
  readonly records: Pick<PodRecordStore, 'save' | 'isThere' | 'remove' | 'checkRoom'>
  readonly images: ImagePuller
  readonly observer: RuntimeObserver
  readonly knowledge: RuntimeKnowledge
  /** Is told whenever what is to be probed may have changed; has the newest verdicts. */
  readonly prober: Prober
  readonly statuses: StatusStore
  readonly counters: PodCounters
  /** Noted after each pass, and after each observation that is made between: others wait for what pods do. */
  readonly changes: Changes
  /** What the pod's hosts file has of Services now (servicesSection); undefined where that isn't known yet. */
  readonly serviceNames: (pod: Pod, source: SourceName) => Promise<string | undefined>
  /** Why no container of the pod starts yet, for the sake of its Services. */
  readonly awaitsServices: (source: SourceName, uid: PodUid) => string | undefined
  /** The variables of Services that its containers get. */
  readonly serviceVariables: (pod: Pod, source: SourceName) => Promise<ReadonlyMap<string, string>>
  /** Its hosts file was written for the start of a container; Services may have changed meanwhile. */
  readonly noteHostsFile: (uid: PodUid) => void
  /** For work that many pods may be about to do. */
  readonly turns: SharedTurns
  readonly limits: BackoffLimits
  readonly containerPolicy: ContainerGarbagePolicy
  /** `containerd` */
  readonly runtimeName: () => string
  /**
   * How often the runtime was unavailable or podd did not run so far. Observations from before the last time may be
   * outdated.
   */
  readonly runtimeLosses: () => number
  readonly system: Readonly<SystemState>
}

/** Records an event of the pod, or of one of its containers, about what goes as it should. */
export function tell(
  env: Pick<PodEnv, 'events'>,
  pod: PodRef,
  reason: string,
  message: string,
  container?: string,
): void {
  env.events.record({ pod, type: 'Normal', reason, message, ...(container !== undefined && { container }) })
}

/** And about what doesn't. */
export function warn(
  env: Pick<PodEnv, 'events'>,
  pod: PodRef,
  reason: string,
  message: string,
  container?: string,
): void {
  env.events.record({ pod, type: 'Warning', reason, message, ...(container !== undefined && { container }) })
}

/** Why the runtime can't make a sandbox with a network of its own, and what to do; undefined where it can. */
export async function networkProblem({ knowledge }: PodEnv): Promise<string | undefined> {
  await knowledge.asked
  return knowledge.networkProblem
}

/** Whether the pod's runtime handler can make read-only what is mounted below a mount, too. */
export function recursiveReadOnly({ knowledge }: PodEnv, { classes }: PodRecord): boolean {
  const handler = knowledge.features?.handlers?.get(classes?.runtimeHandler ?? '')
  return handler?.recursiveReadOnlyMounts ?? false
}
