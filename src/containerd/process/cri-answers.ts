import { status as Status } from '@grpc/grpc-js'
import type { Clock } from '../../base/clock.ts'
import { GrpcChannel } from '../../grpc/grpc-channel.ts'

/**
 * Whether CRI answers on the socket, over a connection of its own. False for any reason: no socket, no listener, a runtime
 * that is still loading, one that hangs until the deadline.
 */
export function criAnswers(socketPath: string, clock: Clock, deadlineMs: number): Promise<boolean> {
  const channel = new GrpcChannel({ address: { path: socketPath } })
  return new Promise((resolve) => {
    const cancel = channel.call({
      path: '/runtime.v1.RuntimeService/Version',
      message: Buffer.alloc(0),
      // The reply's content doesn't matter.
      decode: (bytes) => bytes,
      onMessage() {},
      onStatus: ({ code }) => {
        deadline.cancel()
        channel.close()
        resolve(code === Status.OK)
      },
    })
    const deadline = clock.startTimer(deadlineMs, cancel)
  })
}
