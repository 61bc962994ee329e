import type { Clock } from '../base/clock.ts'
import type { ContainerId } from '../pod/values/ids.ts'
import type { ContainerPort } from '../pod/schema/container-schema.ts'

/** The result of one probe. */
export interface ProbeOutcome {
  /** `warning` is a success with a warning; `unknown` means that the probe could not be carried out. */
  readonly result: 'success' | 'failure' | 'warning' | 'unknown'
  /** The container's response or the error, in the kubelet's words; at most 10 KiB of a response. */
  readonly output: string
  /** The probe timed out. */
  readonly timedOut?: boolean
  /** For how long the runtime was silent during the probe. */
  readonly silentMs?: number
}

/** The target of a probe. */
export interface ProbeTarget {
  readonly containerId: ContainerId
  /** The pod's addresses, the primary one first; for a pod on the host's network, the host's. */
  readonly podIps: readonly string[]
  /** The container's declared ports, for probes that name one. */
  readonly ports: readonly ContainerPort[]
  /** The container's environment as far as the manifest itself states it, for `$(NAME)` in exec commands. */
  readonly env?: readonly { readonly name: string; readonly value: string }[]
}

/** The bounds of one probe. */
export interface ProbeBounds {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Cancels the probe at once; its outcome is then ignored. */
  readonly signal: AbortSignal
}

/** The most bytes read of a response (kubelet: maxRespBodyLength, maxReadLength). */
export const maxOutputBytes = 10 * 1024

export function failure(output: string): ProbeOutcome {
  return { result: 'failure', output }
}

export function unknown(output: string): ProbeOutcome {
  return { result: 'unknown', output }
}

export function timedOut(output: string): ProbeOutcome {
  return { result: 'failure', output, timedOut: true }
}
