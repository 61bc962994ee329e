import { HostCommandError, runCommand } from './run-command.ts'

/** systemd, where it runs podd as a service of `Type=notify` (`sd_notify(3)`, `sd_watchdog_enabled(3)`). */
export interface ServiceManager {
  /** The watchdog's timeout; undefined without a watchdog. */
  readonly watchdogMs: number | undefined
  /** The environment that a process replacing this one needs. */
  readonly environment: Readonly<Record<string, string>>
  /**
   * Sends a notification, such as `READY=1` or `STATUS=…`. Node has no unix datagram sockets, so each call runs
   * `systemd-notify`, which ends when systemd has received it. Throws HostCommandError.
   */
  notify(...assignments: readonly string[]): Promise<void>
}

type Environment = Record<string, string | undefined>

const names = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID'] as const
/** More than the five seconds that systemd-notify itself waits, as a slow board may take long to start it. */
const notifyMs = 25_000

/** Extends the timeout of a start or stop to at least this long from now (`sd_notify(3)`). */
export function extendTimeout(ms: number): string {
  return `EXTEND_TIMEOUT_USEC=${Math.ceil(ms * 1000)}`
}

/**
 * Undefined where no service manager supervises this process. Removes its variables from `env`, so that no child of
 * podd inherits them.
 */
export function takeServiceManager(env: Environment, pid: number): ServiceManager | undefined {
  const environment: Record<string, string> = {}
  for (const name of names) {
    const value = env[name]
    if (value !== undefined) environment[name] = value
    delete env[name]
  }
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: microseconds, WATCHDOG_PID: watched } = environment
  if (socket === undefined || socket === '') return undefined
  const watchdogMs = Number(microseconds) / 1000
  const isWatched = watchdogMs > 0 && (watched === undefined || watched === String(pid))
  return {
    watchdogMs: isWatched ? watchdogMs : undefined,
    environment,
    async notify(...assignments) {
      // A line break would begin another assignment: a status may hold what the runtime said.
      const lines = assignments.map((text) => text.replaceAll(/\s+/gu, ' '))
      const { exitCode, stderr } = await runCommand('systemd-notify', lines, {
        timeoutMs: notifyMs,
        env: { PATH: env['PATH'] ?? '/usr/bin:/bin', NOTIFY_SOCKET: socket },
      })
      if (exitCode !== 0)
        throw new HostCommandError(`systemd-notify failed: ${stderr.trim() || `exit code ${exitCode}`}`)
    },
  }
}
