import type { PodObject } from '../api/resource.ts'
import type { RandomSource } from '../base/random.ts'
import type { PoddConfig } from '../config/options.ts'
import type { ImageService } from '../runtime/cri-runtime.ts'
import type { SourceName } from '../pod/objects/document.ts'
import type { RunProbe } from '../probes/run-probe.ts'
import type { PodRecordStore } from '../store/pod-records.ts'
import type { ImageArchives } from './archives/image-archives.ts'
import type { ImageCredentials } from './images/image-credentials.ts'
import type { PullContent } from './images/pull-watch.ts'
import type { ObjectStore } from './objects/object-store.ts'
import type { AdmissionRules } from './desired/pod-admission.ts'
import type { RuntimeEventSource } from './runtime/runtime-observer.ts'
import type { RuntimePulse } from './runtime/runtime-pulse.ts'
import type { NodeWorkOptions } from './node/node-work.ts'
import type { ShownResources } from './status/shown-resources.ts'

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
  | 'imagePullProgressTimeoutMs'
> &
  NodeWorkOptions['settings']

export interface PodSystemOptions extends NodeWorkOptions {
  /** Empty; the sources fill it. */
  readonly objects: ObjectStore
  readonly pulse: RuntimePulse
  /** The runtime has been silent for so long that it isn't waited for any more; undefined where it is somebody else's. */
  readonly onRuntimeFrozen: (() => void) | undefined
  readonly images: ImageService
  /** Left out, images are pulled without credentials, and every pod may use every image. */
  readonly credentials?: ImageCredentials
  /** Undefined where the runtime serves no events. */
  readonly runtimeEvents: RuntimeEventSource | undefined
  readonly records: Pick<
    PodRecordStore,
    'load' | 'save' | 'remove' | 'checkRoom' | 'loadEndedByDown' | 'saveEndedByDown'
  >
  /** Where the pods are shown; left out, in a store of their own. */
  readonly shown?: ShownResources
  /** What is shown of a pod, where that is more than its manifest and its status say. */
  readonly presentPod?: (object: PodObject) => PodObject
  readonly runProbe: RunProbe
  readonly random: RandomSource
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
}
