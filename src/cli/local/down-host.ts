import { realpath } from 'node:fs/promises'
import { systemClock } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode, errorMessage, PoddError } from '../../base/errors.ts'
import { silentLogger } from '../../base/logger.ts'
import type { PoddConfig } from '../../config/options.ts'
import { apiSocketPath } from '../../config/places.ts'
import { assemblePods } from '../../control/assemble.ts'
import { mountsBelow, readMounts, unmount } from '../../host/mounts.ts'
import { readProcess, signalProcess, waitForExit } from '../../host/processes.ts'
import type { HostProcess } from '../../host/processes.ts'
import { runCommand } from '../../host/run-command.ts'
import { removeEmbeddedContainerd } from '../../runtime/remove-embedded.ts'
import { findLockHolder } from '../../server/http/listen.ts'
import type { DownRequest, DownResult } from '../arguments/verb.ts'
import { askStatus } from '../client/client.ts'

/**
 * Ends everything of one podd: the daemon, if it runs, then all pods with their grace, then the embedded containerd and
 * what it left on the host. Failures are reported, not thrown; where nothing may be done at all, it throws PoddError
 * ROOT_NEEDED, DAEMON_STUCK or DAEMON_UNKNOWN.
 */
export async function downHost(request: DownRequest, isRoot = process.getuid?.() === 0): Promise<DownResult> {
  if (!isRoot) {
    throw new PoddError(
      'ROOT_NEEDED',
      '`podd down` kills processes and unmounts file systems, which only root may',
      {
        hint: 'Try again with sudo.',
      },
    )
  }
  const { config, signal, report } = request
  const leftovers: string[] = []
  await endDaemon(request, systemClock)
  let podsStopped = 0
  try {
    const ended = await endPods(request, systemClock)
    podsStopped = ended.podsStopped
    leftovers.push(...ended.leftovers)
  } catch (error) {
    signal.throwIfAborted()
    leftovers.push(`pods: ${errorMessage(error)}`)
  }
  /** Containers keep their mounts. */
  let mayRun = leftovers.length > 0
  if (config.containerRuntimeEndpoint === 'embedded') {
    report('ending containerd')
    try {
      await removeEmbeddedContainerd({ rootDir: config.rootDir, runDir: config.runDir, clock: systemClock })
      mayRun = false
    } catch (error) {
      leftovers.push(errorMessage(error))
    }
  }
  if (!mayRun) leftovers.push(...(await unmountVolumes(config.rootDir)))
  return { podsStopped, leftovers }
}

/**
 * Unmounts volumes that pods killed now or in an earlier call have left in their directories: removing podd's root
 * directory would otherwise delete the host's own files through them. Returns the remaining ones.
 */
async function unmountVolumes(rootDir: string): Promise<readonly string[]> {
  try {
    // Mount tables know real paths only.
    const directory = await realpath(`${rootDir}/pods`)
    const left = (): readonly string[] =>
      mountsBelow(directory, readMounts()).filter((path) => path !== directory)
    // What is still mounted afterwards is reported.
    for (const path of left()) await unmount(path).catch(() => undefined)
    return left().map((path) => `${path} is still mounted`)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return []
    return [`volumes of pods: ${errorMessage(error)}`]
  }
}

async function endPods(
  { config, graceSeconds, removesEnded, signal, report }: DownRequest,
  clock: Clock,
): Promise<DownResult> {
  const { runtime, pods, removeCgroups } = assemblePods({ config, sources: [], clock, logger: silentLogger })
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  try {
    if (!(await runtime.isThere(until))) return { podsStopped: 0, leftovers: await removeCgroups() }
    report('ending pods')
    const watching = runtime.watch((problem) => pods.reportRuntime(problem), until)
    const running = Promise.all([pods.run(until), watching])
    const ending = pods.endAll({ graceSeconds, removesEnded, signal: until })
    // An error that stops the loops also keeps the pods from terminating.
    const { ended, stuck } = await Promise.race([ending, running.then(() => ending)])
    stop.abort(new PoddError('STOPPED', 'all pods have ended'))
    await running
    const left = stuck.map((key) => `pod ${key} would not end in time`)
    return { podsStopped: ended, leftovers: [...left, ...(await removeCgroups())] }
  } finally {
    stop.abort(new PoddError('STOPPED', 'podd down is done'))
    runtime.close()
  }
}

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
  if (socketPath !== undefined) await refuseOther(socketPath, daemon, config, signal, clock)
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
  { runDir }: PoddConfig,
  signal: AbortSignal,
  clock: Clock,
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
    `the podd that answers at ${socketPath} is not the one that works in ${runDir}`,
    { hint: 'Run `podd down` where that podd runs, maybe in a container.' },
  )
}

/** Whether a failed call means that there is no daemon, or no longer. */
function isNobody(error: unknown): boolean {
  return ['DAEMON_NOT_RUNNING', 'DAEMON_GONE'].includes(errorCode(error) ?? '')
}
