/* Container logs: how much space all together take, and when one is rotated. */

import { isoTime } from '../../base/clock.ts'

/** One file of a container's log. */
export interface LogFileFacts {
  readonly path: string
  /** The container and instance that wrote it. */
  readonly log: string
  /** Orders the files of one log by age: the suffix after `N.log`, and `~` for the live file. */
  readonly order: string
  readonly sizeBytes: number
  /** Wall milliseconds. */
  readonly modifiedMs: number
}

/** The logs of a pod that was removed. */
export interface LogsOfRemovedPod {
  readonly directory: string
  /** Wall milliseconds. */
  readonly removedAtMs: number
  readonly files: readonly LogFileFacts[]
}

export interface LogSpaceFacts {
  /** The logs of existing pods. */
  readonly files: readonly LogFileFacts[]
  readonly kept: readonly LogsOfRemovedPod[]
}

export interface LogSpaceLimits {
  /** Of all files together; undefined for no limit. */
  readonly totalBytes: number | undefined
  /** How long the logs of removed pods are kept. */
  readonly keptMs: number
}

export interface LogSpacePlan {
  /** Log directories of removed pods, with their content. */
  readonly directories: readonly string[]
  readonly files: readonly string[]
  /** The size of all logs once these are removed. */
  readonly leftBytes: number
}

/**
 * Which logs to remove: those of removed pods after their retention, then, while the rest exceeds the limit, the oldest
 * of the rotated files and of the logs of removed pods. Never the newest file of an existing pod's log, to which its
 * container writes. A log loses its oldest file first, whatever the clock did. A removal time in the future, on a host
 * that boots with a wrong clock, doesn't count as old.
 * @param nowMs wall milliseconds
 */
export function planLogLimits(facts: LogSpaceFacts, limits: LogSpaceLimits, nowMs: number): LogSpacePlan {
  const isOver = ({ removedAtMs, files }: LogsOfRemovedPod): boolean =>
    files.length === 0 || limits.keptMs === 0 || nowMs - removedAtMs >= limits.keptMs
  const kept = facts.kept.filter((logs) => !isOver(logs)).flatMap(({ files }) => files)
  const removable = [
    ...byAge(facts.files).flatMap((log) => log.slice(0, -1)),
    ...byAge(kept).flat(),
  ].toSorted((a, b) => a.ageKeyMs - b.ageKeyMs)
  let leftBytes = [...facts.files, ...kept].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const files: string[] = []
  for (const { path, sizeBytes } of removable) {
    if (limits.totalBytes === undefined || leftBytes <= limits.totalBytes) break
    files.push(path)
    leftBytes -= sizeBytes
  }
  return { directories: facts.kept.filter(isOver).map(({ directory }) => directory), files, leftBytes }
}

interface Removable {
  readonly path: string
  readonly sizeBytes: number
  readonly ageKeyMs: number
}

/** The files of each log, oldest first; none counts as older than the one before it. */
function byAge(files: readonly LogFileFacts[]): readonly (readonly Removable[])[] {
  const logs = Map.groupBy(files, ({ log }) => log)
  return [...logs.values()].map((log) => {
    let ageKeyMs = -Infinity
    return log
      .toSorted((a, b) => (a.order < b.order ? -1 : 1))
      .map(({ path, sizeBytes, modifiedMs }) => {
        ageKeyMs = Math.max(ageKeyMs, modifiedMs)
        return { path, sizeBytes, ageKeyMs }
      })
  })
}

/** The log of one running container, as its directory shows it. */
export interface LogFacts {
  /** The live file's name (`N.log`). */
  readonly live: string
  /** Undefined where there is no live file: podd was killed between renaming it and having it reopened. */
  readonly liveSizeBytes: number | undefined
  /**
   * The other files of this log, by name: `N.log.YYYYMMDD-HHMMSS`, with `.gz` once compressed, `.tmp` while it is being
   * compressed.
   */
  readonly rotated: readonly string[]
}

/** The kubelet's `containerLogMaxSize` and `containerLogMaxFiles`. */
export interface LogLimits {
  readonly maxSizeBytes: number
  /** Including the live file; at least 2. */
  readonly maxFiles: number
}

/** Names are of files in the log's directory. */
export type LogAction =
  | { readonly kind: 'remove'; readonly name: string }
  /** Compresses a file that is no longer written to, to `NAME.gz`. */
  | { readonly kind: 'compress'; readonly name: string }
  /** Renames the live file, and has the runtime create another. */
  | { readonly kind: 'rotate'; readonly to: string }
  /** Has the runtime create the missing live file. */
  | { readonly kind: 'reopen' }

const temporarySuffix = '.tmp'
const compressedSuffix = '.gz'

/**
 * The steps that a log needs, in order, by the rules of `pkg/kubelet/logs/container_log_manager.go` (rotateLog, 1.36).
 * A new file's name sorts after the existing ones, whatever the wall clock does.
 * @param nowMs wall milliseconds
 */
export function planLogRotation(log: LogFacts, limits: LogLimits, nowMs: number): readonly LogAction[] {
  if (log.liveSizeBytes === undefined) return [{ kind: 'reopen' }]
  if (log.liveSizeBytes < limits.maxSizeBytes) return []
  const names = new Set(log.rotated)
  const isUnused = (name: string): boolean =>
    name.endsWith(temporarySuffix) || names.has(`${name}${compressedSuffix}`)
  const kept = log.rotated.filter((name) => !isUnused(name)).toSorted()
  // Leave room for the new live file and for the file that is about to be rotated.
  const excess = kept.slice(0, Math.max(0, kept.length - Math.max(0, limits.maxFiles - 2)))
  const remaining = kept.slice(excess.length)
  return [
    ...[...log.rotated.filter(isUnused), ...excess].map((name) => ({ kind: 'remove', name }) as const),
    ...remaining
      .filter((name) => !name.endsWith(compressedSuffix))
      .map((name) => ({ kind: 'compress', name }) as const),
    { kind: 'rotate', to: `${log.live}.${nextStamp(log, kept.at(-1), nowMs)}` },
  ]
}

function nextStamp(log: LogFacts, newest: string | undefined, nowMs: number): string {
  const now = formatStamp(nowMs)
  const before = newest?.slice(log.live.length + 1, log.live.length + 1 + now.length)
  if (before === undefined || before < now) return now
  const beforeMs = parseStamp(before)
  return beforeMs === undefined ? now : formatStamp(beforeMs + 1000)
}

/** `YYYYMMDD-HHMMSS`, in UTC. */
function formatStamp(wallMs: number): string {
  return isoTime(wallMs).slice(0, 19).replaceAll(/[-:]/gu, '').replace('T', '-')
}

function parseStamp(stamp: string): number | undefined {
  const parts = /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)$/u.exec(stamp)
  if (parts === null) return undefined
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = parts.slice(1).map(Number)
  return Date.UTC(year, month - 1, day, hour, minute, second)
}
