import { existsSync, readdirSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { errorCode, PoddError } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { readStateSync, replaceStateSync } from '../../base/state-file.ts'
import type { Migration } from '../../base/state-file.ts'
import { mapBounded } from '../../base/waits.ts'
import type { LogTotal } from '../../config/log-options.ts'
import type { PoddConfig } from '../../config/options.ts'
import { planLogLimits } from '../../decide/node/plan-logs.ts'
import type { LogLimits, LogSpaceFacts } from '../../decide/node/plan-logs.ts'
import type { LoggedContainer } from '../../logs/container-log-directories.ts'
import { rotateLog } from '../../logs/rotate-log.ts'
import type { ObservedPod } from '../../pod/state/observed.ts'
import type { ContainerId, PodRef, PodUid } from '../../pod/values/ids.ts'
import type { StateReport } from '../../store/state-report.ts'
import type { NodeJob } from './node-jobs.ts'

export interface LogSpace {
  /** Measures the logs of these pods, and the kept logs of removed ones. */
  measure(pods: readonly PodRef[]): Promise<LogSpaceFacts>
  /** Removes a file, or a directory with its content; does nothing where it is gone. */
  remove(path: string): Promise<void>
  /** The most that all logs may take; undefined for no limit. */
  totalBytes(): Promise<number | undefined>
  readonly keptMs: number
}

/** The logs of which pods are bounded. */
interface LimitedLogs extends LogSpace {
  /** Undefined while the pods are unknown. */
  readonly pods: () => Iterable<PodRef> | undefined
  readonly clock: Clock
  readonly logger: Logger
}

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
const periodMs = 60_000
const deadlineMs = 300_000

/**
 * Bounds the size of all logs together, and removes those of removed pods after their retention. The kubelet has no
 * such limit: it bounds each log separately. Throws PoddError LOG_SPACE where what may be removed isn't enough.
 */
export function logLimitsJob(options: LimitedLogs): NodeJob {
  const { clock, logger, keptMs } = options
  return {
    name: 'limit-logs',
    periodMs,
    deadlineMs,
    async run(signal) {
      const pods = options.pods()
      if (pods === undefined) return
      const facts = await options.measure([...pods])
      const totalBytes = await options.totalBytes()
      const plan = planLogLimits(facts, { totalBytes, keptMs }, clock.wallMs())
      for (const path of [...plan.directories, ...plan.files]) {
        signal.throwIfAborted()
        await options.remove(path)
      }
      for (const path of plan.directories) logger.info({ path }, 'removed the logs of a removed pod')
      if (plan.files.length > 0) logger.info({ count: plan.files.length }, 'removed the oldest rotated logs')
      if (totalBytes === undefined || plan.leftBytes <= totalBytes) return
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

/** The logs of which containers are rotated. */
interface RotatedLogs {
  readonly pods: () => Iterable<ObservedPod>
  readonly directory: (pod: PodRef, container: string) => string
  readonly reopen: (id: ContainerId, signal: AbortSignal) => Promise<void>
  readonly limits: LogLimits
  readonly workers: number
  readonly periodMs: number
  readonly clock: Clock
}

/**
 * Rotates the logs of the containers that run (`pkg/kubelet/logs/container_log_manager.go`, rotateLogs, 1.36). A
 * failure doesn't affect other logs.
 */
export function logRotationJob(options: RotatedLogs): NodeJob {
  const { clock, directory, limits } = options
  return {
    name: 'rotate-logs',
    periodMs: options.periodMs,
    deadlineMs,
    async run(signal) {
      const failures: unknown[] = []
      const rotate = async (pod: ObservedPod, { id, name, restartCount }: LoggedContainer): Promise<void> => {
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
      const logs = [...options.pods()].flatMap((pod) =>
        pod.containers
          .filter(({ state }) => state === 'running')
          .map((container) => () => rotate(pod, container)),
      )
      await mapBounded(
        logs,
        (rotateOne) => rotateOne().catch((error: unknown) => void failures.push(error)),
        options.workers,
      )
      if (failures.length > 0) throw failures[0]
    },
  }
}

function isRunning({ pods }: RotatedLogs, uid: PodUid, id: ContainerId): boolean {
  const pod = [...pods()].find((each) => each.uid === uid)
  return pod?.containers.some((container) => container.id === id && container.state === 'running') === true
}

/**
 * Keeps the directory of logs while it has logs of pods that exist: their containers write there for as long as they
 * run. A changed setting takes effect when no such pod is left. Gives the effective config, and a warning about it. Throws the
 * system's error.
 */
export function keepPodLogsDir(config: PoddConfig): {
  readonly config: PoddConfig
  readonly warning: string | undefined
} {
  const kept = readPodLogsDir(config.rootDir)
  if (kept === undefined || kept === config.podLogsDir || !hasPodsIn(kept, config.rootDir))
    return { config, warning: undefined }
  return {
    config: { ...config, podLogsDir: kept },
    warning: `pods log to the directory of before; this takes effect when they are gone: podLogsDir ${config.podLogsDir}, not ${kept}`,
  }
}

/** The directory that the last podd had its pods log to; undefined where that is unknown. Throws the system's error. */
export function readPodLogsDir(rootDir: string): string | undefined {
  const reading = readStateSync(statePath(rootDir), migrations)
  const path = reading?.kind === 'current' ? reading.content['podLogsDir'] : undefined
  return typeof path === 'string' ? path : undefined
}

/** Saves it durably. A file that can't be read is put aside and reported. Throws the system's error. */
export function savePodLogsDir(rootDir: string, podLogsDir: string, report: StateReport): void {
  if (readPodLogsDir(rootDir) === podLogsDir) return
  const path = statePath(rootDir)
  const content = { version: migrations.length + 1, podLogsDir }
  replaceStateSync(path, readStateSync(path, migrations), content, { report })
}

/** One step for each version before the current one, oldest first. */
const migrations: readonly Migration[] = []

function statePath(rootDir: string): string {
  return `${rootDir}/pod-logs.json`
}

/** Whether a pod has logs there: one that runs has a directory, one that is over has a record alone. */
function hasPodsIn(podLogsDir: string, rootDir: string): boolean {
  return listIfThere(podLogsDir).some((name) => {
    const uid = name.slice(name.lastIndexOf('_') + 1)
    return existsSync(`${rootDir}/pods/${uid}`) || existsSync(`${rootDir}/records/${uid}.json`)
  })
}

function listIfThere(directory: string): readonly string[] {
  try {
    return readdirSync(directory)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
    return []
  }
}
