import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import type { BigIntStats } from 'node:fs'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'
import { listProcesses } from '../../host/processes.ts'
import type { HostProcess } from '../../host/processes.ts'

/** The program of util-linux or busybox. */
const flockProgram = 'flock'

/**
 * Holds the lock of a directory until the process ends or the returned function is called: two podds never use one
 * directory, whatever their sockets are. The lock is a flock(2) on `<directory>/lock`, so that no crash leaves it
 * behind. It is taken by the `flock` program on a descriptor that this process keeps open; where there is no such
 * program, there is no lock. Throws PoddError ALREADY_RUNNING or LOCK_FAILED.
 */
export function holdInstanceLock(directory: string): () => void {
  const path = lockPath(directory)
  let descriptor: number
  try {
    descriptor = openSync(path, 'a', 0o600)
  } catch (error) {
    throw new PoddError('LOCK_FAILED', `cannot open ${path}: ${errorMessage(error)}`, {
      cause: error,
      hint: 'podd needs to write to its directories; run it as root on a disk that is neither full nor read-only.',
    })
  }
  if (isRefused(descriptor, '--exclusive')) {
    closeSync(descriptor)
    throw new PoddError('ALREADY_RUNNING', `another podd works in ${directory}`, {
      hint: 'Stop it first, or give this one a --run-dir and a --root-dir of its own.',
    })
  }
  return () => closeSync(descriptor)
}

/**
 * The process that holds the lock of a directory; undefined where none does. The kernel shows for each descriptor
 * what it locks (proc_pid_fdinfo(5)); /proc/locks would name the `flock` program, which has ended.
 *
 * @throws PoddError DAEMON_UNKNOWN where it is held by a process that can't be seen from here; LOCK_FAILED
 */
export function findLockHolder(directory: string, procDirectory = '/proc'): HostProcess | undefined {
  if (!isHeld(directory)) return undefined
  const holder = selectHolder(lockPath(directory), procDirectory)
  if (holder !== undefined || !isHeld(directory)) return holder
  throw new PoddError(
    'DAEMON_UNKNOWN',
    `a podd works in ${directory}, and its process cannot be determined`,
    { hint: `End it where it runs, maybe in a container; \`fuser ${lockPath(directory)}\` names it there.` },
  )
}

function lockPath(directory: string): string {
  return `${directory}/lock`
}

/** Tests with a shared lock for a moment, so that concurrent tests don't see each other. */
function isHeld(directory: string): boolean {
  const path = lockPath(directory)
  let descriptor: number
  try {
    descriptor = openSync(path, 'r')
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return false
    throw new PoddError('LOCK_FAILED', `cannot open ${path}: ${errorMessage(error)}`, { cause: error })
  }
  try {
    return isRefused(descriptor, '--shared')
  } finally {
    closeSync(descriptor)
  }
}

/** Whether another process's lock conflicts with this one. */
function isRefused(descriptor: number, kind: '--exclusive' | '--shared'): boolean {
  const { status } = spawnSync(flockProgram, [kind, '--nonblock', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
    timeout: 10_000,
    killSignal: 'SIGKILL',
  })
  return status === 1
}

function selectHolder(path: string, procDirectory: string): HostProcess | undefined {
  const file = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (file === undefined) return undefined
  const holders = listProcesses(procDirectory).filter(({ pid }) => hasLocked(`${procDirectory}/${pid}`, file))
  // A forked child that is about to execute a program has the same descriptors for a moment.
  return holders.find(({ parentPid }) => !holders.some(({ pid }) => pid === parentPid))
}

/** Whether a process has an exclusive lock on exactly this file. */
function hasLocked(processDirectory: string, file: BigIntStats): boolean {
  return listDescriptors(processDirectory).some((descriptor) => {
    const link = `${processDirectory}/fd/${descriptor}`
    try {
      // Files opened elsewhere are not examined: a dead network share would block.
      if (!readlinkSync(link).endsWith('/lock')) return false
      const { dev, ino } = statSync(link, { bigint: true })
      if (dev !== file.dev || ino !== file.ino) return false
      const info = readFileSync(`${processDirectory}/fdinfo/${descriptor}`, 'utf8')
      return /^lock:.*\bFLOCK\b.*\bWRITE\b/mu.test(info)
    } catch {
      // It was closed meanwhile.
      return false
    }
  })
}

function listDescriptors(processDirectory: string): readonly string[] {
  try {
    return readdirSync(`${processDirectory}/fd`)
  } catch {
    // It has ended meanwhile.
    return []
  }
}
