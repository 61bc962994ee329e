import type { ContainerId } from '../../pod/values/ids.ts'
import type { PodState } from './pod-state.ts'

/**
 * Containers that were to be stopped and started again, and go on running: podd was ended before it stopped them, or
 * could not and no longer has to. A signal may be on its way to them for as long as the pod's grace period. What ends
 * later ends by itself, and its exit code counts again.
 */
export class SparedRestarts {
  /** When each was first seen to go on, in ms of the monotonic clock. */
  readonly #sinceMs = new Map<ContainerId, number>()

  /**
   * Forgets those that have gone on for long enough. Returns after how many milliseconds to look again, undefined where
   * there is nothing to wait for.
   * @param planned those that are about to be stopped now
   */
  review(
    { memory, observed, pod }: Pick<PodState, 'memory' | 'observed' | 'pod'>,
    planned: readonly ContainerId[],
    nowMs: number,
  ): number | undefined {
    const { restartsDue } = memory.record
    if (restartsDue === undefined) return undefined
    const running = new Set(
      observed.containers.filter(({ state }) => state === 'running').map(({ id }) => id),
    )
    const goingOn = restartsDue.filter((id) => running.has(id) && !planned.includes(id))
    for (const id of this.#sinceMs.keys()) if (!goingOn.includes(id)) this.#sinceMs.delete(id)
    const graceMs = pod.spec.terminationGracePeriodSeconds * 1000
    const leftMs = new Map(
      goingOn.map((id) => {
        const sinceMs = this.#sinceMs.get(id) ?? nowMs
        this.#sinceMs.set(id, sinceMs)
        return [id, sinceMs + graceMs - nowMs]
      }),
    )
    const due = restartsDue.filter((id) => (leftMs.get(id) ?? Infinity) > 0)
    if (due.length < restartsDue.length) memory.change({ restartsDue: due.length === 0 ? undefined : due })
    const nextMs = Math.min(...[...leftMs.values()].filter((ms) => ms > 0))
    return nextMs === Infinity ? undefined : nextMs
  }
}
