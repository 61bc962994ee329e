import { lookup } from 'node:dns'
import type { LookupAddress, LookupAllOptions } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { Clock } from '../base/clock.ts'
import type { ContainerPort } from '../pod/schema/container-schema.ts'
import type { ContainerId } from '../pod/values/ids.ts'

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

export interface AttemptBounds {
  readonly clock: Clock
  /** Undefined: no limit but the signal's. */
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface Attempt<T> {
  /**
   * Begins; calls `settle` once it knows. Returns a function that releases what it holds, called exactly once at the
   * end.
   */
  readonly begin: (settle: (value: T) => void) => () => void
  /** The outcome of a timeout. */
  readonly onTimeout: () => T
  /** The outcome of a cancellation. */
  readonly onAbort: () => T
}

/** Runs one attempt until it settles, its time is up or it is cancelled, whichever comes first. */
export function boundAttempt<T>(bounds: AttemptBounds, attempt: Attempt<T>): Promise<T> {
  const { clock, timeoutMs, signal } = bounds
  if (signal?.aborted === true) return Promise.resolve(attempt.onAbort())
  return new Promise((resolve) => {
    let settled = false
    let release: (() => void) | undefined
    const settle = (value: T): void => {
      if (settled) return
      settled = true
      timer?.cancel()
      signal?.removeEventListener('abort', abort)
      release?.()
      resolve(value)
    }
    const abort = (): void => settle(attempt.onAbort())
    const timer =
      timeoutMs === undefined ? undefined : clock.startTimer(timeoutMs, () => settle(attempt.onTimeout()))
    signal?.addEventListener('abort', abort, { once: true })
    release = attempt.begin(settle)
    if (settled) release()
  })
}

export type ResolvedPort =
  | { readonly kind: 'port'; readonly port: number }
  | { readonly kind: 'invalid'; readonly message: string }

/**
 * The number behind a probe's or hook's port: itself, the declared port of that name, or the number
 * that the text spells (kubelet pkg/probe/util.go ResolveContainerPort, 1.36).
 */
export function resolvePort(reference: number | string, ports: readonly ContainerPort[]): ResolvedPort {
  const port = typeof reference === 'number' ? reference : portNumber(reference, ports)
  if (port === undefined) return { kind: 'invalid', message: `port ${reference} not found` }
  if (port > 0 && port < 65_536) return { kind: 'port', port }
  return { kind: 'invalid', message: `invalid port number: ${port}` }
}

function portNumber(name: string, ports: readonly ContainerPort[]): number | undefined {
  const named = ports.find((port) => port.name === name)
  if (named !== undefined) return named.containerPort
  return /^[+-]?\d+$/.test(name) ? Number(name) : undefined
}

/**
 * Looks a name up once for all who ask for the same kinds of addresses before it is answered. Node looks names up in two
 * threads, for as long as the system's resolver waits for its servers, and takes none back: probes of a name whose server is
 * silent would pile up there before everybody else's, and no URL could be read any more.
 */
export function shareLookups(
  lookUp: (name: string, options: LookupAllOptions, answer: LookupAnswer) => void,
): LookupFunction {
  const waiting = new Map<string, LookupAnswer[]>()
  return (name, { all = false, family = 0, hints = 0 }, callback) => {
    const answer: LookupAnswer = (error, addresses = []) => {
      const [first] = addresses
      if (error !== null || first === undefined) callback(error, '')
      else if (all) callback(null, [...addresses])
      else callback(null, first.address, first.family)
    }
    const key = JSON.stringify([name, family, hints])
    const others = waiting.get(key)
    if (others !== undefined) {
      others.push(answer)
      return
    }
    const asking = [answer]
    waiting.set(key, asking)
    // With the hint ADDRCONFIG, a host without IPv6 gets no address that it can't reach.
    lookUp(name, { all: true, family, hints }, (error, addresses) => {
      waiting.delete(key)
      for (const each of asking) each(error, addresses)
    })
  }
}

type LookupAnswer = (error: NodeJS.ErrnoException | null, addresses?: readonly LookupAddress[]) => void

/** The `lookup` of connections to what manifests name. */
export const lookUpHost = shareLookups(lookup)
