import type { Clock } from '../base/clock.ts'
import { WakeSlot } from '../base/wake-slot.ts'
import { InstanceReader } from './instance-reader.ts'
import { LogDirectoryWatch } from './log-directory-watch.ts'
import type { ReadLogOptions } from './read-log.ts'

/** Whether more may come. */
export interface LogLifetime {
  /** True once the container has ended and no instance of it will start any more. */
  isOver(): boolean
  /** Calls `listener` whenever the answer, or the container's state, may have changed; returns the end of it. */
  watch(listener: () => void): () => void
}

export interface FollowLogRequest {
  /** The container's log directory; it may not be there yet. */
  readonly directory: string
  /** The instance to begin with. */
  readonly restartCount: number
  readonly options: ReadLogOptions
  readonly lifetime: LogLifetime
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** The runtime may still be copying lines when it reports a container's end, or has turned to another file. */
const settleMs = 100

/**
 * What a container has written and will write, over rotations and restarts, until its lifetime is over and all is
 * read, or the signal ends it (quietly). Driven by inotify and the lifetime's changes; it never polls.
 * Throws PoddError LOG_WATCH where the kernel refuses another watch.
 */
export async function* followLog(request: FollowLogRequest): AsyncGenerator<Buffer, void> {
  const slot = new WakeSlot()
  const wake = (): void => slot.wake()
  using cleanup = new DisposableStack()
  cleanup.defer(request.lifetime.watch(wake))
  request.signal.addEventListener('abort', wake)
  cleanup.defer(() => request.signal.removeEventListener('abort', wake))
  const directory = cleanup.use(new LogDirectoryWatch(request.directory, wake))
  const settle = (): Promise<void> => request.clock.sleep(settleMs, request.signal).catch(() => {})
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
        await slot.wait()
      }
    }
    yield* reader.flush()
  } finally {
    await reader.close()
  }
}
