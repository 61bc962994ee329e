import { connect } from 'node:net'

/** Whether anybody listens at a unix socket. */
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

/** Holds a silent connection open and resolves when it ends, however it does. */
export function connectionEnd(socketPath: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ path: socketPath, signal })
    socket.on('error', () => undefined)
    socket.once('close', () => resolve())
    socket.resume()
  })
}
