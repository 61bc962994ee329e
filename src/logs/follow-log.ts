import { type Clock, sleepUnlessAborted } from '../base/clock.ts'
import { WakeSlot } from '../base/waits.ts'
import { InstanceReader } from './instance-reader.ts'
import { LogDirectoryWatch } from './log-directory-watch.ts'
import type { ReadLogOptions } from './read-log.ts'

/** Whether more may come. */
export interface LogLifetime {
  /** True once the container has ended and no further instance will start. */
  isOver(): boolean
  /**
   * Calls `listener` whenever the result, or the container's state, may have changed; returns the function that
   * unsubscribes.
   */
  watch(listener: () => void): () => void
}

export interface FollowLogRequest {
  /** The container's log directory; it may not exist yet. */
  readonly directory: string
  /** The instance to begin with. */
  readonly restartCount: number
  readonly options: ReadLogOptions
  readonly lifetime: LogLifetime
  readonly clock: Clock
  readonly signal: AbortSignal
}

/**
 * How long the runtime may still copy lines after it reported a container's end, or switched to another file, and the
 * rest of a long line.
 */
const settleMs = 100

/**
 * Follows a container's log across rotations and restarts, until its lifetime is over and everything is read, or the
 * signal is aborted (without an error). Driven by inotify and the lifetime's changes; it never polls. Throws PoddError
 * LOG_WATCH where the kernel refuses another watch.
 */
export async function* followLog(request: FollowLogRequest): AsyncGenerator<Buffer, void> {
  const slot = new WakeSlot()
  const wake = (): void => slot.wake()
  using cleanup = new DisposableStack()
  cleanup.defer(request.lifetime.watch(wake))
  request.signal.addEventListener('abort', wake)
  cleanup.defer(() => request.signal.removeEventListener('abort', wake))
  const directory = cleanup.use(new LogDirectoryWatch(request.directory, wake))
  const settle = (): Promise<void> => sleepUnlessAborted(request.clock, settleMs, request.signal)
  const reader = new InstanceReader({ ...request, settle })
  try {
    let settled = false
    while (!request.signal.aborted) {
      directory.ensure()
      const isOver = request.lifetime.isOver()
      yield* reader.readOn()
      if (isOver && settled) break
      if (isOver) {
        await settle()
        settled = true
      } else {
        settled = false
        if (reader.isWithinLine) {
          // Mostly the rest of a long line follows at once. Else its reader shall see it, as the kubelet's does.
          await settle()
          yield* reader.readOn()
          yield* reader.passOn()
        }
        await slot.wait()
      }
    }
    yield* reader.flush()
  } finally {
    await reader.close()
  }
}
