import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { Clock, Timer } from '../base/clock.ts'
import { errorMessage, PoddError } from '../base/errors.ts'
import { findExecutable } from './run-command.ts'

/** A connection to the loopback device itself is made or refused at once; a full backlog takes longer. */
const dialMs = 10_000
/** How long a process waits in the namespace for the next connection: browsers open several. */
const lingerMs = 15_000

interface Waiting {
  readonly resolve: (socket: Socket) => void
  readonly reject: (error: PoddError) => void
}

/** No process of podd's can enter the network namespace. */
export class NamespaceUnreachable extends PoddError {
  constructor(message: string, hint?: string) {
    super('PORT_FORWARD_FAILED', message, { hint })
  }
}

/** A process in a network namespace, and the callers that wait for its connections. */
interface Dialer {
  readonly child: ChildProcess
  readonly waiting: Map<number, Waiting>
  linger: Timer | undefined
}

/**
 * Connects to loopback ports inside network namespaces, which this process can't enter: a small process there connects
 * and passes the descriptor back, so that the bytes pass only through podd. It lives for some seconds.
 */
export class NetnsDialers {
  readonly #clock: Clock
  readonly #dialers = new Map<string, Dialer>()
  #lastId = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Connects to `port` on 127.0.0.1, else on ::1, in the namespace at `path` (`/proc/<pid>/ns/net`). Both directions
   * end independently. Throws PoddError PORT_REFUSED where no process listens, NamespaceUnreachable, or PORT_FORWARD_FAILED.
   */
  async dial(path: string, port: number): Promise<Socket> {
    const dialer = this.#dialers.get(path) ?? this.#start(path)
    dialer.linger?.cancel()
    const id = (this.#lastId += 1)
    const timer = this.#clock.startTimer(dialMs, () =>
      dialer.waiting.get(id)?.reject(failed(`no connection to port ${port} was accepted in time`)),
    )
    try {
      return await new Promise<Socket>((resolve, reject) => {
        dialer.waiting.set(id, { resolve, reject })
        dialer.child.send({ id, port }, (error) => {
          // A process that ends at this moment reports the reason itself.
          if (error !== null && this.#dialers.get(path) !== dialer)
            reject(new NamespaceUnreachable(errorMessage(error)))
        })
      })
    } finally {
      timer.cancel()
      dialer.waiting.delete(id)
      if (dialer.waiting.size === 0)
        dialer.linger = this.#clock.startTimer(lingerMs, () => this.#stop(path, dialer))
    }
  }

  /** Ends all processes; established connections continue. */
  close(): void {
    for (const [path, dialer] of this.#dialers) this.#stop(path, dialer)
  }

  #stop(path: string, dialer: Dialer): void {
    if (this.#dialers.get(path) === dialer) this.#dialers.delete(path)
    dialer.linger?.cancel()
    if (dialer.child.connected) dialer.child.disconnect()
  }

  #start(path: string): Dialer {
    const program = findExecutable('nsenter')
    if (program === undefined) {
      throw new NamespaceUnreachable('there is no program nsenter on this host', 'Install util-linux.')
    }
    const child = spawn(program, [`--net=${path}`, process.execPath, workerPath()], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    const dialer: Dialer = { child, waiting: new Map(), linger: undefined }
    this.#dialers.set(path, dialer)
    let said = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      said = `${said}${chunk.toString('utf8')}`.slice(-1000)
    })
    const end = (why: string): void => {
      this.#stop(path, dialer)
      for (const { reject } of dialer.waiting.values()) reject(new NamespaceUnreachable(why))
    }
    child.once('error', (error) => end(errorMessage(error)))
    child.once('close', () => end(`cannot connect from inside the pod: ${said.trim()}`))
    child.on('message', (message, handle) => {
      const { id, code } = readAnswer(message)
      const waiting = dialer.waiting.get(id)
      if (handle instanceof Socket) {
        // Each direction ends independently, as on any TCP connection.
        handle.allowHalfOpen = true
        if (waiting === undefined) handle.destroy()
        else waiting.resolve(handle)
      } else waiting?.reject(code === 'ECONNREFUSED' ? refused() : failed(code))
    })
    return dialer
  }
}

function readAnswer(message: unknown): { readonly id: number; readonly code: string } {
  if (typeof message !== 'object' || message === null) return { id: 0, code: '' }
  const id = 'id' in message && typeof message.id === 'number' ? message.id : 0
  const code = 'code' in message && typeof message.code === 'string' ? message.code : ''
  return { id, code }
}

function failed(message: string): PoddError {
  return new PoddError('PORT_FORWARD_FAILED', message)
}

function refused(): PoddError {
  return new PoddError('PORT_REFUSED', 'connection refused: nothing in the pod listens on the port')
}

/** The process's file is beside this module: as source during development, as its own bundle once built. */
function workerPath(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return fileURLToPath(new URL(`./netns-dial-worker.${extension}`, import.meta.url))
}
