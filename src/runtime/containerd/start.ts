import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { copyFile, truncate } from 'node:fs/promises'
import { Status } from '@grpc/grpc-js/build/src/constants.js'
import { tryRemove } from '../../base/atomic-file.ts'
import { sleepUnlessAborted, startDeadline } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { poddUmask } from '../../base/umask.ts'
import { GrpcChannel } from '../../grpc/grpc-channel.ts'
import {
  isAlive,
  processAgeMs,
  readDiskBytes,
  readProcessorTicks,
  readProcessorWaitMs,
  readUmask,
} from '../../host/processes.ts'
import type { HostProcess } from '../../host/processes.ts'
import { watchNames } from '../../host/watch-names.ts'
import { removeDeletedBundles } from './leaks.ts'
import {
  canConnect,
  connectionEnd,
  EmbeddedContainerdError,
  endContainerd,
  findContainerd,
  isStillContainerd,
  launchContainerd,
  readUnitLog,
} from './process.ts'
import type { ContainerdPlaces, LaunchMode } from './process.ts'

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
/** How long a started process may be unseen: one that executes another program has no arguments for a moment. */
const launchPatienceMs = 500
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
  await removeDeletedBundles(places).catch((error: unknown) =>
    home.logger.warn(
      { err: error, path: places.stateDir },
      'cannot remove what containerd has left of shims',
    ),
  )
  const logOffset = sizeOf(places.logPath)
  await launchContainerd(containerdPath, places, mode)
  const startedMs = clock.monotonicMs()
  let first: HostProcess | undefined
  const patience = new StartPatience(clock, startTimeoutMs, home.longestStart.ms)
  for (;;) {
    const lookedMs = clock.monotonicMs()
    const process = findContainerd(places)
    // Listing all processes takes time that containerd needs on a slow board.
    const restMs = Math.min(longestRestMs, Math.max(20, 4 * (clock.monotonicMs() - lookedMs)))
    if (process !== undefined && (await answers(home))) return process
    first ??= process
    // systemd takes a moment to start the process, and restarts one that exited.
    const unseenMs = mode === 'systemd' ? unitPatienceMs : launchPatienceMs
    const patienceMs = first === undefined ? unseenMs : 0
    const isGone = process?.pid !== first?.pid || first === undefined
    if (isGone && clock.monotonicMs() - startedMs >= patienceMs) break
    if (patience.isOver(workOf(process?.pid))) {
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
async function boundLog({ places: { logPath }, logger }: ContainerdHome): Promise<void> {
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
  const patience = new StartPatience(clock, adoptTimeoutMs, longestMs)
  while (isAlive(process)) {
    if (await answers(home)) return true
    if (patience.isOver(workOf(process?.pid))) {
      if (patience.wasBusy) longestStart.grow()
      return false
    }
    await clock.sleep(20)
  }
  return false
}

export function workOf(pid: number | undefined): ProcessWork {
  if (pid === undefined) return { ticks: undefined, waitedMs: undefined, diskBytes: undefined }
  return { ticks: readProcessorTicks(pid), waitedMs: readProcessorWaitMs(pid), diskBytes: readDiskBytes(pid) }
}

/** Where nobody listens at the socket, no channel is made for the question. */
async function answers({ places: { socketPath }, clock }: ContainerdHome): Promise<boolean> {
  return (await canConnect(socketPath)) && (await criAnswers(socketPath, clock, answerTimeoutMs))
}

export interface WatchedContainerd {
  readonly pid: number
  /** Where its program is installed, where that is known. */
  readonly programPath: string | undefined
  /** The program has just been replaced. */
  readonly onProgramReplaced: () => Promise<void>
  /** The socket was removed or replaced, and has not come back: only clients that are connected already are served. */
  readonly onSocketLost: (how: 'removed' | 'replaced') => Promise<void>
}

const logCheckMs = 10 * 60_000
const socketPatienceMs = 1_000
/** A package manager replaces a program beside others. */
const programSettleMs = 2_000

/**
 * Watches a containerd that runs, its socket, its program and the size of its log. Resolves when the process has ended,
 * or the signal is aborted.
 */
export async function watchContainerd(
  home: ContainerdHome,
  watched: WatchedContainerd,
  signal: AbortSignal,
): Promise<void> {
  const ended = new AbortController()
  const whileWatched = AbortSignal.any([signal, ended.signal])
  watchSocket(home, watched, whileWatched)
  watchProgram(home, watched, whileWatched)
  try {
    await waitForEnd(home, watched.pid, signal)
  } finally {
    ended.abort()
  }
}

function watchSocket(
  { places, clock }: ContainerdHome,
  { pid, onSocketLost }: WatchedContainerd,
  signal: AbortSignal,
): void {
  const { socketPath } = places
  let own = identityOf(socketPath)
  const isThere = (): boolean => {
    const now = identityOf(socketPath)
    own ??= now
    return now !== undefined && now === own
  }
  let isAwaited = false
  const onHint = async (): Promise<void> => {
    if (isAwaited || isThere()) return
    isAwaited = true
    await sleepUnlessAborted(clock, socketPatienceMs, signal)
    // A containerd that ends or starts removes it too.
    if (!signal.aborted && !isThere() && isStillContainerd(pid, places))
      await onSocketLost(existsSync(socketPath) ? 'replaced' : 'removed')
    isAwaited = false
  }
  watchNames([socketPath], () => void onHint(), signal)
}

/** What tells a file from one that takes its place; undefined where there is none. */
function identityOf(path: string): string | undefined {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat && `${stat.ino} ${stat.birthtimeMs}`
}

function watchProgram(
  { clock }: ContainerdHome,
  { programPath, onProgramReplaced }: WatchedContainerd,
  signal: AbortSignal,
): void {
  let isSettling = false
  const onHint = async (): Promise<void> => {
    if (isSettling) return
    isSettling = true
    await sleepUnlessAborted(clock, programSettleMs, signal)
    isSettling = false
    if (!signal.aborted) await onProgramReplaced()
  }
  watchNames(programPath === undefined ? [] : [programPath], () => void onHint(), signal)
}

async function waitForEnd(home: ContainerdHome, pid: number, signal: AbortSignal): Promise<void> {
  const { clock, places } = home
  let logCheckedMs = clock.monotonicMs()
  while (!signal.aborted) {
    using logDue = startDeadline(clock, logCheckMs)
    await connectionEnd(places.socketPath, AbortSignal.any([signal, logDue.signal]))
    if (signal.aborted) return
    if (!isStillContainerd(pid, places) && findContainerd(places) === undefined) return
    if (clock.monotonicMs() - logCheckedMs >= logCheckMs) {
      logCheckedMs = clock.monotonicMs()
      await boundLog(home)
    }
    await sleepUnlessAborted(clock, 20, signal)
  }
}

/** The processor time that shows that a starting process is working: 50 ms. Timers alone take less within `quietMs`. */
const busyTicks = 5
/**
 * A process that had so much of one processor, or waited for it so long, is working, or would if it could. Of a containerd
 * that only answers podd the two are a tenth where the host has five times the work that it can do; of one that gets
 * a thousandth of a processor, three.
 */
const busyShare = 0.5
/** The least time from which that share is computed. */
const shareMs = 1000
const msPerTick = 10

/** The work of a process so far. */
interface ProcessWork {
  /** Processor time, in ticks; undefined where that can't be read. */
  readonly ticks: number | undefined
  /** For how many milliseconds its threads waited for a processor; undefined where that can't be read. */
  readonly waitedMs: number | undefined
  /** Read from disks; undefined where that can't be read. */
  readonly diskBytes: number | undefined
}

/**
 * How long podd waits for a containerd that does not answer. One that uses processor time or reads from the disk is
 * loading the records of its containers and snapshots, which takes minutes on a slow board or disk. One that waits for a
 * processor shares an overloaded host. Killing it would only make it begin again.
 */
export class StartPatience {
  readonly #clock: Pick<Clock, 'monotonicMs'>
  readonly #quietMs: number
  readonly #longestMs: number
  readonly #sinceMs: number
  #busyAtMs: number
  readonly #leastTicks: number
  #ticks: number | undefined
  #diskBytes: number | undefined
  /** The demand for processors, and when it was read. */
  #demand: { readonly ms: number; readonly atMs: number } | undefined

  /**
   * @param quietMs how long podd waits for one that does nothing
   * @param longestMs how long podd waits at most, whatever it does
   * @param leastTicks the processor time that shows that it is working
   */
  constructor(
    clock: Pick<Clock, 'monotonicMs'>,
    quietMs: number,
    longestMs: number,
    leastTicks: number = busyTicks,
  ) {
    this.#clock = clock
    this.#quietMs = quietMs
    this.#longestMs = longestMs
    this.#leastTicks = leastTicks
    this.#sinceMs = clock.monotonicMs()
    this.#busyAtMs = this.#sinceMs
  }

  /** Whether it was working until its time was over, so that more time may help. */
  get wasBusy(): boolean {
    return this.#clock.monotonicMs() - this.#busyAtMs < this.#quietMs
  }

  isOver({ ticks, waitedMs, diskBytes }: ProcessWork): boolean {
    const nowMs = this.#clock.monotonicMs()
    this.#ticks ??= ticks
    this.#diskBytes ??= diskBytes
    const hasRun = ticks !== undefined && this.#ticks !== undefined && ticks - this.#ticks >= this.#leastTicks
    const hasRead = diskBytes !== undefined && diskBytes !== this.#diskBytes
    if (hasRun) this.#ticks = ticks
    if (hasRead) this.#diskBytes = diskBytes
    const isStarved = this.#isStarved((ticks ?? 0) * msPerTick + (waitedMs ?? 0), nowMs)
    if (hasRun || hasRead || isStarved) this.#busyAtMs = nowMs
    return nowMs - this.#busyAtMs >= this.#quietMs || nowMs - this.#sinceMs >= this.#longestMs
  }

  #isStarved(demandMs: number, nowMs: number): boolean {
    this.#demand ??= { ms: demandMs, atMs: nowMs }
    const { ms, atMs } = this.#demand
    if (nowMs - atMs < shareMs) return false
    this.#demand = { ms: demandMs, atMs: nowMs }
    return demandMs - ms >= busyShare * (nowMs - atMs)
  }
}

/** How long one that answered before may be silent and do nothing; docs/OPERATIONS.md names both. */
const silentQuietMs = 60_000
const longestSilenceMs = 600_000

/**
 * Tells when a containerd that answered before and is silent has to be killed. One that hangs still uses some processor time,
 * for its timers and for calls that it takes and doesn't answer.
 */
export class SilentContainerd {
  readonly #workOf: (pid: number) => ProcessWork
  /** How long the last silence was that was noted, of whichever containerd. */
  #silentMs = 0
  /** The one that is silent, and how long the silence was when its own began. */
  #silent: { readonly pid: number; readonly sinceMs: number; patience: StartPatience } | undefined

  constructor(readWork: (pid: number) => ProcessWork) {
    this.#workOf = readWork
  }

  /**
   * @param silentMs how long nothing has answered now; it grows within a silence
   * @param pid the containerd that should answer; undefined where none runs, or it starts
   * @returns where it is to be killed now: for how many milliseconds it has been silent. One that SIGKILL doesn't end, as its
   * disk hangs, has the same time again until the next attempt.
   */
  note(silentMs: number, pid: number | undefined): number | undefined {
    const sinceMs = silentMs > this.#silentMs ? this.#silentMs : 0
    this.#silentMs = silentMs
    if (pid === undefined) {
      this.#silent = undefined
      return undefined
    }
    if (this.#silent?.pid !== pid || sinceMs === 0)
      this.#silent = { pid, sinceMs, patience: this.#patience(sinceMs) }
    if (!this.#silent.patience.isOver(this.#workOf(pid))) return undefined
    this.#silent.patience = this.#patience(silentMs)
    return silentMs - this.#silent.sinceMs
  }

  #patience(fromMs: number): StartPatience {
    const ofThisMs = (): number => this.#silentMs - fromMs
    const sinceMs = ofThisMs()
    return new StartPatience(
      { monotonicMs: ofThisMs },
      silentQuietMs - sinceMs,
      longestSilenceMs - sinceMs,
      Infinity,
    )
  }
}

/** The size at which containerd's log is rotated; one older file is kept. */
const maxLogBytes = 5 * 1024 * 1024

/**
 * Bounds the log. containerd appends, so the file can be copied and truncated while it is open; a line written in
 * between is lost. Where the copy fails, as on a full disk, the log is truncated nevertheless, and then the error
 * thrown.
 */
export async function boundContainerdLog(logPath: string): Promise<void> {
  if (sizeOf(logPath) <= maxLogBytes) return
  const olderPath = `${logPath}.1`
  try {
    await copyFile(logPath, olderPath)
  } catch (error) {
    await tryRemove(olderPath)
    throw error
  } finally {
    await truncate(logPath)
  }
}

/** The size of the log, from which `readLogFrom` reads later lines. */
export function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/**
 * Why containerd did not start, from its log: the first plugin that failed, since others fail because of it, and the
 * last errors. Empty when the log has neither.
 */
export function parseLogErrors(log: string): readonly string[] {
  const lines = log.split('\n')
  const firstFailure = lines.find((line) => line.includes('msg="failed to load plugin'))
  const failures = lines.flatMap((line) => {
    if (line.startsWith('containerd: ')) return [line.slice(12)]
    return /level=(?:fatal|error|panic) /.test(line) ? [formatLogLine(line)] : []
  })
  const first = firstFailure === undefined ? [] : [formatLogLine(firstFailure)]
  return [...new Set([...first, ...failures.slice(-2)])]
}

/** Message and error of a line in logrus's text format. */
function formatLogLine(line: string): string {
  const read = (key: string): string | undefined =>
    new RegExp(` ${key}="((?:[^"\\\\]|\\\\.)*)"`).exec(line)?.[1]?.replaceAll('\\"', '"')
  return [read('msg'), read('error')].filter((part) => part !== undefined).join(': ')
}

/** The log from `offset` on, 64 KiB at most; empty where there is no log. */
export function readLogFrom(path: string, offset: number): string {
  try {
    const fd = openSync(path, 'r')
    try {
      const buffer = Buffer.alloc(64 * 1024)
      const start = Math.max(offset, sizeOf(path) - buffer.length)
      return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, start))
    } finally {
      closeSync(fd)
    }
  } catch {
    // The log only adds detail to an error that is reported anyway.
    return ''
  }
}

/**
 * Whether CRI answers on the socket, over a connection of its own. False for any reason: no socket, no listener, a runtime
 * that is still loading, one that hangs until the deadline.
 */
export function criAnswers(socketPath: string, clock: Clock, deadlineMs: number): Promise<boolean> {
  const channel = new GrpcChannel({ address: { path: socketPath } })
  return new Promise((resolve) => {
    const cancel = channel.call({
      path: '/runtime.v1.RuntimeService/Version',
      message: Buffer.alloc(0),
      // The reply's content doesn't matter.
      decode: (bytes) => bytes,
      onMessage() {},
      onStatus: ({ code }) => {
        deadline.cancel()
        channel.close()
        resolve(code === Status.OK)
      },
    })
    const deadline = clock.startTimer(deadlineMs, cancel)
  })
}
