import { spawnSync } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { PoddError, errorMessage } from '../base/errors.ts'

/** Of util-linux or busybox. */
const flockProgram = 'flock'

/**
 * Holds the lock of a directory until the process ends or the returned function is called: two podds never work on
 * one directory, whatever their sockets are. The lock is a flock(2) on `<directory>/lock`, so that no crash
 * leaves it behind. It is taken by the `flock` program on a descriptor that this process keeps open; where there is
 * no such program, there is no lock. Throws PoddError ALREADY_RUNNING or LOCK_FAILED.
 */
export function holdInstanceLock(directory: string): () => void {
  const path = `${directory}/lock`
  let descriptor: number
  try {
    descriptor = openSync(path, 'a', 0o600)
  } catch (error) {
    throw new PoddError('LOCK_FAILED', `cannot open ${path}: ${errorMessage(error)}`, {
      cause: error,
      hint: 'podd needs to write to its directories; run it as root on a disk that is neither full nor read-only.',
    })
  }
  const outcome = spawnSync(flockProgram, ['--nonblock', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
  })
  if (outcome.status === 1) {
    closeSync(descriptor)
    throw new PoddError('ALREADY_RUNNING', `another podd works in ${directory}`, {
      hint: 'Stop it first, or give this one a --run-dir and a --root-dir of its own.',
    })
  }
  return () => closeSync(descriptor)
}
