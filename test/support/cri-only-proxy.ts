import { rmSync } from 'node:fs'
import { connect as connectHttp2, constants, createServer } from 'node:http2'
import type { ClientHttp2Session, Http2Server, IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { connect } from 'node:net'
import { loadProto } from '../../src/grpc/load-proto.ts'

const unimplemented = '12'

/**
 * A containerd as a client sees one that is no containerd: a unix socket before it that passes CRI's calls on, and answers
 * UNIMPLEMENTED to containerd's own. Of sandboxes it doesn't tell the process, either, as a runtime with virtual machines.
 */
export class CriOnlyProxy {
  readonly endpoint: string
  /** The paths of the calls that it refused, in their order. */
  readonly refused: string[] = []
  /** The paths of the calls that it passed on. */
  readonly served = new Set<string>()
  readonly #path: string
  readonly #server: Http2Server
  readonly #backend: ClientHttp2Session
  readonly #sessions = new Set<{ destroy(): void }>()

  private constructor(path: string, backendPath: string) {
    this.#path = path
    this.endpoint = `unix://${path}`
    this.#backend = connectHttp2('http://localhost', { createConnection: () => connect(backendPath) })
    this.#backend.on('error', () => {})
    this.#server = createServer()
    this.#server.on('session', (session) => {
      this.#sessions.add(session)
      session.once('close', () => this.#sessions.delete(session))
    })
    this.#server.on('stream', (stream: ServerHttp2Stream, headers) => this.#serve(stream, headers))
  }

  static async start(path: string, backendPath: string): Promise<CriOnlyProxy> {
    const proxy = new CriOnlyProxy(path, backendPath)
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject)
      proxy.#server.listen(path, resolve)
    })
    return proxy
  }

  async close(): Promise<void> {
    this.#backend.destroy()
    for (const session of this.#sessions) session.destroy()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
    rmSync(this.#path, { force: true })
  }

  #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', () => {})
    const path = headers[':path'] ?? ''
    if (!path.startsWith('/runtime.v1.')) {
      this.refused.push(path)
      stream.resume()
      stream.respond(
        {
          ':status': 200,
          'content-type': 'application/grpc',
          'grpc-status': unimplemented,
          'grpc-message': 'unknown service',
        },
        { endStream: true },
      )
      return
    }
    this.served.add(path)
    const call = this.#backend.request(headers)
    call.on('error', () => stream.close(constants.NGHTTP2_INTERNAL_ERROR))
    stream.once('close', () => call.close(constants.NGHTTP2_CANCEL))
    if (path.endsWith('/PodSandboxStatus')) void tersely(stream).then((body) => call.end(body))
    else stream.pipe(call)
    let trailers: IncomingHttpHeaders = {}
    call.on('trailers', (given) => (trailers = given))
    call.once('response', (given, flags) => {
      const isAll = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
      stream.respond(given, isAll ? { endStream: true } : { waitForTrailers: true })
      if (isAll) return
      stream.once('wantTrailers', () => stream.sendTrailers(trailers))
      call.pipe(stream)
    })
  }
}

/** The message of PodSandboxStatus, in its frame, without the wish for all that the runtime knows. */
async function tersely(stream: ServerHttp2Stream): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(chunk as Buffer)
  const wire = loadProto('cri-v1.proto').service('runtime.v1.RuntimeService')['PodSandboxStatus']
  if (wire === undefined) throw new Error('CRI has no such call')
  const request = wire.requestDeserialize(Buffer.concat(chunks).subarray(5))
  const message = wire.requestSerialize({ ...request, verbose: false })
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}
