import { existsSync } from 'node:fs'
import { sleepUnlessAborted } from '../../base/clock.ts'
import { watchNames } from '../../host/watch-names.ts'
import { findContainerd, isStillContainerd } from './containerd-process.ts'
import { boundLog } from './start-process.ts'
import type { ContainerdHome } from './start-process.ts'
import { connectionEnd } from './unix-socket.ts'

export interface WatchedContainerd {
  readonly pid: number
  /** Where its program is installed, where that is known. */
  readonly programPath: string | undefined
  /** The program has just been replaced. */
  readonly onProgramReplaced: () => Promise<void>
  /** The socket was removed, and has not come back: only clients that are connected already are served. */
  readonly onSocketRemoved: () => Promise<void>
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
  { places: { socketPath }, clock }: ContainerdHome,
  { onSocketRemoved }: WatchedContainerd,
  signal: AbortSignal,
): void {
  const onHint = async (): Promise<void> => {
    if (existsSync(socketPath)) return
    // A containerd that ends or starts removes it too.
    await sleepUnlessAborted(clock, socketPatienceMs, signal)
    if (!signal.aborted && !existsSync(socketPath)) await onSocketRemoved()
  }
  watchNames([socketPath], () => void onHint(), signal)
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
    const checkLog = new AbortController()
    const logDue = clock.startTimer(logCheckMs, () => checkLog.abort())
    await connectionEnd(places.socketPath, AbortSignal.any([signal, checkLog.signal]))
    logDue.cancel()
    if (signal.aborted) return
    if (!isStillContainerd(pid, places) && findContainerd(places) === undefined) return
    if (clock.monotonicMs() - logCheckedMs >= logCheckMs) {
      logCheckedMs = clock.monotonicMs()
      await boundLog(home)
    }
    await sleepUnlessAborted(clock, 20, signal)
  }
}
