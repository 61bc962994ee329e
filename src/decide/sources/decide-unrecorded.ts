import type { ObservedPod } from '../../pod/state/observed.ts'

/** The facts about a pod that the runtime holds and podd has no record of. */
export interface UnrecordedPod {
  readonly observed: ObservedPod
  /** There is a record of it, which this podd can't read. */
  readonly isUnreadable: boolean
  /** It was created from the manifest that is desired under its name. */
  readonly isWanted: boolean
}

/**
 * `adopt`: it gets a new record, and keeps running. `leave`: it is left alone. `end`: it is an orphan.
 *
 * An unreadable record proves that the pod is podd's, but not its state: it may have been changed in place since. So
 * the pod is left alone until a podd that can read the record decides, or the record is removed.
 */
export function decideUnrecorded({
  observed,
  isUnreadable,
  isWanted,
}: UnrecordedPod): 'adopt' | 'leave' | 'end' {
  if (isWanted) return 'adopt'
  return isUnreadable && isAlive(observed) ? 'leave' : 'end'
}

function isAlive({ sandboxes, containers }: ObservedPod): boolean {
  return (
    sandboxes.some(({ ready }) => ready) ||
    containers.some(({ state }) => state === 'running' || state === 'unknown')
  )
}
