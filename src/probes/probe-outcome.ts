import type { Clock } from '../base/clock.ts'
import type { ContainerId } from '../pod/values/ids.ts'
import type { ContainerPort } from '../pod/schema/container-schema.ts'

/** What came of one probe. */
export interface ProbeOutcome {
  /** `warning` is a success worth telling about; `unknown` means that the probing itself went wrong. */
  readonly result: 'success' | 'failure' | 'warning' | 'unknown'
  /** What the container answered, or what went wrong, in the kubelet's words; at most 10 KiB of answer. */
  readonly output: string
  /** The answer wasn't there in time. */
  readonly timedOut?: boolean
  /** For how long the runtime, through which the probe went, answered nothing meanwhile. */
  readonly silentMs?: number
}

/** Whom to probe. */
export interface ProbeTarget {
  readonly containerId: ContainerId
  /** The pod's addresses, the primary one first; for a pod on the host's network, the host's. */
  readonly podIps: readonly string[]
  /** The container's declared ports, for probes that name one. */
  readonly ports: readonly ContainerPort[]
  /** The container's environment as far as the manifest itself states it, for `$(NAME)` in exec commands. */
  readonly env?: readonly { readonly name: string; readonly value: string }[]
}

/** How one probe is bounded. */
export interface ProbeBounds {
  readonly clock: Clock
  readonly timeoutMs: number
  /** Ends the probe at once; its outcome is then of no interest. */
  readonly signal: AbortSignal
}

/** Answers are read so far and no further (kubelet: maxRespBodyLength, maxReadLength). */
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
