import type { Clock } from '../../base/clock.ts'
import { Semaphore } from '../../base/semaphore.ts'
import { settleAll } from '../../base/settle-all.ts'
import type { LogLimits } from '../../decide/node/plan-log-rotation.ts'
import { mayRotateLog, rotateLog } from '../../logs/rotate-log.ts'
import type { ObservedContainer, ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerId, PodRef, PodUid } from '../../pod/values/ids.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

export interface LogRotationOptions {
  readonly pods: () => Iterable<ObservedPod>
  /** The directory of a container's logs. */
  readonly directory: (pod: PodRef, container: string) => string
  readonly reopen: (id: ContainerId, signal: AbortSignal) => Promise<void>
  readonly limits: LogLimits
  /** How many logs are rotated at a time. */
  readonly workers: number
  readonly periodMs: number
  readonly clock: Clock
}

/** Reopening is one call, and compressing takes seconds for the largest of logs. */
const deadlineMs = 300_000

/**
 * Rotates the logs of the containers that run (`pkg/kubelet/logs/container_log_manager.go`, rotateLogs, 1.36). A
 * failure doesn't affect other logs.
 */
export function logRotationJob(options: LogRotationOptions): NodeJob {
  const { clock, directory, limits } = options
  return {
    name: 'rotate-logs',
    periodMs: options.periodMs,
    deadlineMs,
    async run(signal) {
      const turn = new Semaphore(options.workers)
      await settleAll(
        findLargeLogs(options).map(({ pod, container: { id, name, restartCount } }) =>
          turn.run(
            () =>
              rotateLog({
                directory: directory(pod, name),
                restartCount,
                limits,
                nowMs: clock.wallMs(),
                reopen: () =>
                  options.reopen(id, signal).catch((error: unknown) => {
                    // A container that has ended meanwhile needs no live file.
                    if (isRunning(options, pod.uid, id)) throw error
                  }),
                signal,
              }),
            signal,
          ),
        ),
      )
    },
  }
}

interface LargeLog {
  readonly pod: ObservedPod
  readonly container: ObservedContainer
}

/** The logs that need rotation; one that can't be examined is included, so that the rotation reports why. */
function findLargeLogs({ pods, directory, limits }: LogRotationOptions): readonly LargeLog[] {
  const found: LargeLog[] = []
  for (const pod of pods()) {
    for (const container of pod.containers) {
      if (container.state !== 'running') continue
      const { name, restartCount } = container
      try {
        if (!mayRotateLog({ directory: directory(pod, name), restartCount, limits })) continue
      } catch {
        // The rotation fails on it too, such as on a loop of links, and logs why.
      }
      found.push({ pod, container })
    }
  }
  return found
}

function isRunning({ pods }: LogRotationOptions, uid: PodUid, id: ContainerId): boolean {
  const pod = [...pods()].find((each) => each.uid === uid)
  return pod?.containers.some((container) => container.id === id && container.state === 'running') === true
}
