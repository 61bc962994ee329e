import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { isJsonObject } from '../../base/json.ts'
import type { WireMethod } from '../../grpc/load-proto.ts'

export type CallHeaders = Readonly<Record<string, string>>

/** Sends calls over a connection to containerd's socket. */
export interface CallChannel {
  unary(method: WireMethod, request: object, signal: AbortSignal, headers?: CallHeaders): Promise<object>
  /** Resolves or rejects when the stream has ended; with the code RUNTIME_UNSUPPORTED where there is no such service. */
  stream(
    method: WireMethod,
    request: object,
    onMessage: (message: object) => void,
    signal: AbortSignal,
    headers?: CallHeaders,
  ): Promise<void>
}

/** A channel that knows when calls can be sent. */
export interface ContainerdChannel extends CallChannel {
  /** Resolves when calls can be sent, or when waiting is pointless. */
  ready(signal?: AbortSignal): Promise<void>
}

/** The services of a file of proto/. */
export interface ServiceDefinitions {
  service(name: string): Readonly<Record<string, WireMethod>>
}

/** containerd's namespace of CRI's containers and images. */
export const criNamespace = 'k8s.io'
export const criHeaders: CallHeaders = { 'containerd-namespace': criNamespace }
/** The label by which CRI marks its own containers and images in that namespace. */
export const kindLabel = 'io.cri-containerd.kind'

/** Throws PoddError INTERNAL where the definition is not containerd's. */
export function methodOf(service: Readonly<Record<string, WireMethod>>, name: string): WireMethod {
  const found = service[name]
  if (found === undefined) throw new PoddError('INTERNAL', `the wire definition lacks ${name}`)
  return found
}

/** The objects of a list in a reply. */
export function objectsIn(message: object, key: string): readonly Readonly<Record<string, unknown>>[] {
  const list: unknown = isJsonObject(message) ? message[key] : undefined
  return Array.isArray(list) ? list.filter((each) => isJsonObject(each)) : []
}

/** Aborts a call that takes too long. Throws what the call throws, and PoddError RUNTIME_TIMEOUT. */
export async function withDeadline<T>(
  { clock, name, callMs }: { readonly clock: Clock; readonly name: string; readonly callMs: number },
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const cancel = new AbortController()
  const timer = clock.startTimer(callMs, () =>
    cancel.abort(
      new PoddError('RUNTIME_TIMEOUT', `containerd gave no answer to ${name} within ${callMs / 1000} s`),
    ),
  )
  try {
    return await call(cancel.signal)
  } finally {
    timer.cancel()
  }
}
