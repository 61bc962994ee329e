import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { poddVersion } from '../api/version.ts'
import { writeFileAtomicSync } from '../base/atomic-file.ts'
import type { Clock, Timer } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { crashDirectory, listCrashReports } from '../store/crash-reports.ts'
import type { CrashReport } from '../store/crash-reports.ts'
import { keepFatalReports } from './fatal-reports.ts'

export interface CrashGuardOptions {
  readonly rootDir: string
  readonly clock: Clock
  readonly logger: Logger
  /** Replaces the process by a new one of the same program and arguments; throws where it can't. */
  readonly replaceProcess: (memoryRestarts: number) => void
  /** A restart is put off by so many milliseconds: whoever waits for a sign of life gets one. */
  readonly onDelay: (delayMs: number) => void
  /** What the daemon knows of itself, for the report; may throw. */
  readonly describe: () => Readonly<Record<string, unknown>>
}

/** How many reports are kept. */
const mostReports = 10
/** So many crashes within the window are followed by an immediate start; after more, podd waits. */
const freeCrashes = 3
const windowMs = 600_000
const waitMs = 60_000
/** How long the loops may take to stop after a crash. */
const letGoMs = 10_000
/** Exit code where the process can't be replaced: EX_SOFTWARE, for a supervisor that starts it again. */
const crashedExitCode = 70

/**
 * Handles unhandled errors: podd's state is unknown after one, so the daemon writes a crash report, leaves the pods
 * running, and restarts in the same process. It restarts at once after the first crashes, and after a minute after
 * further ones within ten minutes.
 */
export class CrashGuard {
  readonly #options: CrashGuardOptions
  #crashed = false
  #isReported = false
  /** A restart for the memory that podd takes: the how manieth in a row. */
  #renewal: number | undefined
  #isStopping = false
  /** Until it fires, the loops are stopping. */
  #patience: Timer | undefined

  constructor(options: CrashGuardOptions) {
    this.#options = options
  }

  /** Has failures of Node itself reported, and removes the oldest reports. Never throws. */
  begin(startedAtMs: number): void {
    const { rootDir, logger } = this.#options
    try {
      keepFatalReports(rootDir, startedAtMs)
      this.#removeReports(mostReports)
    } catch (error) {
      logger.error({ err: error, path: crashDirectory(rootDir) }, 'cannot keep crash reports')
    }
  }

  /** From now on, `letGo` is called at the first unhandled error; then `restart` is to be called where `mustRestart` says so, in ten seconds at the latest. */
  watch(letGo: (error: unknown) => void): void {
    const onError = (error: unknown, origin: string): void => {
      if (this.crash(error, origin)) letGo(error)
    }
    process.on('unhandledRejection', (error) => onError(error, 'unhandledRejection'))
    process.on('uncaughtException', onError)
  }

  /** Records an error after which podd's state is unknown: `restart` is to be called as above. False where it has crashed already. */
  crash(error: unknown, origin: string): boolean {
    const { clock, logger } = this.#options
    logger.error({ err: error, reason: origin }, 'unhandled error, restarting podd')
    if (this.#crashed) return false
    this.#crashed = true
    this.#isReported = this.#writeReport(error, origin)
    this.#patience?.cancel()
    this.#patience = clock.startTimer(letGoMs, () => void this.#giveUp())
    return true
  }

  /** The daemon was told to stop: it doesn't restart, whatever goes wrong meanwhile. */
  noteStop(): void {
    this.#isStopping = true
  }

  /** podd takes too much memory, or must restart for another reason: it restarts without a crash. `letGo` as with `watch`. */
  renew(memoryRestarts: number, letGo: () => void): void {
    if (this.#crashed || this.#renewal !== undefined || this.#isStopping) return
    this.#renewal = memoryRestarts
    this.#patience = this.#options.clock.startTimer(letGoMs, () => void this.#giveUp())
    letGo()
  }

  get mustRestart(): boolean {
    return (this.#crashed || this.#renewal !== undefined) && !this.#isStopping
  }

  get hasCrashed(): boolean {
    return this.#crashed
  }

  /** Stopping the loops takes too long. */
  async #giveUp(): Promise<void> {
    process.exit(this.mustRestart ? await this.restart() : 0)
  }

  /** The reports that are kept, oldest first. */
  reports(): readonly CrashReport[] {
    return listCrashReports(this.#options.rootDir)
  }

  /** Replaces the process, at once or after a minute. Gives the exit code where it can't be replaced. */
  async restart(): Promise<number> {
    this.#patience?.cancel()
    const { clock, logger, replaceProcess, onDelay } = this.#options
    const sinceMs = clock.wallMs() - windowMs
    // Those of the future date from before the clock was set back.
    const recent = this.reports().filter(({ atMs }) => atMs > sinceMs && atMs <= clock.wallMs())
    // Where reports can't be written nothing tells how often it crashes.
    if (this.#crashed && (recent.length > freeCrashes || !this.#isReported)) {
      logger.error(
        { count: recent.length, durationMs: waitMs },
        'podd crashes repeatedly, delaying the restart',
      )
      onDelay(waitMs)
      process.once('SIGTERM', () => process.exit(0))
      process.once('SIGINT', () => process.exit(0))
      await clock.sleep(waitMs)
    }
    try {
      replaceProcess(this.#crashed ? 0 : (this.#renewal ?? 0))
    } catch (error) {
      logger.error({ err: error }, 'podd cannot restart itself')
    }
    return crashedExitCode
  }

  /** All but the newest `most`, beside the one of `atMs`. */
  #removeReports(most: number, atMs?: number): void {
    const others = this.reports().filter((report) => report.atMs !== atMs)
    for (const { path } of others.slice(0, -most)) rmSync(path, { force: true })
  }

  /** Never throws: on a full disk the log alone tells. */
  #writeReport(error: unknown, origin: string): boolean {
    const { rootDir, clock, logger, describe } = this.#options
    const directory = crashDirectory(rootDir)
    const atMs = clock.wallMs()
    const report = {
      time: new Date(atMs).toISOString(),
      version: poddVersion,
      node: process.versions.node,
      origin,
      uptimeSeconds: Math.round(process.uptime()),
      memory: process.memoryUsage(),
      state: attempt(describe),
      errors: causesOf(error),
    }
    try {
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      // Older ones make room.
      this.#removeReports(mostReports - 1, atMs)
      writeFileAtomicSync(join(directory, `${atMs}.json`), `${JSON.stringify(report, undefined, 2)}\n`)
      return true
    } catch (failure) {
      logger.error({ err: failure, path: directory }, 'cannot write the crash report')
      return false
    }
  }
}

/** The error and what caused it, outermost first. */
function causesOf(
  error: unknown,
  most = 5,
): readonly { readonly message: string; readonly stack?: string }[] {
  if (most === 0 || error === undefined) return []
  if (!(error instanceof Error)) return [{ message: shorten(errorMessage(error)) }]
  const { message, stack, cause } = error
  const shown = shorten(message)
  return [
    { message: shown, ...(stack === undefined ? {} : { stack: shorten(stack) }) },
    ...causesOf(cause, most - 1),
  ]
}

/** So much of a text stands in a report: a page is read, and a message may hold a whole manifest. */
const mostCharacters = 1500

function shorten(text: string): string {
  return text.length <= mostCharacters ? text : `${text.slice(0, mostCharacters)}…`
}

/** What is told where even that fails: podd's state is unknown. */
function attempt(describe: () => Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  try {
    return describe()
  } catch (error) {
    return { unknown: errorMessage(error) }
  }
}
