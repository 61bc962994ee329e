import { mkdirSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage } from '../../base/errors.ts'
import { CgroupError } from './cgroups.ts'

/*
 * The few operations on cgroup directories. They are synchronous: the kernel answers from memory, in less time
 * than a turn through the thread pool takes.
 */

/** Creates one directory; returns whether it is new. Its parent must exist. */
export function makeCgroup(path: string): boolean {
  try {
    mkdirSync(path, { mode: 0o755 })
    return true
  } catch (error) {
    if (errorCode(error) === 'EEXIST') return false
    throw new CgroupError(`cannot make cgroup ${path}: ${errorMessage(error)}`, error)
  }
}

export function writeCgroup(path: string, file: string, value: string): void {
  try {
    writeFileSync(`${path}/${file}`, value)
  } catch (error) {
    throw new CgroupError(`cannot write ${value} to ${path}/${file}: ${errorMessage(error)}`, error)
  }
}

/** The words of a control file; none where it doesn't exist. */
export function readCgroup(path: string, file: string): readonly string[] {
  try {
    return readFileSync(`${path}/${file}`, 'utf8')
      .split(/\s+/)
      .filter((word) => word !== '')
  } catch {
    // The cgroup was removed meanwhile, or the kernel lacks the file.
    return []
  }
}

/** The names of the child cgroups; none where the cgroup doesn't exist. */
export function childCgroups(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
  } catch {
    // The cgroup was removed meanwhile.
    return []
  }
}

/** A cgroup and all below it, from the bottom up. */
export function cgroupTree(path: string): readonly string[] {
  return [...childCgroups(path).flatMap((name) => cgroupTree(`${path}/${name}`)), path]
}

/** Removes one empty cgroup; returns whether it is gone. */
export function removeCgroup(path: string): boolean {
  try {
    rmdirSync(path)
    return true
  } catch (error) {
    return errorCode(error) === 'ENOENT'
  }
}

const removalPollMs = 10

/**
 * Kills what runs in these cgroups and below, and removes them from the bottom up. A killed process leaves its cgroup a
 * moment later, so this goes on for up to `timeoutMs`. Returns the remaining ones.
 */
export async function removeCgroupTrees(
  paths: readonly string[],
  clock: Clock,
  timeoutMs: number,
): Promise<readonly string[]> {
  const deadline = clock.monotonicMs() + timeoutMs
  for (;;) {
    const left = paths.filter((path) => !removeTree(path))
    if (left.length === 0 || clock.monotonicMs() >= deadline) return left
    for (const path of left) killProcesses(path)
    await clock.sleep(removalPollMs)
  }
}

function removeTree(path: string): boolean {
  return cgroupTree(path)
    .map((directory) => removeCgroup(directory))
    .every((gone) => gone)
}

/** Sends SIGKILL to all processes in a cgroup and below; returns how many there were. Throws CgroupError. */
export function killProcesses(path: string): number {
  let killed = 0
  for (const directory of cgroupTree(path)) {
    for (const word of readCgroup(directory, 'cgroup.procs')) {
      const pid = Number(word)
      // 0 is a process of another pid namespace; as an argument of kill it would mean podd's own process group.
      if (pid <= 1 || pid === process.pid) continue
      try {
        process.kill(pid, 'SIGKILL')
        killed += 1
      } catch (error) {
        if (errorCode(error) !== 'ESRCH')
          throw new CgroupError(`cannot kill process ${pid} in ${directory}`, error)
      }
    }
  }
  return killed
}
