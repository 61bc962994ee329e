import type { HeaderList } from './hpack.ts'
import { failed, Status, statusOfHttp } from './grpc-status.ts'
import type { GrpcStatus } from './grpc-status.ts'

/** The kubelet's `maxMsgSize` (`cri-client/pkg/remote_runtime.go`). */
export const maxMessageBytes = 16 * 1024 * 1024

/** A flag and the length (gRPC's `PROTOCOL-HTTP2.md`, Length-Prefixed-Message). */
const prefixBytes = 5

/** The message as it is sent: not compressed. */
export function frameMessage(message: Uint8Array): Buffer {
  const framed = Buffer.allocUnsafe(prefixBytes + message.length)
  framed[0] = 0
  framed.writeUInt32BE(message.length, 1)
  framed.set(message, prefixBytes)
  return framed
}

/** The reply to one call: assembles its messages, and determines the status that the call ended with. */
export class GrpcReply {
  readonly #take: (message: Buffer) => GrpcStatus | undefined
  #chunks: Buffer[] = []
  #sizeBytes = 0
  #isClosed = false

  /** `take` returns the end of the call where the message is invalid. */
  constructor(take: (message: Buffer) => GrpcStatus | undefined) {
    this.#take = take
  }

  /** Drops all further messages. */
  close(): void {
    this.#isClosed = true
  }

  /** The end of the call, where these headers are trailers, or don't answer a gRPC call. */
  takeHeaders(headers: HeaderList, isLast: boolean): GrpcStatus | undefined {
    const values = new Map(headers)
    const httpStatus = values.get(':status') ?? '200'
    const code = values.get('grpc-status')
    if (isLast && code !== undefined) {
      const details = decodeDetails(values.get('grpc-message') ?? '')
      // A failed call is answered by one block of headers. A status after the first message may mean that the server is shutting down.
      return { code: Number(code), details, isAnswer: values.has('content-type') }
    }
    if (!httpStatus.startsWith('1') && httpStatus !== '200') return statusOfHttp(httpStatus)
    return isLast ? this.end() : undefined
  }

  /** The end of a stream that ends without a status. */
  end(): GrpcStatus {
    return failed(Status.UNKNOWN, 'the answer has no status')
  }

  /** The end of the call, where a message can't be accepted. */
  takeData(chunk: Buffer): GrpcStatus | undefined {
    this.#chunks.push(chunk)
    this.#sizeBytes += chunk.length
    while (this.#sizeBytes >= prefixBytes && !this.#isClosed) {
      const first = this.#join(prefixBytes)
      const length = first.readUInt32BE(1)
      if (first[0] !== 0) return failed(Status.INTERNAL, 'the message is compressed, which was not asked for')
      if (length > maxMessageBytes) {
        const details = `the message has ${length} bytes, more than the ${maxMessageBytes} that are taken`
        return failed(Status.RESOURCE_EXHAUSTED, details)
      }
      const end = prefixBytes + length
      if (this.#sizeBytes < end) return undefined
      const bytes = this.#join(end)
      const rest = bytes.subarray(end)
      this.#chunks = rest.length === 0 ? [] : [rest, ...this.#chunks.slice(1)]
      this.#sizeBytes -= end
      const status = this.#take(bytes.subarray(prefixBytes, end))
      if (status !== undefined) return status
    }
    return undefined
  }

  /** The first chunk, with so many bytes at least. */
  #join(count: number): Buffer {
    const [first] = this.#chunks
    if (first !== undefined && first.length >= count) return first
    const joined = Buffer.concat(this.#chunks)
    this.#chunks = [joined]
    return joined
  }
}

/** gRPC percent-encodes what isn't plain ASCII. */
function decodeDetails(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // A peer that doesn't encode its message: it is shown as it came.
    return text
  }
}
