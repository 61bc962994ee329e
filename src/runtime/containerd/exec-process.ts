import { constants, existsSync, open } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { removeTree } from '../../base/atomic-file.ts'
import { sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { jsonAt, textsAt, objectAt } from '../../base/json.ts'
import type { JsonObject } from '../../base/json.ts'
import { commandOutput } from '../../host/run-command.ts'
import { ContainerdService } from './records.ts'
import type { ContainerdChannel } from './records.ts'

const signals = { hangUp: 1, kill: 9, terminate: 15 } as const

/** The time between the first signal and SIGKILL for a process whose client is gone. */
const hangUpGraceMs = 1000
/** How long to wait for more output of a command that has ended while something else holds its output open. */
const quietMs = 1000
const waitRetryMs = 200
/** The exit code of a process that was lost with its container, as after SIGKILL. */
const lostExitCode = 137

export interface ExecProcessOptions {
  readonly calls: TaskCalls
  readonly target: ExecTarget
  readonly fifos: ExecFifos
  readonly terminal: boolean
  readonly hasStdin: boolean
  /** The runtime keeps its record until its container ends. */
  readonly isKept?: boolean
  readonly clock: Clock
  /** Aborted when podd ends: the process is left to the next podd, which finds its pipes. */
  readonly closing: AbortSignal
}

/** A command that runs in a container, with its streams. */
export class ExecProcess {
  readonly stdout: Readable
  /** Undefined for a terminal, where it is one with stdout. */
  readonly stderr: Readable | undefined
  /** Resolves with its exit code, once all of its output was read. */
  readonly ended: Promise<number>
  /** Resolves when nothing of it is left; seconds later where another process holds its output open. */
  readonly removed: Promise<void>
  readonly #options: ExecProcessOptions
  readonly #stdin: Promise<Socket | undefined>
  readonly #over = new AbortController()
  /** The newest size that has to be sent; undefined while there is none. */
  #nextSize: TerminalSize | undefined

  constructor(options: ExecProcessOptions) {
    this.#options = options
    const { fifos } = options
    this.stdout = fifos.stdout
    this.stderr = fifos.stderr
    this.#stdin = options.hasStdin ? this.#openStdin() : Promise.resolve(undefined)
    this.ended = this.#run()
    this.removed = this.ended.then(
      () => this.#remove(),
      // Whoever awaits `ended` gets its error.
      () => this.#remove(),
    )
  }

  /** Resolves when the process has read it, or can no longer read anything. */
  async write(chunk: Uint8Array): Promise<void> {
    const stdin = await this.#stdin
    if (stdin === undefined || !stdin.writable) return
    await new Promise<void>((resolve) => {
      stdin.write(chunk, () => resolve())
    })
  }

  /** Ends its standard input, after all that was written. */
  async closeStdin(): Promise<void> {
    const { calls, target } = this.#options
    const stdin = await this.#stdin
    if (stdin === undefined) return
    if (!stdin.destroyed) {
      await new Promise<void>((resolve) => {
        stdin.once('close', () => resolve())
        stdin.end()
      })
    }
    // The shim keeps the pipe open itself, so that a client that disconnects for a moment doesn't end it.
    await calls.closeStdin(target).catch(() => {})
  }

  /** Sets the terminal's size, if it has one; of sizes in quick succession only the last one is sent. */
  async resize(size: TerminalSize): Promise<void> {
    const { calls, target, terminal } = this.#options
    if (!terminal) return
    const isInFlight = this.#nextSize !== undefined
    this.#nextSize = size
    if (isInFlight) return
    // One after the other: the runtime may reorder concurrent calls.
    for (let told: TerminalSize | undefined; told !== this.#nextSize;) {
      told = this.#nextSize
      // The process has ended, or keeps its old size: its output shows which.
      await calls.resize(target, told).catch(() => {})
    }
    this.#nextSize = undefined
  }

  /** Ends a process whose client is gone: by SIGHUP or SIGTERM, for a terminal or not; soon after by SIGKILL. */
  async hangUp(): Promise<void> {
    const { calls, target, terminal, clock } = this.#options
    if (this.#over.signal.aborted) return
    try {
      await calls.kill(target, terminal ? signals.hangUp : signals.terminate)
      await clock.sleep(hangUpGraceMs, this.#over.signal)
      await calls.kill(target, signals.kill)
    } catch {
      // It has ended, or goes with its container.
    }
  }

  async #run(): Promise<number> {
    try {
      const exitCode = await this.#wait()
      this.#over.abort()
      await this.#drain()
      return exitCode
    } finally {
      this.#over.abort()
    }
  }

  async #remove(): Promise<void> {
    const { calls, target, fifos, closing, isKept } = this.#options
    if (isKept === true) return closing.aborted ? fifos.close() : await fifos.remove()
    const isRemoved = await calls.remove(target).then(
      () => true,
      // The directory of its pipes stays where podd is stopping: the next podd's sweep removes both.
      () => false,
    )
    if (closing.aborted && !isRemoved) fifos.close()
    else await fifos.remove()
  }

  /** Waits for the process's exit, also across restarts of containerd, which the process survives. */
  async #wait(): Promise<number> {
    const { calls, target, clock, closing } = this.#options
    for (;;) {
      try {
        return await calls.wait(target)
      } catch (error) {
        if (errorCode(error) === 'RUNTIME_NOT_FOUND') return lostExitCode
        if (errorCode(error) !== 'RUNTIME_UNAVAILABLE') throw error
        await clock.sleep(waitRetryMs, closing)
      }
    }
  }

  /**
   * Waits for the end of the output. A process that the command left behind may hold it open for ever: then it counts
   * as ended when nothing has arrived for a while and no reader is busy.
   */
  async #drain(): Promise<void> {
    const { fifos, clock } = this.#options
    const open = new Set([fifos.stdout, fifos.stderr].filter((stream) => stream !== undefined))
    const closed = new AbortController()
    for (const stream of open) {
      const gone = (): void => {
        open.delete(stream)
        if (open.size === 0) closed.abort()
      }
      if (stream.closed || stream.readableEnded) gone()
      else stream.once('close', gone)
    }
    let before = -1
    while (open.size > 0) {
      const taken = [...open].reduce((sum, stream) => sum + stream.bytesRead, 0)
      if (taken === before && [...open].every((stream) => stream.readableLength === 0)) break
      before = taken
      await sleepUnlessAborted(clock, quietMs, closed.signal)
    }
    for (const stream of open) stream.destroy()
  }

  async #openStdin(): Promise<Socket | undefined> {
    const stdin = await this.#options.fifos.openStdin(this.#over.signal)
    this.#over.signal.addEventListener('abort', () => stdin?.destroy(), { once: true })
    return stdin
  }
}

/** How large a terminal is, in characters. */
interface TerminalSize {
  readonly columns: number
  readonly rows: number
}

/** The fields in which a command differs from the container's own process. */
export interface ExecChoices {
  readonly command: readonly string[]
  readonly terminal: boolean
  readonly size?: TerminalSize | undefined
}

/**
 * The OCI process of a command that is run in a container: the container's own process (user, groups, capabilities,
 * environment, working directory, limits) with another command line, as `kubectl exec` has it
 * (containerd `internal/cri/server/container_execsync.go` execInternal, 2.1). Both are JSON text.
 * Throws PoddError EXEC_FAILED for a spec that has no process.
 */
export function makeExecProcess(containerSpec: string, choices: ExecChoices): string {
  const own = objectAt(JSON.parse(quoteLargeNumbers(containerSpec)), 'process')
  if (own === undefined) throw new PoddError('EXEC_FAILED', 'the container has no process of its own')
  const { consoleSize: _size, commandLine: _line, ...kept } = own
  const process = {
    ...kept,
    args: choices.command,
    terminal: choices.terminal,
    ...(choices.terminal ? { env: terminalEnv(own) } : {}),
    ...(choices.terminal && choices.size !== undefined
      ? { consoleSize: { width: choices.size.columns, height: choices.size.rows } }
      : {}),
  }
  return JSON.stringify(process).replaceAll(/"\\u0000(-?\d+)"/gu, '$1')
}

function terminalEnv(own: JsonObject): readonly string[] {
  const others = textsAt(own, 'env').filter((entry) => !entry.startsWith('TERM='))
  return [...others, 'TERM=xterm']
}

/**
 * A limit of `unlimited` is 2^64 - 1, which no JavaScript number holds: such numbers are kept as marked text. The mark
 * cannot occur in a spec by itself, since no environment or path holds a zero character.
 */
const mark = '\\u0000'

function quoteLargeNumbers(json: string): string {
  return json.replaceAll(/"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?$)|-?\d[\d.eE+-]*/gsu, (token) =>
    /^-?\d{16,}$/u.test(token) ? `"${mark}${token}"` : token,
  )
}

/** Which streams a command has. A terminal's output is one stream. */
export interface FifoChoices {
  readonly stdin: boolean
  readonly stderr: boolean
}

/** The streams of one command; a path that is empty is none. */
export interface ExecFifos {
  readonly paths: { readonly stdin: string; readonly stdout: string; readonly stderr: string }
  readonly stdout: Socket
  readonly stderr: Socket | undefined
  /** Opens the writing end once the shim has opened the reading end. Resolves with undefined where it never does. */
  openStdin(signal: AbortSignal): Promise<Socket | undefined>
  /** Closes podd's ends. */
  close(): void
  /** Closes and removes the pipes. */
  remove(): Promise<void>
}

const openFile = promisify(open)

const openPollMs = 5
/** The shim opens its end while it starts the process; it gives up itself after 30 s. */
const openPatienceMs = 30_000

/**
 * Makes the named pipes of one command in a directory of its own, where they aren't there, and opens the reading ends,
 * so that the shim finds a reader. Named pipes and not sockets, because the shim takes no other; non-blocking, so that
 * none of Node's few threads ever waits for one. Throws PoddError EXEC_FAILED, and then leaves nothing behind.
 */
export async function makeExecFifos(
  directory: string,
  choices: FifoChoices,
  clock: Clock,
): Promise<ExecFifos> {
  const opened: Socket[] = []
  const close = (): void => {
    for (const socket of opened) socket.destroy()
  }
  const remove = async (): Promise<void> => {
    close()
    await removeTree(directory)
  }
  const paths = {
    stdin: choices.stdin ? join(directory, 'stdin') : '',
    stdout: join(directory, 'stdout'),
    stderr: choices.stderr ? join(directory, 'stderr') : '',
  }
  const openEnd = async (path: string, end: 'read' | 'write'): Promise<Socket> => {
    const flag = end === 'read' ? constants.O_RDONLY : constants.O_WRONLY
    const fd = await openFile(path, flag | constants.O_NONBLOCK)
    const socket = new Socket({ fd, readable: end === 'read', writable: end === 'write' })
    // A process may not read its input, and a broken pipe has ended.
    socket.on('error', () => {})
    opened.push(socket)
    return socket
  }
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    const missing = Object.values(paths).filter((path) => path !== '' && !existsSync(path))
    // Node can't make named pipes; coreutils and busybox can.
    if (missing.length > 0) await commandOutput('mkfifo', ['-m', '600', ...missing])
    return {
      paths,
      stdout: await openEnd(paths.stdout, 'read'),
      stderr: choices.stderr ? await openEnd(paths.stderr, 'read') : undefined,
      openStdin: (signal) => untilRead(() => openEnd(paths.stdin, 'write'), clock, signal),
      close,
      remove,
    }
  } catch (error) {
    await remove()
    const message = `cannot make the pipes of a command: ${errorMessage(error)}`
    throw new PoddError('EXEC_FAILED', message, { cause: error })
  }
}

/** Opening to write fails with ENXIO while nothing reads. */
async function untilRead(
  openEnd: () => Promise<Socket>,
  clock: Clock,
  signal: AbortSignal,
): Promise<Socket | undefined> {
  const giveUpAtMs = clock.monotonicMs() + openPatienceMs
  while (!signal.aborted && clock.monotonicMs() < giveUpAtMs) {
    try {
      return await openEnd()
    } catch (error) {
      if (errorCode(error) !== 'ENXIO') return undefined
      await sleepUnlessAborted(clock, openPollMs, signal)
    }
  }
  return undefined
}

export interface ExecTarget {
  readonly containerId: string
  readonly execId: string
}

export interface ExecRequest extends ExecTarget {
  /** OCI process, JSON. */
  readonly process: string
  readonly terminal: boolean
  readonly stdin: string
  readonly stdout: string
  readonly stderr: string
}

const processType = 'types.containerd.io/opencontainers/runtime-spec/1/Process'

const callMs = 30_000
/** The deadline of a start, which the container's disk and CPU limits may delay. */
const startMs = 120_000

/** containerd's own calls about processes: the same in 1.6, 1.7 and 2.x. Throws as ContainerdService. */
export class TaskCalls {
  readonly #tasks: ContainerdService
  readonly #containers: ContainerdService

  constructor(channel: ContainerdChannel, clock: Clock) {
    this.#tasks = new ContainerdService('tasks', channel, clock, callMs)
    this.#containers = new ContainerdService('containers', channel, clock, callMs)
  }

  /** The OCI spec that a container was made from, as JSON text. */
  async containerSpec(containerId: string): Promise<string> {
    const reply = await this.#containers.send('Get', { id: containerId })
    const value: unknown = jsonAt(reply, 'container', 'spec', 'value')
    if (value instanceof Uint8Array && value.length > 0) return Buffer.from(value).toString('utf8')
    throw new PoddError('EXEC_FAILED', 'the runtime does not report the spec of the container')
  }

  /** Creates the process; it does not run yet. */
  async create({ process, ...request }: ExecRequest): Promise<void> {
    const spec = { typeUrl: processType, value: Buffer.from(process) }
    await this.#tasks.send('Exec', { ...request, spec })
  }

  async start(target: ExecTarget): Promise<void> {
    await this.#tasks.send('Start', target, startMs)
  }

  /**
   * The state of a process. One that has ended exists until it is removed. `absent` also where its container does not
   * run.
   */
  async state(target: ExecTarget): Promise<'absent' | 'created' | 'begun'> {
    const reply = await this.#tasks.sendIfThere('Get', target)
    if (reply === undefined) return 'absent'
    return jsonAt(reply, 'process', 'status') === 'CREATED' ? 'created' : 'begun'
  }

  /** The exit code, when the process has ended. */
  async wait(target: ExecTarget): Promise<number> {
    const reply = await this.#tasks.send('Wait', target, Infinity)
    return 'exitStatus' in reply && typeof reply.exitStatus === 'number' ? reply.exitStatus : 0
  }

  async kill(target: ExecTarget, signal: number): Promise<void> {
    await this.#tasks.send('Kill', { ...target, signal })
  }

  async resize(target: ExecTarget, { columns, rows }: TerminalSize): Promise<void> {
    await this.#tasks.send('ResizePty', { ...target, width: columns, height: rows })
  }

  async closeStdin(target: ExecTarget): Promise<void> {
    await this.#tasks.send('CloseIO', { ...target, stdin: true })
  }

  /** Deletes a process that has ended or never ran. */
  async remove(target: ExecTarget): Promise<void> {
    await this.#tasks.send('DeleteProcess', target)
  }
}
