import type { Clock } from '../../base/clock.ts'
import { PoddError, errorCode } from '../../base/errors.ts'
import type { PoddConfig } from '../../config/options.ts'
import { apiSocketPath } from '../../config/places.ts'
import { readProcess, signalProcess, waitForExit } from '../../host/processes.ts'
import type { HostProcess } from '../../host/processes.ts'
import { runCommand } from '../../host/run-command.ts'
import { findLockHolder } from '../../server/http/listen.ts'
import { askStatus } from '../client/ask-status.ts'
import type { DownRequest } from '../arguments/deps.ts'

/** How long a daemon may take to stop; its pods keep running. */
const daemonEndMs = 15_000

/**
 * Ends the daemon, if one runs, as it would start the pods again. A systemd service is stopped through systemd, which
 * would restart it.
 *
 * @throws PoddError DAEMON_STUCK, DAEMON_UNKNOWN
 */
export async function endDaemon(
  { config, socketPath, signal, report }: Omit<DownRequest, 'graceSeconds'>,
  clock: Clock,
): Promise<void> {
  const daemon = await findDaemon(config, signal, clock)
  if (socketPath !== undefined) await refuseOther(socketPath, daemon, { config, signal, clock })
  if (daemon === undefined) return
  const { pid } = daemon
  report(`ending the daemon (pid ${pid})`)
  // On a host without systemd the daemon gets the signal itself.
  const unit = await runCommand('systemctl', ['show', '--property=MainPID', '--value', 'podd.service']).catch(
    () => undefined,
  )
  if (unit?.stdout.trim() === String(pid)) await runCommand('systemctl', ['stop', 'podd.service'])
  else signalProcess(daemon, 'SIGTERM')
  if (await waitForExit(daemon, daemonEndMs, clock)) return
  throw new PoddError('DAEMON_STUCK', `the daemon (pid ${pid}) does not end`, {
    hint: `End it with \`kill -9 ${pid}\` and run \`podd down\` again.`,
  })
}

/** The daemon that answers; else the one that holds the directories, whatever the state of its socket. */
async function findDaemon(
  { rootDir, runDir }: PoddConfig,
  signal: AbortSignal,
  clock: Clock,
): Promise<HostProcess | undefined> {
  try {
    return readProcess((await askStatus(apiSocketPath(runDir), signal, clock)).pid)
  } catch (error) {
    signal.throwIfAborted()
    const holder = findLockHolder(rootDir) ?? findLockHolder(runDir)
    if (holder !== undefined || isNobody(error)) return holder
    const socketPath = apiSocketPath(runDir)
    throw new PoddError(
      'DAEMON_UNKNOWN',
      `${socketPath} is in use, and the process that uses it cannot be determined`,
      { cause: error, hint: `\`fuser ${socketPath}\` names it. End it and run \`podd down\` again.` },
    )
  }
}

/** A process that answers at the socket may be in a container, with other places of the same names. */
async function refuseOther(
  socketPath: string,
  found: HostProcess | undefined,
  {
    config,
    signal,
    clock,
  }: { readonly config: PoddConfig; readonly signal: AbortSignal; readonly clock: Clock },
): Promise<void> {
  try {
    if ((await askStatus(socketPath, signal, clock)).pid === found?.pid) return
  } catch (error) {
    signal.throwIfAborted()
    if (isNobody(error)) return
    throw error
  }
  throw new PoddError(
    'DAEMON_UNKNOWN',
    `the podd that answers at ${socketPath} is not the one that works in ${config.runDir}`,
    { hint: 'Run `podd down` where that podd runs, maybe in a container.' },
  )
}

/** Whether a failed call means that there is no daemon, or no longer. */
function isNobody(error: unknown): boolean {
  return ['DAEMON_NOT_RUNNING', 'DAEMON_GONE'].includes(errorCode(error) ?? '')
}
