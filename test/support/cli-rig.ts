import { Writable } from 'node:stream'
import { systemClock } from '../../src/base/clock.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { DaemonActions } from '../../src/cli/arguments/verb.ts'
import type { UsualPlaces } from '../../src/config/places.ts'
import { runCli } from '../../src/cli/run-cli.ts'

/** What a command line gave. */
export interface CliOutcome {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface CliCall extends Disposable {
  readonly outcome: Promise<CliOutcome>
  /** What it has written so far. */
  readonly stdout: () => string
  readonly stderr: () => string
  /** As Ctrl-C does. */
  interrupt(): void
}

export interface CliOptions {
  readonly daemon?: Partial<DaemonActions>
  readonly env?: Readonly<Record<string, string>>
  readonly stdin?: string | AsyncIterable<string>
  /** The reader goes away after so many bytes. */
  readonly closeAfterBytes?: number
  /** Standard output is a terminal. */
  readonly isTerminal?: boolean
  /** Where a podd usually is; nowhere unless told. */
  readonly usual?: UsualPlaces
  /** The system's unless given. */
  readonly clock?: Clock
}

/** The host may have a podd where one usually is. */
const nowhere: UsualPlaces = { configPath: '/nonexistent/config.yaml', runDir: '/nonexistent/run' }

/** Begins a command line in this process, with its own streams. */
export function startCli(argv: readonly string[], options: CliOptions = {}): CliCall {
  const interrupt = new AbortController()
  const written = { stdout: '', stderr: '' }
  const sink = (name: 'stdout' | 'stderr', limitBytes = Number.POSITIVE_INFINITY): Writable =>
    new Writable({
      write(chunk: Buffer, _encoding, done) {
        written[name] += chunk.toString()
        const isClosed = written[name].length > limitBytes
        done(isClosed ? Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }) : undefined)
      },
    })
  const missing = (): Promise<never> => Promise.reject(new Error('the test gave no such function'))
  const outcome = runCli(
    argv,
    { startDaemon: missing, down: missing, doctor: missing, ...options.daemon },
    {
      stdout: Object.assign(
        sink('stdout', options.closeAfterBytes),
        options.isTerminal === true && { isTTY: true },
      ),
      stderr: sink('stderr'),
      stdin: streamOf(options.stdin ?? ''),
      env: options.env ?? {},
      usual: options.usual ?? nowhere,
      clock: options.clock ?? systemClock,
      onInterrupt: () => interrupt.signal,
    },
  ).then((exitCode) => ({ exitCode, ...written }))
  return {
    outcome,
    stdout: () => written.stdout,
    stderr: () => written.stderr,
    interrupt: () => interrupt.abort(),
    [Symbol.dispose]: () => interrupt.abort(),
  }
}

export function callCli(argv: readonly string[], options: CliOptions = {}): Promise<CliOutcome> {
  return startCli(argv, options).outcome
}

async function* streamOf(given: string | AsyncIterable<string>): AsyncGenerator<string> {
  if (typeof given === 'string') yield given
  else yield* given
}
