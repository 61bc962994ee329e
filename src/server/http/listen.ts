import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, closeSync, openSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import type { BigIntStats, Stats } from 'node:fs'
import { unlink } from 'node:fs/promises'
import { connect, Server } from 'node:net'
import type { PortOption } from '../../api/routes.ts'
import { tryRemove } from '../../base/atomic-file.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { formatAddress } from '../../config/api-options.ts'
import type { ListenAddress } from '../../config/api-options.ts'
import { listProcesses } from '../../host/processes.ts'
import type { HostProcess } from '../../host/processes.ts'

/** sun_path less its final zero (unix(7)). */
const longestSocketPathBytes = 107

export interface ServedSocket {
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
export async function listenOnSocket(server: Server, path: string): Promise<ServedSocket> {
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
      if (fileAt(path) !== undefined && (await isAnswered(path))) throw alreadyRunning(`answers at ${path}`)
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
    if (await isAnswered(path)) throw alreadyRunning(`answers at ${path}`)
    await unlink(path).catch((second: unknown) => {
      if (errorCode(second) !== 'ENOENT') throw socketFailed(path, second)
    })
    await listen(server, path).catch((second: unknown) => {
      const isTaken = errorCode(second) === 'EADDRINUSE'
      throw isTaken ? alreadyRunning(`answers at ${path}`) : socketFailed(path, second)
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

function alreadyRunning(where: string): PoddError {
  return new PoddError('ALREADY_RUNNING', `another podd ${where}`, {
    hint: 'Stop it first, or give this one a --run-dir and a --root-dir of its own.',
  })
}

function socketFailed(path: string, error: unknown): PoddError {
  return new PoddError('SOCKET_FAILED', `cannot listen at ${path}: ${errorMessage(error)}`, {
    cause: error,
    hint: 'podd needs to write to its runtime directory; run it as root, or choose another --run-dir.',
  })
}

/** The program of util-linux or busybox. */
const flockProgram = 'flock'

/**
 * Holds the lock of a directory until the process ends or the returned function is called: two podds never use one
 * directory, whatever their sockets are. The lock is a flock(2) on `<directory>/lock`, so that no crash leaves it
 * behind. It is taken by the `flock` program on a descriptor that this process keeps open; where there is no such
 * program, there is no lock. Throws PoddError ALREADY_RUNNING or LOCK_FAILED.
 */
export function holdInstanceLock(directory: string): () => void {
  const path = lockPath(directory)
  let descriptor: number
  try {
    descriptor = openSync(path, 'a', 0o600)
  } catch (error) {
    throw new PoddError('LOCK_FAILED', `cannot open ${path}: ${errorMessage(error)}`, {
      cause: error,
      hint: 'podd needs to write to its directories; run it as root on a disk that is neither full nor read-only.',
    })
  }
  if (isRefused(descriptor, '--exclusive')) {
    closeSync(descriptor)
    throw alreadyRunning(`works in ${directory}`)
  }
  return () => closeSync(descriptor)
}

/**
 * The process that holds the lock of a directory; undefined where none does. The kernel shows for each descriptor
 * what it locks (proc_pid_fdinfo(5)); /proc/locks would name the `flock` program, which has ended.
 *
 * @throws PoddError DAEMON_UNKNOWN where it is held by a process that can't be seen from here; LOCK_FAILED
 */
export function findLockHolder(directory: string, procDirectory = '/proc'): HostProcess | undefined {
  if (!isHeld(directory)) return undefined
  const holder = selectHolder(lockPath(directory), procDirectory)
  if (holder !== undefined || !isHeld(directory)) return holder
  throw new PoddError(
    'DAEMON_UNKNOWN',
    `a podd works in ${directory}, and its process cannot be determined`,
    {
      hint: `End it where it runs, maybe in a container; \`fuser ${lockPath(directory)}\` names it there.`,
    },
  )
}

function lockPath(directory: string): string {
  return `${directory}/lock`
}

/** Tests with a shared lock for a moment, so that concurrent tests don't see each other. */
function isHeld(directory: string): boolean {
  const path = lockPath(directory)
  let descriptor: number
  try {
    descriptor = openSync(path, 'r')
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return false
    throw new PoddError('LOCK_FAILED', `cannot open ${path}: ${errorMessage(error)}`, { cause: error })
  }
  try {
    return isRefused(descriptor, '--shared')
  } finally {
    closeSync(descriptor)
  }
}

/** Whether another process's lock conflicts with this one. */
function isRefused(descriptor: number, kind: '--exclusive' | '--shared'): boolean {
  const { status } = spawnSync(flockProgram, [kind, '--nonblock', '3'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
    timeout: 10_000,
    killSignal: 'SIGKILL',
  })
  return status === 1
}

function selectHolder(path: string, procDirectory: string): HostProcess | undefined {
  const file = statSync(path, { bigint: true, throwIfNoEntry: false })
  if (file === undefined) return undefined
  const holders = listProcesses(procDirectory).filter(({ pid }) => hasLocked(`${procDirectory}/${pid}`, file))
  // A forked child that is about to execute a program has the same descriptors for a moment.
  return holders.find(({ parentPid }) => !holders.some(({ pid }) => pid === parentPid))
}

/** Whether a process has an exclusive lock on exactly this file. */
function hasLocked(processDirectory: string, file: BigIntStats): boolean {
  return listDescriptors(processDirectory).some((descriptor) => {
    const link = `${processDirectory}/fd/${descriptor}`
    try {
      // Files opened elsewhere are not examined: a dead network share would block.
      if (!readlinkSync(link).endsWith('/lock')) return false
      const { dev, ino } = statSync(link, { bigint: true })
      if (dev !== file.dev || ino !== file.ino) return false
      const info = readFileSync(`${processDirectory}/fdinfo/${descriptor}`, 'utf8')
      return /^lock:.*\bFLOCK\b.*\bWRITE\b/mu.test(info)
    } catch {
      // It was closed meanwhile.
      return false
    }
  })
}

function listDescriptors(processDirectory: string): readonly string[] {
  try {
    return readdirSync(`${processDirectory}/fd`)
  } catch {
    // It has ended meanwhile.
    return []
  }
}

/**
 * A port at which podd listens, or tries to. It is opened once, however often it is asked to: only an attempt that failed
 * is repeated.
 */
export class ServedPort {
  readonly option: PortOption
  readonly address: ListenAddress
  readonly #listen: () => Promise<OpenPort>
  #opening: Promise<OpenPort> | undefined
  #isClosed = false
  #problem: string | undefined

  constructor(option: PortOption, address: ListenAddress, listen: () => Promise<OpenPort>) {
    this.option = option
    this.address = address
    this.#listen = listen
  }

  /** Why podd doesn't listen there: what the last attempt failed with. Undefined where it listens, or didn't try yet. */
  get problem(): string | undefined {
    return this.#problem
  }

  /**
   * Listens; does nothing where podd does already, or is stopping.
   * @throws PoddError SOCKET_FAILED, or the system's error for files that are needed; it can be called again
   */
  async open(): Promise<void> {
    if (this.#isClosed) return
    this.#opening ??= this.#listen()
    const opening = this.#opening
    try {
      await opening
      this.#problem = undefined
    } catch (error) {
      this.#problem = errorMessage(error)
      if (this.#opening === opening) this.#opening = undefined
      throw error
    }
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosed = true
    // An attempt may be in flight; one that failed has left nothing.
    const port = await this.#opening?.catch(() => undefined)
    await port?.close(graceMs)
  }
}

interface OpenPort {
  close(graceMs: number): Promise<void>
}

export function cannotListen(address: ListenAddress, option: PortOption, cause: unknown): PoddError {
  return new PoddError(
    'SOCKET_FAILED',
    `cannot listen at ${formatAddress(address)}: ${errorMessage(cause)}`,
    { cause, hint: `See which process has the port (ss -ltnp), or choose another address with ${option}.` },
  )
}
