import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { RandomSource } from '../base/random.ts'
import type { PoddConfig } from '../config/options.ts'
import type { ImageService, RuntimeService } from '../cri/cri-runtime.ts'
import type { ContainerGarbagePolicy } from '../decide/node/plan-container-garbage.ts'
import type { LogLimits } from '../decide/node/plan-log-rotation.ts'
import type { SourceName } from '../pod/objects/document.ts'
import type { EventRecorder, NodeEventRecorder } from '../pod/state/pod-event.ts'
import type { RunProbe } from '../probes/run-probe.ts'
import type { PodRecordStore } from '../store/pod-records.ts'
import type { ImageArchives } from './images/image-archives.ts'
import type { ImageCredentials } from './images/image-credentials.ts'
import type { PullContent } from './images/pull-watch.ts'
import type { PodHost } from './actions/pod-host.ts'
import type { ObjectStore } from './objects/object-store.ts'
import type { AdmissionRules } from './desired/pod-admission.ts'
import type { RuntimeEventSource } from './runtime/runtime-observer.ts'
import type { RuntimePulse } from './runtime/runtime-pulse.ts'
import type { ShownResources } from './status/shown-resources.ts'
import type { ImageGarbageOptions } from './images/image-garbage.ts'
import type { LogSpace } from './node/limit-logs.ts'
import type { DrainMark } from './node/node-drain.ts'
import type { NodeJob } from './node/node-jobs.ts'
import type { OrphansOptions } from './node/orphans.ts'
import type { PressureSurroundings } from './node/pressure-surroundings.ts'

/** The settings that the loops go by. */
export type PodSettings = Pick<
  PoddConfig,
  | 'maxPods'
  | 'syncFrequencyMs'
  | 'podNameSuffix'
  | 'maxContainerRestartPeriodMs'
  | 'serializeImagePulls'
  | 'maxParallelImagePulls'
  | 'registryPullQps'
  | 'registryBurst'
  | 'evictionHard'
  | 'evictionSoft'
  | 'evictionSoftGracePeriodMs'
  | 'evictionMinimumReclaim'
  | 'evictionPressureTransitionPeriodMs'
  | 'evictionMaxPodGracePeriod'
  | 'mergeDefaultEvictionSettings'
  | 'shutdownGracePeriodMs'
  | 'shutdownGracePeriodCriticalPodsMs'
  | 'shutdownGracePeriodByPodPriority'
  | 'imagePullProgressTimeoutMs'
>

export interface PodSystemOptions {
  readonly host: PodHost
  /** Empty; the sources fill it. */
  readonly objects: ObjectStore
  readonly runtime: RuntimeService
  readonly pulse: RuntimePulse
  /** The runtime has been silent for so long that it isn't waited for any more; undefined where it is somebody else's. */
  readonly onRuntimeFrozen: (() => void) | undefined
  readonly images: ImageService
  /** Left out, images are pulled without credentials, and every pod may use every image. */
  readonly credentials?: ImageCredentials
  /** Undefined where the runtime serves no events. */
  readonly runtimeEvents: RuntimeEventSource | undefined
  readonly records: Pick<PodRecordStore, 'load' | 'save' | 'remove' | 'checkRoom'>
  readonly events: EventRecorder & NodeEventRecorder
  /** Where the pods are shown; left out, in a store of their own. */
  readonly shown?: ShownResources
  readonly runProbe: RunProbe
  readonly clock: Clock
  readonly random: RandomSource
  readonly logger: Logger
  /** The sources that are configured: none of their pods goes before all have spoken. */
  readonly sources: readonly SourceName[]
  /** `containerd`; asked when a status is made. */
  readonly runtimeName: () => string
  readonly settings: PodSettings
  /** Beside `maxPods`; left out, whatever fits is admitted. */
  readonly admission?: AdmissionRules
  /** Left out, no archives of images are followed. */
  readonly archives?: ImageArchives
  /** Left out, the runtime alone gives up pulls that hang. */
  readonly pullContent?: PullContent | undefined
  /** Left out, images stay for ever. */
  readonly imageGarbage?: Pick<ImageGarbageOptions, 'host' | 'policy' | 'usesFile'> & {
    readonly events: NodeEventRecorder
  }
  /** Left out, the host is never drained. */
  readonly drain?: { readonly mark: DrainMark; readonly events: NodeEventRecorder }
  /** Left out, no pod is evicted for a pressure of the node. */
  readonly pressure?: { readonly surroundings: PressureSurroundings; readonly events: NodeEventRecorder }
  /** Left out, all logs together may take what they like. */
  readonly logSpace?: LogSpace
  /** Which exited containers are kept; left out, as the kubelet's defaults have it. */
  readonly containerPolicy?: ContainerGarbagePolicy
  /** What finds what is left of pods that no longer exist, and when to look. */
  readonly orphans?: Pick<OrphansOptions, 'collectors' | 'makingSinceMs'> & {
    readonly disturbances: () => number
  }
  /** More periodic work about the host. */
  readonly jobs?: readonly NodeJob[]
  /** Left out, the logs of containers grow as they like. */
  readonly logRotation?: { readonly limits: LogLimits; readonly workers: number; readonly periodMs: number }
}
