/*
 * Entry of the process that connects to ports inside a pod's network namespace, in which netns-dialer.ts starts it. It
 * hands each connection over and reads nothing from it.
 */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { errorCode, errorMessage } from '../base/errors.ts'

/** A server may listen on either. */
const loopbacks = ['127.0.0.1', '::1']

function isRequest(value: unknown): value is { readonly id: number; readonly port: number } {
  if (typeof value !== 'object' || value === null || !('id' in value) || !('port' in value)) return false
  return typeof value.id === 'number' && typeof value.port === 'number'
}

/** Paused from the start: the other process reads all that the server sends. */
function dial(host: string, port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port })
    socket.pause()
    socket.once('connect', () => resolve(socket))
    socket.once('error', reject)
  })
}

async function dialAny(port: number): Promise<Socket> {
  const failures: unknown[] = []
  for (const host of loopbacks) {
    try {
      return await dial(host, port)
    } catch (error) {
      failures.push(error)
    }
  }
  throw failures[0]
}

process.on('message', (request: unknown) => {
  if (!isRequest(request)) return
  dialAny(request.port).then(
    (socket) => process.send?.({ id: request.id }, socket),
    (error: unknown) =>
      process.send?.({ id: request.id, code: errorCode(error) ?? '', message: errorMessage(error) }),
  )
})
process.on('disconnect', () => process.exit())
