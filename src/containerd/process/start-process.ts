import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { poddUmask } from '../../base/umask.ts'
import { isAlive, processAgeMs, readDiskBytes, readProcessorTicks, readUmask } from '../../host/processes.ts'
import type { HostProcess } from '../../host/processes.ts'
import { criAnswers } from './cri-answers.ts'
import { boundContainerdLog, parseLogErrors, readLogFrom, sizeOf } from './containerd-log.ts'
import type { ContainerdPlaces } from './containerd-places.ts'
import { endContainerd, findContainerd, launchContainerd, readUnitLog } from './containerd-process.ts'
import type { LaunchMode } from './containerd-process.ts'
import { EmbeddedContainerdError } from './embedded-containerd-error.ts'
import { StartPatience } from './start-patience.ts'
import type { ProcessWork } from './start-patience.ts'
import { canConnect } from './unix-socket.ts'

/** The places of an embedded containerd, and how it is started. */
export interface ContainerdHome {
  readonly places: ContainerdPlaces
  readonly mode: LaunchMode
  readonly clock: Clock
  readonly logger: Logger
  /** How long a working one may take to start; shared by all starts of this podd. */
  readonly longestStart: LongestStart
  /** Called when one is ended so that another takes its place. */
  readonly onRestart: (reason: string) => void
}

/** Grows each time that it was not enough, so that a containerd on a slow disk isn't restarted forever. */
export class LongestStart {
  #ms = longestStartMs

  get ms(): number {
    return this.#ms
  }

  grow(): void {
    this.#ms = Math.min(2 * this.#ms, longestOfAllMs)
  }
}

/** How long a started one may take to answer; longer while it is working (StartPatience). */
const startTimeoutMs = 60_000
const longestStartMs = 600_000
const longestOfAllMs = 4 * 3_600_000
/** The longest interval between two looks at a starting one. */
const longestRestMs = 1000
/** How long systemd may take to start the process. */
const unitPatienceMs = 5_000
/** The time within which a running one must answer to be adopted; it may have just been started. */
const adoptTimeoutMs = 10_000
const longestAdoptMs = 120_000
/** The deadline of one answer; the first one takes a while on a slow board. */
const answerTimeoutMs = 5_000

/**
 * Returns the containerd that runs and answers. Ends one that can't be used, whose config has changed, or that was
 * started under another umask than podd's. Under systemd the umask is the unit's, which a restart would not change.
 *
 * @param how.isKept whether it must not be ended, as no other could take its place
 * @throws EmbeddedContainerdError where one that must be kept does not answer
 */
export async function adoptContainerd(
  home: ContainerdHome,
  { configChanged, isKept }: { readonly configChanged: boolean; readonly isKept: boolean },
): Promise<HostProcess | undefined> {
  const found = findContainerd(home.places)
  if (found === undefined) return undefined
  if (isKept) {
    if (await answersSoon(home, found)) return found
    throw new EmbeddedContainerdError(`containerd (pid ${found.pid}) does not answer`)
  }
  const reason = await whyRestart(home, found, configChanged)
  if (reason === undefined) return found
  home.logger.warn({ id: String(found.pid), reason }, 'restarting containerd')
  home.onRestart(reason)
  await endContainerd(found, home)
  return undefined
}

async function whyRestart(
  home: ContainerdHome,
  found: HostProcess,
  configChanged: boolean,
): Promise<string | undefined> {
  if (configChanged) return 'its config has changed'
  const umask = readUmask(found.pid)
  const isOff = umask !== undefined && umask !== poddUmask
  if (isOff && home.mode === 'detached') return `its umask is ${formatUmask(umask)}`
  if (!(await answersSoon(home, found))) return 'it does not answer'
  if (isOff) {
    home.logger.warn(
      { id: String(found.pid), reason: formatUmask(umask) },
      "containerd's unit has another UMask than 0022: users other than root may have no access to directories that it creates",
    )
  }
  return undefined
}

function formatUmask(umask: number): string {
  return umask.toString(8).padStart(4, '0')
}

/**
 * Starts it, and resolves when CRI answers.
 * @throws EmbeddedContainerdError with containerd's own error; the signal's reason
 */
export async function startContainerd(
  home: ContainerdHome,
  containerdPath: string,
  signal?: AbortSignal,
): Promise<HostProcess> {
  const { places, mode, clock } = home
  await boundLog(home)
  const logOffset = sizeOf(places.logPath)
  await launchContainerd(containerdPath, places, mode)
  const startedMs = clock.monotonicMs()
  let first: HostProcess | undefined
  const patience = new StartPatience({ clock, quietMs: startTimeoutMs, longestMs: home.longestStart.ms })
  for (;;) {
    const lookedMs = clock.monotonicMs()
    const process = findContainerd(places)
    // Listing all processes takes time that containerd needs on a slow board.
    const restMs = Math.min(longestRestMs, Math.max(20, 4 * (clock.monotonicMs() - lookedMs)))
    if (process !== undefined && (await answers(home))) return process
    first ??= process
    // systemd takes a moment to start the process, and restarts one that exited.
    const patienceMs = mode === 'systemd' && first === undefined ? unitPatienceMs : 0
    const isGone = process?.pid !== first?.pid || first === undefined
    if (isGone && clock.monotonicMs() - startedMs >= patienceMs) break
    if (patience.isOver(workOf(process))) {
      if (patience.wasBusy) home.longestStart.grow()
      break
    }
    await clock.sleep(restMs, signal)
  }
  const log = mode === 'systemd' ? await readUnitLog(places) : readLogFrom(places.logPath, logOffset)
  const said = parseLogErrors(log).join('; ')
  throw new EmbeddedContainerdError(`containerd does not start${said === '' ? '' : `: ${said}`}`, {
    hint:
      mode === 'systemd'
        ? `See all it said with: journalctl -u ${places.unitName}`
        : `Its log is ${places.logPath}; \`podd doctor\` checks what it needs.`,
  })
}

/** Bounds containerd's log; a failure is only logged, as containerd matters more. */
export async function boundLog({ places: { logPath }, logger }: ContainerdHome): Promise<void> {
  await boundContainerdLog(logPath).catch((error: unknown) =>
    logger.warn({ err: error, path: logPath }, "cannot bound containerd's log"),
  )
}

/**
 * systemd or an earlier podd may have just started it: then it has the time of a starting one. One that has run longer
 * has answered before, and will not recover.
 */
async function answersSoon(home: ContainerdHome, process: HostProcess): Promise<boolean> {
  const { clock, longestStart } = home
  const longestMs = Math.max(longestAdoptMs, longestStart.ms - processAgeMs(process))
  const patience = new StartPatience({ clock, quietMs: adoptTimeoutMs, longestMs })
  while (isAlive(process)) {
    if (await answers(home)) return true
    if (patience.isOver(workOf(process))) {
      if (patience.wasBusy) longestStart.grow()
      return false
    }
    await clock.sleep(20)
  }
  return false
}

function workOf(process: HostProcess | undefined): ProcessWork {
  if (process === undefined) return { ticks: undefined, diskBytes: undefined }
  return { ticks: readProcessorTicks(process.pid), diskBytes: readDiskBytes(process.pid) }
}

/** grpc-js waits a second after a refused connection, so the socket is tried first. */
async function answers({ places: { socketPath }, clock }: ContainerdHome): Promise<boolean> {
  return (await canConnect(socketPath)) && (await criAnswers(socketPath, clock, answerTimeoutMs))
}
