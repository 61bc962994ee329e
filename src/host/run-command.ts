/* Programs of the host, run without a shell and within bounds of time and output; and where they are found. */
import { spawn } from 'node:child_process'
import type { ChildProcess, StdioOptions } from 'node:child_process'
import { accessSync, constants, statSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { pipeline } from 'node:stream'
import type { Readable, Writable } from 'node:stream'
import { systemClock } from '../base/clock.ts'
import type { Clock, Timer } from '../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../base/errors.ts'

/** How a host program ended. A non-zero exit is a result, not an error. */
export interface CommandResult {
  /** null when a signal ended it, that of its timeout too. */
  readonly exitCode: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface CommandOptions {
  /** The program gets SIGKILL after this; by default 30 000 ms. */
  readonly timeoutMs?: number
  /** Instead of podd's own environment. */
  readonly env?: Readonly<Record<string, string>>
  /** Written to its standard input. */
  readonly input?: string | Uint8Array
  /** The same, as a stream. An error of the stream rejects the call, and the program sees an early end. */
  readonly inputFrom?: Readable | undefined
  /** Kills the program, and rejects the call. */
  readonly signal?: AbortSignal | undefined
}

/** A host program that could not be started, or that failed where success was needed (`HOST_COMMAND`). */
export class HostCommandError extends PoddError {
  constructor(message: string, cause?: unknown) {
    super('HOST_COMMAND', message, { cause })
  }
}

const defaultTimeoutMs = 30_000
/** Of each of its outputs: no program that podd runs writes nearly as much. */
const defaultMaxOutputBytes = 64 * 1024 * 1024
/** How long the output of a program that has ended is read on where something that it started holds it open. */
const drainMs = 1000

/**
 * Runs a host program to its end, without a shell. Rejects only where it could not be started, was cancelled, or wrote
 * more than 64 MiB.
 */
export async function runCommand(
  path: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const run = new ProgramRun(path, args, { ...options, clock: systemClock })
  const { exitCode, exceeded } = await run.ended
  if (exceeded === 'output') throw new HostCommandError(`${path} ${run.bound('output')}`)
  return { exitCode, stdout: run.stdout, stderr: run.stderr }
}

/** Runs a host program and returns its standard output; a non-zero exit is a HostCommandError. */
export async function commandOutput(
  path: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const run = new ProgramRun(path, args, { ...options, clock: systemClock })
  const { exitCode, exceeded } = await run.ended
  if (exitCode === 0 && exceeded === undefined) return run.stdout
  const said = (run.stderr.trim() || run.stdout.trim()).slice(-2000)
  const exit = exitCode === null ? 'was killed' : `exited with ${exitCode}`
  const how = exceeded === undefined ? exit : run.bound(exceeded)
  throw new HostCommandError(`${path} ${args.join(' ')} ${how}${said === '' ? '' : `: ${said}`}`)
}

/** The bounds and input of a third-party program. */
export interface BoundedCommand {
  readonly path: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  /** Written to its standard input. */
  readonly input: string
  readonly timeoutMs: number
  /** The most bytes of its standard output. */
  readonly maxOutputBytes: number
}

/** The output of a program that succeeded; of its standard error, the first 4096 bytes. */
export interface BoundedOutput {
  readonly stdout: string
  readonly stderr: string
}

/** A program that failed, took too long or wrote too much (`HOST_COMMAND`). */
export class BoundedCommandError extends HostCommandError {
  /** The first 4096 bytes of its standard error. */
  readonly stderr: string

  constructor(message: string, stderr: string, cause?: unknown) {
    super(message, cause)
    this.stderr = stderr
  }
}

/** Runs a third-party program, without a shell. Throws BoundedCommandError, also where it exits with anything but 0. */
export async function runBounded(
  { path, args, ...options }: BoundedCommand,
  clock: Clock,
): Promise<BoundedOutput> {
  const run = new ProgramRun(path, args, { ...options, maxErrorBytes: 4096, clock })
  const fail = (message: string, cause?: unknown): BoundedCommandError =>
    new BoundedCommandError(message, run.stderr, cause)
  const { exitCode, signalName, exceeded } = await run.ended.catch((error: unknown) => {
    throw fail(errorMessage(error), error)
  })
  if (exceeded !== undefined) throw fail(`${path} ${run.bound(exceeded)}`)
  if (exitCode === 0) return { stdout: run.stdout, stderr: run.stderr }
  throw fail(`${path} ${exitCode === null ? `was ended by ${signalName}` : `exited with ${exitCode}`}`)
}

/**
 * Runs a host program and streams its standard output, with backpressure. A non-zero exit is a HostCommandError at the
 * end. Ending the iteration, or aborting the signal, kills it.
 */
export async function* commandChunks(
  path: string,
  args: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  signal.throwIfAborted()
  const child = spawnGroup(path, args, ['ignore', 'pipe', 'pipe'])
  const stderr = new BoundedText()
  child.stderr?.on('data', (chunk: Buffer) => void stderr.add(chunk, 4096))
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', (error) =>
      reject(new HostCommandError(`cannot run ${path}: ${error.message}`, error)),
    )
    child.once('close', (exitCode) => resolve(exitCode))
  })
  // Awaited only once all output was read.
  ended.catch(() => undefined)
  const kill = (): void => killGroup(child)
  // What it leaves behind must not hold its output open.
  child.once('exit', kill)
  signal.addEventListener('abort', kill, { once: true })
  try {
    for await (const chunk of child.stdout ?? []) if (Buffer.isBuffer(chunk)) yield chunk
    const exitCode = await ended
    signal.throwIfAborted()
    if (exitCode !== 0) throw new HostCommandError(`${path} failed: ${stderr.read().trim().slice(-2000)}`)
  } finally {
    signal.removeEventListener('abort', kill)
    if (child.exitCode === null && child.signalCode === null) kill()
  }
}

interface RunOptions extends Omit<CommandOptions, 'env'> {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly maxOutputBytes?: number
  /** Beyond it, standard error is dropped, and ends nothing. */
  readonly maxErrorBytes?: number
  readonly clock: Clock
}

interface ProgramEnd {
  readonly exitCode: number | null
  readonly signalName: NodeJS.Signals | null
  /** The bound for which it was ended. */
  readonly exceeded: 'time' | 'output' | undefined
}

/**
 * One run of a program, in a process group of its own. When it exceeds a bound the whole group gets SIGKILL, and processes
 * that still hold its output aren't waited for; nor are they, for longer than a second, once the program itself has ended.
 */
class ProgramRun {
  /** Rejects with HostCommandError where it could not be run or was cancelled, and with the error of its input. */
  readonly ended: Promise<ProgramEnd>
  readonly #options: RunOptions
  readonly #child: ChildProcess
  readonly #stdout = new BoundedText()
  readonly #stderr = new BoundedText()
  #drain: Timer | undefined

  constructor(path: string, args: readonly string[], options: RunOptions) {
    this.#options = options
    const { signal, clock, timeoutMs = defaultTimeoutMs } = options
    if (signal?.aborted === true)
      throw new HostCommandError(`cannot run ${path}: it was cancelled`, signal.reason)
    this.#child = spawnGroup(path, args, ['pipe', 'pipe', 'pipe'], options.env)
    const child = this.#child
    const { promise, resolve, reject } = Promise.withResolvers<ProgramEnd>()
    let inputError: unknown
    const settle = (end: Omit<ProgramEnd, 'exceeded'>, exceeded?: ProgramEnd['exceeded']): void => {
      this.#letGo()
      if (inputError === undefined) resolve({ ...end, exceeded })
      else reject(inputError)
    }
    const kill = (exceeded: 'time' | 'output'): void => {
      killGroup(child)
      settle({ exitCode: null, signalName: 'SIGKILL' }, exceeded)
    }
    const timer = clock.startTimer(timeoutMs, () => kill('time'))
    const cancel = (): void => {
      killGroup(child)
      this.#letGo()
      reject(new HostCommandError(`${path} was cancelled`, signal?.reason))
    }
    signal?.addEventListener('abort', cancel, { once: true })
    this.ended = promise.finally(() => {
      timer.cancel()
      this.#drain?.cancel()
      signal?.removeEventListener('abort', cancel)
    })
    // Without free file descriptors there are no streams: handle the error before using them.
    child.on('error', (error) => reject(new HostCommandError(`cannot run ${path}: ${error.message}`, error)))
    child.on('exit', (exitCode, signalName) => {
      timer.cancel()
      this.#drain = clock.startTimer(drainMs, () => settle({ exitCode, signalName }))
    })
    child.on('close', (exitCode, signalName) => settle({ exitCode, signalName }))
    child.stdout?.on('data', (chunk: Buffer) => {
      if (!this.#stdout.add(chunk, options.maxOutputBytes ?? defaultMaxOutputBytes)) kill('output')
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      const isWhole = this.#stderr.add(chunk, options.maxErrorBytes ?? defaultMaxOutputBytes)
      if (!isWhole && options.maxErrorBytes === undefined) kill('output')
    })
    // A program may end without reading its input.
    child.stdin?.on('error', () => undefined)
    if (options.inputFrom !== undefined && child.stdin !== null)
      feed(options.inputFrom, child.stdin, (error) => {
        inputError = error
      })
    else child.stdin?.end(options.input ?? '')
  }

  get stdout(): string {
    return this.#stdout.read()
  }

  get stderr(): string {
    return this.#stderr.read()
  }

  /** In words. */
  bound(exceeded: 'time' | 'output'): string {
    const { timeoutMs = defaultTimeoutMs, maxOutputBytes = defaultMaxOutputBytes } = this.#options
    return exceeded === 'time'
      ? `did not end within ${timeoutMs / 1000} s`
      : `wrote more than ${maxOutputBytes} bytes`
  }

  #letGo(): void {
    const { stdin, stdout, stderr } = this.#child
    for (const stream of [stdin, stdout, stderr]) stream?.destroy()
  }
}

/** What a program wrote, up to a bound. */
class BoundedText {
  readonly #chunks: Buffer[] = []
  #sizeBytes = 0

  /** Takes what fits; false where that isn't all. */
  add(chunk: Buffer, maxBytes: number): boolean {
    const room = maxBytes - this.#sizeBytes
    if (room > 0) this.#chunks.push(chunk.subarray(0, room))
    this.#sizeBytes += chunk.byteLength
    return this.#sizeBytes <= maxBytes
  }

  read(): string {
    return Buffer.concat(this.#chunks).toString('utf8')
  }
}

function spawnGroup(
  path: string,
  args: readonly string[],
  stdio: StdioOptions,
  env?: Readonly<Record<string, string | undefined>>,
): ChildProcess {
  return spawn(path, args, { stdio, detached: true, ...(env === undefined ? {} : { env: { ...env } }) })
}

/** Kills what the program has started, too. */
function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}

/** Errors of a program that closed its input, or has ended. */
const endCodes: readonly (string | undefined)[] = ['EPIPE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE']

function feed(from: Readable, to: Writable, onError: (error: unknown) => void): void {
  pipeline(from, to, (error) => {
    if (error !== undefined && error !== null && !endCodes.includes(errorCode(error))) onError(error)
  })
}

/** Full path of an executable file, which an absolute path is itself; or undefined. */
export function findExecutable(
  name: string,
  directories = searchDirectories(process.env['PATH']),
): string | undefined {
  const paths = isAbsolute(name) ? [name] : directories.map((directory) => join(directory, name))
  return paths.find((path) => isExecutable(path))
}

/** The directories to search, in order and once each: PATH, then the system's. */
export function searchDirectories(path: string | undefined): readonly string[] {
  const own = (path ?? '').split(':').filter((directory) => directory.startsWith('/'))
  return [...new Set([...own, ...systemDirectories])]
}

/** Directories searched after PATH: the sbin directories are often missing from a daemon's. */
const systemDirectories: readonly string[] = [
  '/usr/local/sbin',
  '/usr/local/bin',
  '/usr/sbin',
  '/usr/bin',
  '/sbin',
  '/bin',
]

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch {
    // It doesn't exist, or isn't executable.
    return false
  }
}
