import { PoddError, errorMessage } from '../base/errors.ts'
import { makeDirectory } from '../base/atomic-file.ts'
import type { PoddConfig } from '../config/options.ts'
import { holdInstanceLock } from '../server/listeners/instance-lock.ts'

/**
 * Makes podd's directories and locks them against a second podd. Returns the function that unlocks them; throws
 * PoddError where one can't be made or another podd holds it.
 */
export async function takePlaces(config: PoddConfig): Promise<() => void> {
  const directories: readonly (readonly [path: string, mode: number])[] = [
    [config.rootDir, 0o711],
    [config.runDir, 0o711],
    [config.podLogsDir, 0o755],
    [config.containerLogsDir, 0o755],
  ]
  for (const [path, mode] of directories) {
    try {
      await makeDirectory(path, mode)
    } catch (error) {
      throw new PoddError('DIRECTORY', `cannot create ${path}: ${errorMessage(error)}`, {
        cause: error,
        hint: 'podd runs as root and needs these directories on disks that are writable; see `podd run --help` to move them.',
      })
    }
  }
  const locks = [holdInstanceLock(config.rootDir), holdInstanceLock(config.runDir)]
  return () => {
    for (const unlock of locks) unlock()
  }
}
