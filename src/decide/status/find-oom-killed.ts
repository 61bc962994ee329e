import type { ContainerId } from '../../pod/values/ids.ts'
import type { ObservedContainer } from '../../pod/state/observed.ts'

/** The runtime's word for an end by the kernel's out-of-memory killer. */
export const oomKilled = 'OOMKilled'
/** Of a process that SIGKILL has ended. */
const killedExitCode = 137

/**
 * The one of the containers that have just ended which the kernel has killed for its memory although the runtime doesn't
 * say so: that watches the container's cgroup, which is gone a moment after the container. The pod's own stays, and tells
 * whether there were kills since a container of it last ended. Undefined where more than one could be meant.
 *
 * @param before how many kills there were then; undefined where they were not counted
 * @param now how many there are; undefined where that can't be known
 */
export function findOomKilled(
  ended: readonly Pick<ObservedContainer, 'id' | 'exitCode' | 'reason'>[],
  before: number | undefined,
  now: number | undefined,
): ContainerId | undefined {
  if (before === undefined || now === undefined || now === before) return undefined
  // A cgroup that was recreated counts from nothing.
  if (now === 0 || ended.some(({ reason }) => reason === oomKilled)) return undefined
  const [killed, ...more] = ended.filter(({ exitCode }) => exitCode === killedExitCode)
  return more.length === 0 ? killed?.id : undefined
}
