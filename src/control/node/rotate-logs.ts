import { TurnPace } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { mapBounded } from '../../base/waits.ts'
import type { LogLimits } from '../../decide/node/plan-logs.ts'
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
      const failures: unknown[] = []
      const rotate = async ({ pod, container: { id, name, restartCount } }: LargeLog): Promise<void> => {
        signal.throwIfAborted()
        await rotateLog({
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
        })
      }
      await mapBounded(
        await findLargeLogs(options),
        (log) => rotate(log).catch((error: unknown) => void failures.push(error)),
        options.workers,
      )
      if (failures.length > 0) throw failures[0]
    },
  }
}

interface LargeLog {
  readonly pod: ObservedPod
  readonly container: ObservedContainer
}

/** The logs that need rotation; one that can't be examined is included, so that the rotation reports why. */
async function findLargeLogs({
  pods,
  directory,
  limits,
  clock,
}: LogRotationOptions): Promise<readonly LargeLog[]> {
  const pace = new TurnPace(clock)
  const found: LargeLog[] = []
  // Some may come and go between two turns.
  const listed = [...pods()]
  for (const pod of listed) {
    if (pace.isOver) await pace.next()
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
