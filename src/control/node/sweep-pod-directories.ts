import type { Logger } from '../../base/logger.ts'
import type { PodUid } from '../../pod/values/ids.ts'
import type { PodVolumes } from '../actions/pod-host.ts'

export interface PodDirectorySweep {
  readonly volumes: Pick<PodVolumes, 'listPods' | 'teardown'>
  /** Whether there is a record of the pod, or the runtime has something of it. */
  readonly isKnown: (uid: PodUid) => boolean
  readonly logger: Logger
}

/**
 * Removes the directories of pods that nobody knows any more, whose records were lost, say
 * (`pkg/kubelet/kubelet_volumes.go`, cleanupOrphanedPodDirs, 1.36). Never rejects.
 */
export async function sweepPodDirectories({ volumes, isKnown, logger }: PodDirectorySweep): Promise<void> {
  try {
    for (const uid of await volumes.listPods()) {
      if (isKnown(uid)) continue
      logger.warn({ uid }, 'removing an orphaned pod directory')
      await volumes
        .teardown(uid)
        .catch((error: unknown) =>
          logger.warn({ uid, err: error }, 'cannot remove an orphaned pod directory'),
        )
    }
  } catch (error) {
    logger.warn({ err: error }, 'cannot list the directories of pods')
  }
}
