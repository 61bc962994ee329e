import { HostCommandError, runCommand } from './run-command.ts'

/** systemd, where it runs podd as a service of `Type=notify` (`sd_notify(3)`, `sd_watchdog_enabled(3)`). */
export interface ServiceManager {
  /** Within this time it wants a sign of life; undefined where it wants none. */
  readonly watchdogMs: number | undefined
  /** What a process that replaces this one has to find in its environment. */
  readonly environment: Readonly<Record<string, string>>
  /**
   * Tells it something, as `READY=1` or `STATUS=…`. Node has no datagram sockets of the local kind, so each call is a
   * process, `systemd-notify`, which ends when systemd has taken it. Throws HostCommandError.
   */
  notify(...assignments: readonly string[]): Promise<void>
}

type Environment = Record<string, string | undefined>

const names = ['NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID'] as const
/** Beyond the five seconds that systemd-notify waits by itself: how long a slow board may take to start it. */
const notifyMs = 25_000

/** Has systemd wait for a start or an end for so long from now, at least (`sd_notify(3)`). */
export function extendTimeout(ms: number): string {
  return `EXTEND_TIMEOUT_USEC=${Math.ceil(ms * 1000)}`
}

/** Undefined where no service manager waits for word of this process. What it set goes from `env`: no child of podd is the service. */
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
      const { exitCode, stderr } = await runCommand('systemd-notify', assignments, {
        timeoutMs: notifyMs,
        env: { PATH: env['PATH'] ?? '/usr/bin:/bin', NOTIFY_SOCKET: socket },
      })
      if (exitCode !== 0)
        throw new HostCommandError(`systemd-notify failed: ${stderr.trim() || `exit code ${exitCode}`}`)
    },
  }
}
