import { Client, credentials, Metadata, status } from '@grpc/grpc-js'
import type { ServiceError } from '@grpc/grpc-js'
import type { Clock } from '../../base/clock.ts'

/** Replies are taken as bytes: these calls ask whether, not what. */
const asBytes = (bytes: Buffer): Buffer => bytes

/**
 * Whether CRI answers on the socket. False covers all that can be wrong: no socket, nobody behind it,
 * a runtime that is still loading, one that hangs until the deadline.
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
  if (failure.code === status.NOT_FOUND) return false
  throw failure
}

interface UnaryCall {
  readonly socketPath: string
  readonly clock: Clock
  readonly method: string
  readonly request: Buffer
  readonly deadlineMs: number
}

/** One call on a connection of its own; gives the error, or undefined for any reply. */
function callUnary(call: UnaryCall): Promise<ServiceError | undefined> {
  const client = new Client(`unix://${call.socketPath}`, credentials.createInsecure())
  const metadata = new Metadata()
  metadata.set('containerd-namespace', 'k8s.io')
  return new Promise((resolve) => {
    client.makeUnaryRequest(
      call.method,
      asBytes,
      asBytes,
      call.request,
      metadata,
      { deadline: call.clock.wallMs() + call.deadlineMs },
      (error) => {
        client.close()
        resolve(error ?? undefined)
      },
    )
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
