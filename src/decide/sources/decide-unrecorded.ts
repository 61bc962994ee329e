import type { ObservedPod } from '../../pod/state/observed.ts'

/** What is known of a pod that the runtime holds and that podd has no record of. */
export interface UnrecordedPod {
  readonly observed: ObservedPod
  /** There is a record of it, which this podd can't read. */
  readonly isUnreadable: boolean
  /** It was made from the manifest that is wanted under its name. */
  readonly isWanted: boolean
}

/**
 * `adopt`: it gets a new record, and runs on. `leave`: nothing of it is touched. `end`: it is an orphan.
 *
 * A record that can't be read says that the pod is podd's, and not how far podd had got with it: it may have been
 * changed in place since it was made. So what runs of it is left alone, until a podd that can read the record, or
 * whoever removes it, decides.
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
