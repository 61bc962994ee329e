import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { RuntimeService } from '../../runtime/cri-runtime.ts'
import type { ImageGarbagePolicy } from '../../decide/node/plan-image-garbage.ts'
import type { LogLimits } from '../../decide/node/plan-logs.ts'
import type { NodeEventRecorder } from '../../pod/state/pod-event.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { PodHost } from '../actions/pod-host.ts'
import type { ImageGarbage } from '../images/image-garbage.ts'
import type { PodWorker } from '../worker/pod-worker.ts'
import { collectsImages, imageCollectionJob } from './garbage/collect-images.ts'
import { logLimitsJob } from './limit-logs.ts'
import type { LogSpace } from './limit-logs.ts'
import { NodeJobs } from '../jobs/node-jobs.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'
import { logRotationJob } from './rotate-logs.ts'
import { volumeLimitsJob } from './volume-limits.ts'
import type { VolumeLimitsDeps } from './volume-limits.ts'

export interface NodeJobsSetup {
  readonly host: {
    readonly volumes: Pick<PodHost['volumes'], 'measureEmptyDir'>
    readonly logs: Pick<PodHost['logs'], 'directory'>
  }
  readonly runtime: Pick<RuntimeService, 'reopenContainerLog'>
  /** Left out, containers' logs are not rotated. */
  readonly logRotation?: { readonly limits: LogLimits; readonly workers: number; readonly periodMs: number }
  /** Left out, the size of all logs is not limited. */
  readonly logSpace?: LogSpace
  /** Jobs that were created elsewhere. */
  readonly jobs: readonly NodeJob[]
  readonly pressureJob: NodeJob | undefined
  /** Left out, limits of `ephemeral-storage` have no effect. */
  readonly measureStorage?: VolumeLimitsDeps['measureStorage']
  readonly imageGarbage:
    | {
        readonly garbage: ImageGarbage
        readonly policy: ImageGarbagePolicy
        readonly events: NodeEventRecorder
      }
    | undefined
  readonly workers: () => Iterable<PodWorker>
  /** The observed content of the runtime. */
  readonly observed: () => ReadonlyMap<PodUid, ObservedPod>
  /** Whether the runtime was listed since podd started. */
  readonly isListed: () => boolean
  readonly isRuntimeUp: () => boolean
  /** Whether the running and the desired pods are known. */
  readonly knowsAllPods: () => boolean
  readonly clock: Clock
  readonly logger: Logger
}

/** The periodic jobs of the node; unconfigured ones are left out. */
export function createNodeJobs(setup: NodeJobsSetup): NodeJobs {
  const { host, runtime, workers, observed, logRotation, logSpace, imageGarbage, clock, logger } = setup
  const jobs = new NodeJobs({ clock, logger })
  for (const job of setup.jobs) jobs.add(job)
  jobs.add(
    volumeLimitsJob({
      workers,
      measure: (uid, volume) => host.volumes.measureEmptyDir(uid, volume),
      measureStorage: setup.measureStorage,
      clock,
      logger,
    }),
  )
  if (setup.pressureJob !== undefined) jobs.add(setup.pressureJob)
  if (logRotation !== undefined)
    jobs.add(
      logRotationJob({
        pods: () => (setup.isRuntimeUp() ? observed().values() : []),
        directory: (pod, container) => `${host.logs.directory(pod)}/${container}`,
        reopen: async (containerId, signal) => {
          await runtime.reopenContainerLog({ containerId }, { signal })
        },
        clock,
        ...logRotation,
      }),
    )
  if (logSpace !== undefined)
    jobs.add(
      logLimitsJob({
        // The images of running, desired and terminating pods are known.
        pods: () =>
          setup.isListed() && setup.isRuntimeUp()
            ? [...observed().values(), ...[...workers()].map(({ ref }) => ref)]
            : undefined,
        measure: (pods) => logSpace.measure(pods),
        remove: (path) => logSpace.remove(path),
        totalBytes: () => logSpace.totalBytes(),
        availableBytes: () => logSpace.availableBytes(),
        keptMs: logSpace.keptMs,
        clock,
        logger,
      }),
    )
  if (imageGarbage !== undefined && collectsImages(imageGarbage.policy))
    jobs.add(
      imageCollectionJob({
        garbage: imageGarbage.garbage,
        isReady: setup.knowsAllPods,
        isRuntimeUp: setup.isRuntimeUp,
        events: imageGarbage.events,
      }),
    )
  return jobs
}
