import { once } from 'node:events'
import { chmodSync, statSync } from 'node:fs'
import { unlink } from 'node:fs/promises'
import type { Server } from 'node:net'
import { connect } from 'node:net'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'

/** sun_path less its final zero (unix(7)). */
const longestSocketPathBytes = 107

/**
 * Lets `server` listen at a unix socket that only its owner may open. A socket that a dead process left is taken
 * over; one that somebody answers at is not. Throws PoddError ALREADY_RUNNING, SOCKET_PATH_TOO_LONG or
 * SOCKET_FAILED. The returned function removes the socket, if it is still this one.
 */
export async function listenOnSocket(server: Server, path: string): Promise<() => Promise<void>> {
  if (Buffer.byteLength(path) > longestSocketPathBytes) {
    throw new PoddError('SOCKET_PATH_TOO_LONG', `the socket path ${path} is longer than Linux allows`, {
      hint: 'Choose a shorter --run-dir.',
    })
  }
  try {
    await listen(server, path)
  } catch (error) {
    if (errorCode(error) !== 'EADDRINUSE') throw socketFailed(path, error)
    if (await isAnswered(path)) throw alreadyRunning(path)
    await unlink(path).catch(() => {})
    await listen(server, path).catch((second: unknown) => {
      throw errorCode(second) === 'EADDRINUSE' ? alreadyRunning(path) : socketFailed(path, second)
    })
  }
  const { ino } = statSync(path)
  return async () => {
    if (inodeOf(path) === ino) await unlink(path).catch(() => {})
  }
}

/** Whether some process answers at the socket. */
export async function isAnswered(path: string): Promise<boolean> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    // Full, or not ours to open: somebody is there all the same.
    const code = errorCode(error)
    return code !== 'ECONNREFUSED' && code !== 'ENOENT'
  } finally {
    socket.destroy()
  }
}

async function listen(server: Server, path: string): Promise<void> {
  const listening = once(server, 'listening')
  // The socket is bound before listen() returns: nothing else is made under this umask.
  const before = process.umask(0o177)
  try {
    server.listen({ path, exclusive: true })
  } finally {
    process.umask(before)
  }
  await listening
  chmodSync(path, 0o600)
}

function inodeOf(path: string): number | undefined {
  try {
    return statSync(path).ino
  } catch {
    // There is no such file any more, or it can't be looked at: either way it isn't known to be this socket.
    return undefined
  }
}

function alreadyRunning(path: string): PoddError {
  return new PoddError('ALREADY_RUNNING', `another podd answers at ${path}`, {
    hint: 'Stop it first, or give this one a --run-dir and a --root-dir of its own.',
  })
}

function socketFailed(path: string, error: unknown): PoddError {
  return new PoddError('SOCKET_FAILED', `cannot listen at ${path}: ${errorMessage(error)}`, {
    cause: error,
    hint: 'podd needs to write to its runtime directory; run it as root, or choose another --run-dir.',
  })
}
