import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { poddVersion } from '../api/resource.ts'
import { writeFileAtomicSync } from '../base/atomic-file.ts'
import type { Clock, Timer } from '../base/clock.ts'
import { errorMessage } from '../base/errors.ts'
import type { Logger } from '../base/logger.ts'
import { crashDirectory, listCrashReports } from '../store/reports.ts'
import type { CrashReport } from '../store/reports.ts'

/** What podd's end and its new start take. */
interface CrashGuardEnv {
  readonly rootDir: string
  readonly clock: Clock
  readonly logger: Logger
  /** Replaces the process by a new one of the same program and arguments; throws where it can't. */
  readonly replaceProcess: (memoryRestarts: number) => void
  /** Called when a restart is delayed by this many milliseconds, to extend the watchdog. */
  readonly onDelay: (delayMs: number) => void
  /** The daemon's state, for the report; may throw. */
  readonly describe: () => Readonly<Record<string, unknown>>
}

/** How many reports are kept. */
const maxReports = 10
/** After this many crashes within the window podd restarts at once; after more, it waits. */
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
  readonly #env: CrashGuardEnv
  #crashed = false
  #isReported = false
  /** The number of consecutive restarts for podd's memory. */
  #renewal: number | undefined
  #isStopping = false
  /** Bounds the time in which the loops stop. */
  #patience: Timer | undefined

  constructor(env: CrashGuardEnv) {
    this.#env = env
  }

  /** Enables reports of fatal errors in Node, and removes the oldest reports. Never throws. */
  begin(startedAtMs: number): void {
    const { rootDir, logger } = this.#env
    try {
      keepFatalReports(rootDir, startedAtMs)
      this.#removeReports(maxReports)
    } catch (error) {
      logger.error({ err: error, path: crashDirectory(rootDir) }, 'cannot keep crash reports')
    }
  }

  /**
   * Begins to watch: `letGo` is called at the first unhandled error; then the caller has to call `restart` where
   * `mustRestart` is true, within ten seconds.
   */
  watch(letGo: (error: unknown) => void): void {
    const onError = (error: unknown, origin: string): void => {
      if (this.crash(error, origin)) letGo(error)
    }
    process.on('unhandledRejection', (error) => onError(error, 'unhandledRejection'))
    process.on('uncaughtException', onError)
  }

  /**
   * Records an error after which podd's state is unknown: the caller has to call `restart` as above. Returns false
   * where podd has crashed already.
   */
  crash(error: unknown, origin: string): boolean {
    const { clock, logger } = this.#env
    logger.error({ err: error, reason: origin }, 'unhandled error, restarting podd')
    if (this.#crashed) return false
    this.#crashed = true
    this.#isReported = this.#writeReport(error, origin)
    this.#patience?.cancel()
    this.#patience = clock.startTimer(letGoMs, () => void this.#giveUp())
    return true
  }

  /** The daemon is stopping on request: it doesn't restart, whatever error occurs meanwhile. */
  noteStop(): void {
    this.#isStopping = true
  }

  /** Restarts without a crash: podd takes too much memory, or has another reason. `letGo` as with `watch`. */
  renew(memoryRestarts: number, letGo: () => void): void {
    if (this.#crashed || this.#renewal !== undefined || this.#isStopping) return
    this.#renewal = memoryRestarts
    this.#patience = this.#env.clock.startTimer(letGoMs, () => void this.#giveUp())
    letGo()
  }

  get mustRestart(): boolean {
    return (this.#crashed || this.#renewal !== undefined) && !this.#isStopping
  }

  get hasCrashed(): boolean {
    return this.#crashed
  }

  /** Restarts because stopping the loops takes too long. */
  async #giveUp(): Promise<void> {
    process.exit(this.mustRestart ? await this.restart() : 0)
  }

  reports(): readonly CrashReport[] {
    return listCrashReports(this.#env.rootDir)
  }

  /** Replaces the process, at once or after a minute. Returns the exit code where it can't be replaced. */
  async restart(): Promise<number> {
    this.#patience?.cancel()
    const { clock, logger, replaceProcess, onDelay } = this.#env
    const sinceMs = clock.wallMs() - windowMs
    // Reports of the future date from before the clock was set back.
    const recent = this.reports().filter(({ atMs }) => atMs > sinceMs && atMs <= clock.wallMs())
    // Where reports can't be written the number of crashes is unknown.
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

  /** Removes all but the newest `most`, keeping the one of `atMs`. */
  #removeReports(most: number, atMs?: number): void {
    const others = this.reports().filter((report) => report.atMs !== atMs)
    for (const { path } of others.slice(0, -most)) rmSync(path, { force: true })
  }

  /** Writes a report. Never throws: on a full disk there is only the log. */
  #writeReport(error: unknown, origin: string): boolean {
    const { rootDir, clock, logger, describe } = this.#env
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
      this.#removeReports(maxReports - 1, atMs)
      writeFileAtomicSync(join(directory, `${atMs}.json`), `${JSON.stringify(report, undefined, 2)}\n`)
      return true
    } catch (failure) {
      logger.error({ err: failure, path: directory }, 'cannot write the crash report')
      return false
    }
  }
}

/** The error and its causes, outermost first. */
function causesOf(
  error: unknown,
  most = 5,
): readonly { readonly message: string; readonly stack?: string }[] {
  if (most === 0 || error === undefined) return []
  if (!(error instanceof Error)) return [{ message: shorten(errorMessage(error)) }]
  const { message, stack, cause } = error
  const shown = shorten(message)
  return [
    { message: shown, ...(stack !== undefined && { stack: shorten(stack) }) },
    ...causesOf(cause, most - 1),
  ]
}

/** The longest text in a report: a message may contain a whole manifest. */
const maxCharacters = 1500

function shorten(text: string): string {
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters)}…`
}

/** The text used where formatting fails: podd's state is unknown. */
function attempt(describe: () => Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  try {
    return describe()
  } catch (error) {
    return { unknown: errorMessage(error) }
  }
}

/**
 * Has Node itself write a crash report for failures after which no code of podd's runs: V8 is out of memory, or fails.
 * Without the environment, which may hold secrets, and without host names, for which it would ask DNS. Throws the
 * system's error.
 */
export function keepFatalReports(rootDir: string, startedAtMs: number): void {
  const directory = crashDirectory(rootDir)
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  Object.assign(process.report, {
    directory,
    filename: `${startedAtMs}.json`,
    reportOnFatalError: true,
    compact: true,
    excludeEnv: true,
    excludeNetwork: true,
  })
}
