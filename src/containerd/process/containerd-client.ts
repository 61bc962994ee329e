import type { Clock } from '../../base/clock.ts'
import { GrpcChannel } from '../../streams/grpc-channel.ts'
import { Status } from '../../streams/grpc-status.ts'
import type { GrpcStatus } from '../../streams/grpc-status.ts'
import { EmbeddedContainerdError } from './embedded-containerd-error.ts'

/**
 * Whether CRI answers on the socket. False for any reason: no socket, no listener, a runtime that is still loading, one
 * that hangs until the deadline.
 */
export async function criAnswers(socketPath: string, clock: Clock, deadlineMs: number): Promise<boolean> {
  const failure = await callUnary({
    socketPath,
    clock,
    method: '/runtime.v1.RuntimeService/Version',
    request: Buffer.alloc(0),
    deadlineMs,
  })
  return failure === undefined
}

/** Whether containerd's image store has a reference, in the namespace that CRI uses. */
export async function hasImage(socketPath: string, clock: Clock, reference: string): Promise<boolean> {
  const failure = await callUnary({
    socketPath,
    clock,
    method: '/containerd.services.images.v1.Images/Get',
    request: encodeName(reference),
    deadlineMs: 10_000,
  })
  if (failure === undefined) return true
  if (failure.code === Status.NOT_FOUND) return false
  throw new EmbeddedContainerdError(`containerd was asked for the image ${reference}: ${failure.details}`)
}

interface UnaryCall {
  readonly socketPath: string
  readonly clock: Clock
  readonly method: string
  readonly request: Buffer
  readonly deadlineMs: number
}

/** Sends one call on a connection of its own. Returns its error, or undefined for any reply. */
function callUnary({
  socketPath,
  clock,
  method,
  request,
  deadlineMs,
}: UnaryCall): Promise<GrpcStatus | undefined> {
  const channel = new GrpcChannel({ socketPath, clock })
  return new Promise((resolve) => {
    const cancel = channel.call({
      path: method,
      message: request,
      headers: { 'containerd-namespace': 'k8s.io' },
      // The reply's content doesn't matter.
      decode: (bytes) => bytes,
      onMessage() {},
      onStatus: (status) => {
        deadline.cancel()
        channel.close()
        resolve(status.code === Status.OK ? undefined : status)
      },
    })
    const deadline = clock.startTimer(deadlineMs, cancel)
  })
}

/** GetImageRequest: `string name = 1`. Source: containerd api/services/images/v1/images.proto. */
function encodeName(name: string): Buffer {
  const bytes = Buffer.from(name)
  const length: number[] = []
  for (let rest = bytes.length; ; rest >>>= 7) {
    if (rest < 0x80) {
      length.push(rest)
      break
    }
    length.push((rest & 0x7f) | 0x80)
  }
  return Buffer.concat([Buffer.from([0x0a, ...length]), bytes])
}
