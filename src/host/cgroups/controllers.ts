import { errorCode } from '../../base/errors.ts'
import { readCgroup, writeCgroup } from './files.ts'
import { CgroupError } from './cgroups.ts'

const enabledFile = 'cgroup.subtree_control'

/**
 * Version 2: enables the controllers of this cgroup for those below, except ones that the kernel refuses. Settings of
 * such a controller are skipped, and the runtime fails for a container that needs it.
 */
export function delegateControllers(directory: string): void {
  const enabled = readCgroup(directory, enabledFile)
  const missing = readCgroup(directory, 'cgroup.controllers').filter((name) => !enabled.includes(name))
  if (missing.length === 0) return
  try {
    enableControllers(missing, (value) => writeCgroup(directory, enabledFile, value))
  } catch (error) {
    if (isBusy(error)) {
      throw new CgroupError(
        `cannot enable controllers for the cgroups below ${directory}: there are processes in it`,
        error,
        'Give podd a cgroup root of its own (cgroupRoot) that has no processes.',
      )
    }
    // Skip only what it refused before. Where none was ever enabled, the problem is not a single controller.
    if (enabled.length === 0) throw error
  }
}

/**
 * Enables controllers all at once, or else one by one without those that the kernel refuses, as runc does
 * (`opencontainers/cgroups/fs2/create.go`, CreateCgroupPath): with CONFIG_RT_GROUP_SCHED it refuses `cpu`
 * (EINVAL) while a realtime process is in a cgroup below. Throws where it refuses them all, or says EBUSY.
 */
export function enableControllers(names: readonly string[], write: (value: string) => void): void {
  try {
    write(names.map((name) => `+${name}`).join(' '))
  } catch (error) {
    if (isBusy(error)) throw error
    const accepted = names.filter((name) => isAccepted(name, write))
    if (accepted.length === 0) throw error
  }
}

function isAccepted(name: string, write: (value: string) => void): boolean {
  try {
    write(`+${name}`)
    return true
  } catch (error) {
    if (isBusy(error)) throw error
    return false
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof CgroupError && errorCode(error.cause) === 'EBUSY'
}
