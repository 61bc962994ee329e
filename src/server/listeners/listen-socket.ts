import { once } from 'node:events'
import { chmodSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { Server, connect } from 'node:net'
import { tryRemove } from '../../base/atomic-file.ts'
import { PoddError, errorCode, errorMessage } from '../../base/errors.ts'

/** sun_path less its final zero (unix(7)). */
const longestSocketPathBytes = 107

/** A unix socket that a server listens at. */
export interface HeldSocket {
  /**
   * Listens again where the file is gone or was replaced; open connections stay. Resolves with whether that was so.
   * Rejects as `listenOnSocket`: another process may answer there by now.
   */
  renew(): Promise<boolean>
  /** Removes the file, if it is still this socket, and stops renewing it. */
  remove(): Promise<void>
}

/**
 * Lets `server` listen at a unix socket that only its owner may open. A socket left by a dead process is taken over;
 * one at which a process answers is not. Throws PoddError ALREADY_RUNNING, SOCKET_PATH_TOO_LONG or SOCKET_FAILED.
 */
export async function listenOnSocket(server: Server, path: string): Promise<HeldSocket> {
  if (Buffer.byteLength(path) > longestSocketPathBytes) {
    throw new PoddError('SOCKET_PATH_TOO_LONG', `the socket path ${path} is longer than Linux allows`, {
      hint: 'Choose a shorter --run-dir.',
    })
  }
  await takeOver(server, path)
  let own = fileAt(path)
  let isOver = false
  const isOwn = (): boolean => {
    const file = fileAt(path)
    return file !== undefined && file.ino === own?.ino && file.dev === own.dev
  }
  return {
    async renew() {
      if (isOver || isOwn()) return false
      if (fileAt(path) !== undefined && (await isAnswered(path))) throw alreadyRunning(path)
      if (isOver) return false
      // Not the HTTP server's own close, which would end idle connections.
      Server.prototype.close.call(server)
      await takeOver(server, path)
      own = fileAt(path)
      return true
    },
    async remove() {
      isOver = true
      // The next podd takes over a socket at which no process answers.
      if (isOwn()) await tryRemove(path)
    },
  }
}

/** Replaces a socket at which no process answers. */
async function takeOver(server: Server, path: string): Promise<void> {
  try {
    await listen(server, path)
  } catch (error) {
    if (errorCode(error) !== 'EADDRINUSE') throw socketFailed(path, error)
    if (await isAnswered(path)) throw alreadyRunning(path)
    await unlink(path).catch((second: unknown) => {
      if (errorCode(second) !== 'ENOENT') throw socketFailed(path, second)
    })
    await listen(server, path).catch((second: unknown) => {
      throw errorCode(second) === 'EADDRINUSE' ? alreadyRunning(path) : socketFailed(path, second)
    })
  }
}

/** Whether a process answers at the socket. */
export async function isAnswered(path: string): Promise<boolean> {
  const socket = connect(path)
  try {
    await once(socket, 'connect')
    return true
  } catch (error) {
    // Its backlog is full, or access is denied: a process is there.
    const code = errorCode(error)
    return code !== 'ECONNREFUSED' && code !== 'ENOENT'
  } finally {
    socket.destroy()
  }
}

async function listen(server: Server, path: string): Promise<void> {
  const listening = once(server, 'listening')
  // The socket is bound before listen() returns: no other file is created under this umask.
  const before = process.umask(0o177)
  try {
    server.listen({ path, exclusive: true })
  } finally {
    process.umask(before)
  }
  await listening
  chmodSync(path, 0o600)
}

function fileAt(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    // The file is gone, or can't be examined: it isn't known to be this socket.
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
