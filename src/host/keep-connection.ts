import { spawn } from 'node:child_process'
import { Socket } from 'node:net'
import { errorMessage, PoddError } from '../base/errors.ts'

export interface KeptConnection {
  /** How long it outlives a podd that was killed. */
  readonly lingerSeconds: number
  /** The connection is as it would be without this: it ends with podd. */
  readonly onFailure: (error: Error) => void
}

/**
 * Reads a pipe from podd: a line says that podd has closed the connection, its end without one that podd was killed. It is
 * nobody's child, because a podd that replaces itself in its process would not wait for it.
 */
const script = '{ read -r line <&4 || exec sleep "$1"; } &'

/**
 * Has a process of its own hold a connected socket, too, so that its peer doesn't see the connection end when podd is
 * killed. The returned function ends that process. Nothing of what has arrived is lost.
 */
export function keepConnection(socket: Socket, options: KeptConnection): () => void {
  try {
    const pipe = spawnKeeper(socket, options)
    return () => void pipe?.end('\n')
  } catch (error) {
    options.onFailure(new PoddError('HOST_COMMAND', errorMessage(error), { cause: error }))
    return () => {}
  } finally {
    // Node stops reading a socket that it passes on.
    socket.resume()
  }
}

/** Gives podd's end of the pipe; none where no more files can be opened. */
function spawnKeeper(socket: Socket, { lingerSeconds, onFailure }: KeptConnection): Socket | undefined {
  const child = spawn('/bin/sh', ['-c', script, 'podd-keeps-connection', String(lingerSeconds)], {
    stdio: ['ignore', 'ignore', 'ignore', socket, 'pipe'],
    cwd: '/',
    env: { PATH: process.env['PATH'] },
    // What is sent to podd's process group isn't meant for it.
    detached: true,
  })
  child.once('error', onFailure)
  child.unref()
  const stdio: readonly unknown[] | undefined = child.stdio
  const pipe = stdio?.[4]
  if (!(pipe instanceof Socket)) return undefined
  pipe.on('error', () => {})
  pipe.unref()
  return pipe
}
