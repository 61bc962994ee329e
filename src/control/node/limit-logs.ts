import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import type { LogTotal } from '../../config/log-options.ts'
import { planLogLimits } from '../../decide/node/plan-logs.ts'
import type { LogSpaceFacts } from '../../decide/node/plan-logs.ts'
import type { PodRef, PodUid } from '../../pod/values/ids.ts'
import type { NodeJob } from '../jobs/node-jobs.ts'

/** The logs and their limits. */
export interface LogSpace {
  /** Measures the logs of these pods, and the kept logs of removed ones. */
  measure(pods: readonly PodRef[]): Promise<LogSpaceFacts>
  /** Removes a file, or a directory with its content; does nothing where it is gone. */
  remove(path: string): Promise<void>
  /** The most that all logs may take; undefined for no limit. */
  totalBytes(): Promise<number | undefined>
  /** The available bytes of the logs' disk. */
  availableBytes(): Promise<number>
  /** How long the logs of removed pods are kept. */
  readonly keptMs: number
}

export interface LogLimitsOptions extends LogSpace {
  /** Undefined while the pods are unknown. */
  readonly pods: () => Iterable<PodRef> | undefined
  readonly clock: Clock
  readonly logger: Logger
}

/** While the logs are this far from their limit, and no pod is removed, they are measured less often. */
const wideMarginBytes = 64 * 1024 * 1024
/** The longest interval of measurements, since other writes and removals can hide the growth of logs. */
const longestRestMs = 300_000

/** The least limit of a percentage, where that is at most half of the disk. */
const leastTotalBytes = 100 * 1024 * 1024

/**
 * The limit in bytes; a percentage is of the disk's capacity. On a small disk it is raised to 100 MiB, or half of the
 * disk where that is less: below it even the live logs of a few containers would exceed the limit.
 */
export async function logLimitBytes(
  total: LogTotal,
  readDisk: () => Promise<{ readonly capacityBytes: number }>,
): Promise<number | undefined> {
  if (total === undefined || 'bytes' in total) return total?.bytes
  const { capacityBytes } = await readDisk()
  const least = Math.min(leastTotalBytes, capacityBytes / 2)
  return Math.floor(Math.max((capacityBytes * total.percent) / 100, least))
}

/** In the meantime rotation bounds each log. */
const periodMs = 30_000
const deadlineMs = 300_000

/** Until when the logs need no measurement. */
interface Rest {
  readonly untilMs: number
  /** Unless the disk has less available than this: logs may have used the difference. */
  readonly leastAvailableBytes: number
}

/**
 * Bounds the size of all logs together, and removes those of removed pods after their retention. The kubelet has no
 * such limit: it bounds each log separately. Throws PoddError LOG_SPACE where what may be removed isn't enough.
 */
export function logLimitsJob(options: LogLimitsOptions): NodeJob {
  const { clock, logger, keptMs } = options
  let rest: Rest | undefined
  /** Those of the last measure. */
  let measured: ReadonlySet<PodUid> | undefined
  /** Whether a pod has gone since then; undefined before the first. */
  const hasLost = (uids: ReadonlySet<PodUid>): boolean | undefined =>
    measured && [...measured].some((uid) => !uids.has(uid))
  const isResting = async (uids: ReadonlySet<PodUid>): Promise<boolean> =>
    rest !== undefined &&
    clock.monotonicMs() < rest.untilMs &&
    hasLost(uids) === false &&
    (await options.availableBytes()) > rest.leastAvailableBytes
  const planRest = async (marginBytes: number, nextChangeMs: number): Promise<Rest | undefined> => {
    if (marginBytes < wideMarginBytes) return undefined
    const restMs = Math.min(longestRestMs, nextChangeMs)
    const leastAvailableBytes = (await options.availableBytes()) - marginBytes / 2
    return { untilMs: clock.monotonicMs() + restMs, leastAvailableBytes }
  }
  return {
    name: 'limit-logs',
    periodMs,
    deadlineMs,
    async run(signal) {
      const found = options.pods()
      if (found === undefined) return
      const pods = [...found]
      const uids = new Set(pods.map(({ uid }) => uid))
      if (await isResting(uids)) return
      // The logs of a pod that was just removed may be about to be marked as kept.
      const isAsBefore = hasLost(uids) === false
      rest = undefined
      measured = uids
      const facts = await options.measure(pods)
      const totalBytes = await options.totalBytes()
      const plan = planLogLimits(facts, { totalBytes, keptMs }, clock.wallMs())
      for (const path of [...plan.directories, ...plan.files]) {
        signal.throwIfAborted()
        await options.remove(path)
      }
      for (const path of plan.directories) logger.info({ path }, 'removed the logs of a removed pod')
      if (plan.files.length > 0) logger.info({ count: plan.files.length }, 'removed the oldest rotated logs')
      if (totalBytes === undefined || plan.leftBytes <= totalBytes) {
        const expiriesMs = facts.kept.map(({ removedAtMs }) => removedAtMs + keptMs - clock.wallMs())
        const nextLookMs = isAsBefore ? Infinity : Math.max(keptMs, periodMs)
        rest = await planRest(
          (totalBytes ?? Infinity) - plan.leftBytes,
          Math.min(nextLookMs, ...expiriesMs.filter((dueMs) => dueMs > 0)),
        )
        return
      }
      throw new PoddError(
        'LOG_SPACE',
        // Without the current size: it changes with each run, and a changed message is logged again.
        `logs take more than the ${totalBytes} bytes that containerLogTotalMaxSize allows, and what is left is being written to`,
        {
          hint: 'Lower containerLogMaxSize, raise containerLogTotalMaxSize, or have the containers log less.',
        },
      )
    },
  }
}
