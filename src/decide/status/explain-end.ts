import type { ObservedContainer } from '../../pod/state/observed.ts'

/**
 * The runtime's exit code and reason for a container that ended while it did not run (containerd 1.6 to 2.1:
 * unknownExitCode, unknownExitReason).
 */
const unseen = { exitCode: 255, reason: 'Unknown' }

/**
 * The message of a container's end: its own termination message, or else that the host was rebooted, where the pod's
 * last sandbox dates from an earlier boot.
 */
export function explainEnd(facts: {
  readonly container: Pick<ObservedContainer, 'exitCode' | 'reason'>
  readonly message: string
  /** The boot in which the pod's last sandbox was created; undefined where its record lacks it. */
  readonly sandboxBootId: string | undefined
  readonly bootId: string
}): string {
  const { container, message, sandboxBootId, bootId } = facts
  const isUnseen = container.exitCode === unseen.exitCode && container.reason === unseen.reason
  if (message !== '' || !isUnseen || sandboxBootId === undefined || sandboxBootId === bootId) return message
  return 'The container was running when the host was restarted or lost power'
}
