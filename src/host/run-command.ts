import { spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream'
import { PoddError, errorCode } from '../base/errors.ts'

/** How a host program ended. A non-zero exit is a result, not an error. */
export interface CommandResult {
  /** null when a signal ended it. */
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

/** Runs a host program to its end, without a shell. Rejects only where it could not be started. */
export function runCommand(
  path: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      timeout: options.timeoutMs ?? 30_000,
      killSignal: 'SIGKILL',
      signal: options.signal,
      ...(options.env === undefined ? {} : { env: { ...options.env } }),
    })
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    let inputError: unknown
    // Without free file descriptors there are no streams: handle the error before using them.
    child.on('error', (error) => reject(new HostCommandError(`cannot run ${path}: ${error.message}`, error)))
    child.stdout?.on('data', (chunk: Buffer) => stdout.push(chunk))
    child.stderr?.on('data', (chunk: Buffer) => stderr.push(chunk))
    child.on('close', (exitCode) => {
      if (inputError === undefined) resolve({ exitCode, stdout: text(stdout), stderr: text(stderr) })
      else reject(inputError)
    })
    // A program may end without reading its input.
    child.stdin?.on('error', () => undefined)
    if (options.inputFrom !== undefined && child.stdin !== null)
      feed(options.inputFrom, child.stdin, (error) => {
        inputError = error
      })
    else child.stdin?.end(options.input ?? '')
  })
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
  const child = spawn(path, args, { stdio: ['ignore', 'pipe', 'pipe'], killSignal: 'SIGKILL', signal })
  const stderr: Buffer[] = []
  child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', (error) =>
      reject(new HostCommandError(`cannot run ${path}: ${error.message}`, error)),
    )
    child.once('close', (exitCode) => resolve(exitCode))
  })
  // Awaited only once all output was read.
  ended.catch(() => undefined)
  try {
    for await (const chunk of child.stdout) if (Buffer.isBuffer(chunk)) yield chunk
    const exitCode = await ended
    if (exitCode !== 0) throw new HostCommandError(`${path} failed: ${text(stderr).trim().slice(-2000)}`)
  } finally {
    child.kill('SIGKILL')
  }
}

/** Runs a host program and returns its standard output; a non-zero exit is a HostCommandError. */
export async function commandOutput(
  path: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const result = await runCommand(path, args, options)
  if (result.exitCode === 0) return result.stdout
  const said = (result.stderr.trim() || result.stdout.trim()).slice(-2000)
  const how = result.exitCode === null ? 'was killed' : `exited with ${result.exitCode}`
  throw new HostCommandError(`${path} ${args.join(' ')} ${how}${said === '' ? '' : `: ${said}`}`)
}

/** Errors of a program that closed its input, or has ended. */
const endCodes: readonly (string | undefined)[] = ['EPIPE', 'ECONNRESET', 'ERR_STREAM_PREMATURE_CLOSE']

function feed(from: Readable, to: Writable, onError: (error: unknown) => void): void {
  pipeline(from, to, (error) => {
    if (error !== undefined && error !== null && !endCodes.includes(errorCode(error))) onError(error)
  })
}

function text(chunks: readonly Buffer[]): string {
  return Buffer.concat(chunks).toString('utf8')
}
