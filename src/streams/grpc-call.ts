import { errorMessage } from '../base/errors.ts'
import { frameMessage, GrpcReply } from './grpc-reply.ts'
import { failed, Status } from './grpc-status.ts'
import type { GrpcStatus } from './grpc-status.ts'
import { encodeHeaders } from './hpack.ts'

export interface GrpcCall<Message> {
  /** `/package.Service/Method` */
  readonly path: string
  readonly message: Uint8Array
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** What it throws ends the call with INTERNAL. */
  readonly decode: (bytes: Buffer) => Message
  readonly onMessage: (message: Message) => void
  /** Called once, after the last message, and never while the call is begun or cancelled. */
  readonly onStatus: (status: GrpcStatus) => void
}

/** A call as its session carries it: a stream of HTTP/2. */
export interface GrpcStream {
  readonly call: Pick<GrpcCall<never>, 'path' | 'headers' | 'onStatus'>
  readonly reply: GrpcReply
  id: number
  /** What is still to be sent. */
  unsent: Buffer
  sendWindow: number
  /** Bytes received that no WINDOW_UPDATE has acknowledged yet. */
  taken: number
}

export function newStream<Message>(call: GrpcCall<Message>): GrpcStream {
  return {
    call,
    reply: new GrpcReply((bytes) => takeMessage(call, bytes)),
    id: 0,
    unsent: frameMessage(call.message),
    sendWindow: 0,
    taken: 0,
  }
}

/** What all calls have in common, before and behind their paths: encoding it takes as long as the rest of a call's frames. */
const headersBeforePath = encodeHeaders([
  [':method', 'POST'],
  [':scheme', 'http'],
])
const headersAfterPath = encodeHeaders([
  [':authority', 'localhost'],
  ['content-type', 'application/grpc'],
  ['te', 'trailers'],
  ['user-agent', 'podd'],
])

export function encodeRequestHeaders({ path, headers }: Pick<GrpcCall<never>, 'path' | 'headers'>): Buffer {
  const more = headers === undefined ? [] : [encodeHeaders(Object.entries(headers))]
  return Buffer.concat([headersBeforePath, encodeHeaders([[':path', path]]), headersAfterPath, ...more])
}

/** The end of the call where the bytes are not a message. What `onMessage` throws is a defect, and is rethrown. */
function takeMessage<Message>(
  { decode, onMessage }: GrpcCall<Message>,
  bytes: Buffer,
): GrpcStatus | undefined {
  let message: Message
  try {
    message = decode(bytes)
  } catch (error) {
    return failed(Status.INTERNAL, `the message cannot be decoded: ${errorMessage(error)}`)
  }
  onMessage(message)
  return undefined
}
