import type { FileHandle } from 'node:fs/promises'
import { open } from 'node:fs/promises'
import type { Clock } from '../base/clock.ts'
import { errorCode } from '../base/errors.ts'
import { WakeSlot } from '../base/wake-slot.ts'
import { LogDecoder } from './log-decoder.ts'
import { LogDirectoryWatch } from './log-directory-watch.ts'
import { listLogFiles, listLogInstances } from './log-files.ts'
import type { LogFile } from './log-files.ts'
import type { LogPosition, ReadLogOptions } from './read-log.ts'
import { readFrom, readLog } from './read-log.ts'

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

/** The runtime may still be copying the last lines when it reports the end. */
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
  const reader = new InstanceReader(request)
  try {
    let settled = false
    while (!request.signal.aborted) {
      directory.ensure()
      const isOver = request.lifetime.isOver()
      yield* reader.readOn()
      if (isOver && settled) break
      if (isOver) {
        await request.clock.sleep(settleMs, request.signal).catch(() => {})
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

/** Reads one instance's files after the other, always to the end of what is there. */
class InstanceReader {
  readonly #request: FollowLogRequest
  #restartCount: number
  #decoder: LogDecoder
  #handle: FileHandle | undefined
  #position: LogPosition | undefined
  #begun = false

  constructor(request: FollowLogRequest) {
    this.#request = request
    this.#restartCount = request.restartCount
    this.#decoder = new LogDecoder(request.options)
  }

  /** All that has come since the last call. */
  async *readOn(): AsyncGenerator<Buffer, void> {
    if (!this.#begun) yield* this.#begin()
    for (;;) {
      yield* this.#drain()
      const file = await this.#successor()
      const restartCount = file === undefined ? await this.#nextInstance() : undefined
      if (file === undefined && restartCount === undefined) return
      // Now that a successor is there, nothing more is written to what is at hand: what came last is in it.
      yield* this.#drain()
      await this.close()
      if (file !== undefined) {
        this.#handle = await openIfThere(file.path)
        continue
      }
      yield* this.flush()
      this.#restartCount = restartCount ?? this.#restartCount
      this.#position = undefined
      const { timestamps, stream } = this.#request.options
      this.#decoder = new LogDecoder({ timestamps, stream })
    }
  }

  async *flush(): AsyncGenerator<Buffer, void> {
    const rest = this.#decoder.end()
    if (rest.length > 0) yield rest
  }

  async close(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }

  async *#begin(): AsyncGenerator<Buffer, void> {
    this.#begun = true
    const { directory, options } = this.#request
    yield* readLog(directory, this.#restartCount, options, {
      decoder: this.#decoder,
      onPosition: (position) => {
        this.#position = position
      },
    })
    const position = this.#position
    if (position === undefined) return
    const file = (await listLogFiles(directory, this.#restartCount)).find(
      (candidate) => candidate.inode === position.inode,
    )
    if (file !== undefined && !file.compressed) this.#handle = await openIfThere(file.path)
  }

  async *#drain(): AsyncGenerator<Buffer, void> {
    const handle = this.#handle
    if (handle === undefined) return
    const found = await handle.stat()
    const known = this.#position?.inode === found.ino ? this.#position.offsetBytes : 0
    // A file that has become shorter was emptied in place.
    let offsetBytes = known > found.size ? 0 : known
    for await (const chunk of readFrom(handle, offsetBytes)) {
      offsetBytes += chunk.length
      this.#position = { inode: found.ino, offsetBytes }
      const out = this.#decoder.write(chunk)
      if (out.length > 0) yield out
    }
    this.#position = { inode: found.ino, offsetBytes }
  }

  /** The file that followed the one at hand, if rotation has put that aside. */
  async #successor(): Promise<LogFile | undefined> {
    const files = await listLogFiles(this.#request.directory, this.#restartCount)
    const at = files.findIndex((file) => file.inode === this.#position?.inode)
    // Compressed in the meantime, so that it can't be found: only the live file is surely new.
    const next = at === -1 ? files.at(-1) : files[at + 1]
    // The runtime makes the file first, and writes to the one before until it has turned to it.
    return next === undefined || next.compressed || next.sizeBytes === 0 ? undefined : next
  }

  async #nextInstance(): Promise<number | undefined> {
    const instances = await listLogInstances(this.#request.directory)
    return instances.find((restartCount) => restartCount > this.#restartCount)
  }
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}
