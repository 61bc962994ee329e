import type { ObservedContainer } from '../../pod/state/observed.ts'

/** The runtime's words for a container that ended while it did not look (containerd 1.6 to 2.1: unknownExitCode, unknownExitReason). */
const unseen = { exitCode: 255, reason: 'Unknown' }

/**
 * What is told of a container's end beside its exit code: what it wrote itself, or else why nothing is known, where the
 * pod's last sandbox was made in an earlier boot of the host, which ended all that ran.
 */
export function explainEnd(facts: {
  readonly container: Pick<ObservedContainer, 'exitCode' | 'reason'>
  readonly message: string
  /** In which boot the pod's last sandbox was made; undefined where its record doesn't tell. */
  readonly sandboxBootId: string | undefined
  readonly bootId: string
}): string {
  const { container, message, sandboxBootId, bootId } = facts
  const isUnseen = container.exitCode === unseen.exitCode && container.reason === unseen.reason
  if (message !== '' || !isUnseen || sandboxBootId === undefined || sandboxBootId === bootId) return message
  return 'The container was running when the host was restarted or lost power'
}
