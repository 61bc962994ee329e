import { spawn } from 'node:child_process'
import type { Clock } from '../base/clock.ts'
import { HostCommandError } from './run-command.ts'

/** The bounds and input of a program. */
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

const maxErrorBytes = 4096

/**
 * Runs a third-party program, without a shell, in a process group of its own. When it exceeds a bound the whole group
 * gets SIGKILL, without waiting for processes that still hold its output. Throws BoundedCommandError.
 */
export function runBounded(command: BoundedCommand, clock: Clock): Promise<BoundedOutput> {
  const { path, args, input, timeoutMs, maxOutputBytes } = command
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      env: { ...command.env },
    })
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    const [sizes, errors] = [{ stdout: 0, stderr: 0 }, () => Buffer.concat(stderr).toString('utf8')]
    const timer = clock.startTimer(timeoutMs, () => end(`did not end within ${timeoutMs / 1000} s`))
    const fail = (message: string, cause?: unknown): void => {
      timer.cancel()
      reject(new BoundedCommandError(`${path} ${message}`, errors(), cause))
    }
    function end(message: string): void {
      // Kills what it has started, too.
      if (child.pid !== undefined) killGroup(child.pid)
      for (const stream of [child.stdin, child.stdout, child.stderr]) stream?.destroy()
      fail(message)
    }
    child.on('error', (error) => fail(`cannot be run: ${error.message}`, error))
    child.stdout?.on('data', (chunk: Buffer) => {
      sizes.stdout += chunk.byteLength
      if (sizes.stdout > maxOutputBytes) end(`wrote more than ${maxOutputBytes} bytes`)
      else stdout.push(chunk)
    })
    child.stderr?.on('data', (chunk: Buffer) => {
      const rest = maxErrorBytes - sizes.stderr
      if (rest > 0) stderr.push(chunk.subarray(0, rest))
      sizes.stderr += chunk.byteLength
    })
    child.on('close', (exitCode, signal) => {
      if (exitCode !== 0)
        return fail(exitCode === null ? `was ended by ${signal}` : `exited with ${exitCode}`)
      timer.cancel()
      resolve({ stdout: Buffer.concat(stdout).toString('utf8'), stderr: errors() })
    })
    // A program may end without reading its input.
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(input)
  })
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}
