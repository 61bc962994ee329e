import type { ContainerId } from '../../pod/values/ids.ts'
import type { ObservedContainer } from '../../pod/state/observed.ts'

/** The runtime's reason for a kill by the kernel's OOM killer. */
export const oomKilled = 'OOMKilled'
/** The exit code of a process that SIGKILL has ended. */
const killedExitCode = 137

/**
 * The container among those that have just ended which was OOM-killed although the runtime doesn't report it: the
 * runtime watches the container's cgroup, which is removed right after the container. The pod's cgroup stays, and shows
 * whether there were kills since a container of the pod last ended. Undefined where several containers qualify.
 *
 * @param before the number of kills then; undefined where they were not counted
 * @param now the current number; undefined where unknown
 */
export function findOomKilled(
  ended: readonly Pick<ObservedContainer, 'id' | 'exitCode' | 'reason'>[],
  before: number | undefined,
  now: number | undefined,
): ContainerId | undefined {
  if (before === undefined || now === undefined || now === before) return undefined
  // A recreated cgroup counts from 0.
  if (now === 0 || ended.some(({ reason }) => reason === oomKilled)) return undefined
  // Alone, it is the one, whatever it made of the death of a process of its own: the runtime says so too.
  const [killed, ...more] =
    ended.length === 1 ? ended : ended.filter(({ exitCode }) => exitCode === killedExitCode)
  return more.length === 0 ? killed?.id : undefined
}
