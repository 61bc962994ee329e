import { connect } from 'node:net'

/** Whether a process listens at a unix socket. */
export function canConnect(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath)
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}

/**
 * The client's preface of HTTP/2 and an empty SETTINGS frame (RFC 9113, 3.4). A gRPC server that is shutting down
 * closes connections that have sent it; a silent connection delays its end until the handshake times out, after two
 * minutes (grpc-go before 1.60, `Server.Stop`).
 */
const http2Preface = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
])

/** Holds an idle connection of gRPC open and resolves when it ends, however it does. */
export function connectionEnd(socketPath: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ path: socketPath, signal }, () => socket.write(http2Preface))
    socket.on('error', () => undefined)
    socket.once('close', () => resolve())
    socket.resume()
  })
}
