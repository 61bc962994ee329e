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
export interface KeptLogs {
  readonly directory: string
  /** Wall milliseconds. */
  readonly removedAtMs: number
  readonly files: readonly LogFileFacts[]
}

export interface LogSpaceFacts {
  /** The logs of existing pods. */
  readonly files: readonly LogFileFacts[]
  readonly kept: readonly KeptLogs[]
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

interface Removable {
  readonly path: string
  readonly sizeBytes: number
  readonly ageKeyMs: number
}

/**
 * Which logs to remove: those of removed pods after their retention, then, while the rest exceeds the limit, the oldest
 * of the rotated files and of the logs of removed pods. Never the newest file of an existing pod's log, to which its
 * container writes. A log loses its oldest file first, whatever the clock did. A removal time in the future, on a host
 * that boots with a wrong clock, doesn't count as old.
 * @param nowMs wall milliseconds
 */
export function planLogLimits(facts: LogSpaceFacts, limits: LogSpaceLimits, nowMs: number): LogSpacePlan {
  const isOver = ({ removedAtMs, files }: KeptLogs): boolean =>
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
