import { existsSync, watch } from 'node:fs'
import { open, readlink, stat } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { sleepUnlessAborted } from '../base/clock.ts'
import type { Clock } from '../base/clock.ts'
import { errorCode, errorMessage, ifThere, PoddError } from '../base/errors.ts'
import { WakeSlot } from '../base/waits.ts'
import { LogDecoder } from './log-decoder.ts'
import { closeLog, listLogFiles, listLogInstances, liveOrder, openLog, readLogFileName } from './log-files.ts'
import type { LogFileName } from './log-files.ts'
import { decodeChunks, planLogRead, readCompressed, readFrom, readPart } from './read-log.ts'
import type { ReadLogOptions } from './log-decoder.ts'

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
  const reader = new InstanceReader(request, settle)
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

/** The file of the log that has been read last. */
interface ReadFile {
  /** Undefined where it was compressed: it gets no more data. */
  readonly handle: FileHandle | undefined
  /** By the name that it had when it was opened. */
  readonly order: string
  offsetBytes: number
}

/** Whether the handle is the live file's. */
interface NextFile {
  readonly file: LogFileName
  readonly handle: FileHandle | undefined
}

/**
 * Reads the files of a container's log one after the other, and one instance after the other, each time to its current
 * end. An open file stays open across rotation.
 */
class InstanceReader {
  readonly #request: FollowLogRequest
  /** Waits until the runtime has written pending data of a file that it has switched away from. */
  readonly #settled: () => Promise<void>
  #restartCount: number
  #decoder: LogDecoder
  #current: ReadFile | undefined
  #begun = false

  constructor(request: FollowLogRequest, settled: () => Promise<void>) {
    this.#request = request
    this.#settled = settled
    this.#restartCount = request.restartCount
    this.#decoder = new LogDecoder(request.options)
  }

  /** Reads all new data since the last call. */
  async *readOn(): AsyncGenerator<Buffer, void> {
    if (!this.#begun) yield* this.#begin()
    for (;;) {
      yield* this.#drain()
      const next = await this.#successor()
      const restartCount = next === undefined ? await this.#nextInstance() : undefined
      if (next === undefined && restartCount === undefined) return
      if (next !== undefined) {
        yield* this.#finish(next)
        continue
      }
      await this.#settle()
      yield* this.#drain()
      await this.close()
      yield* this.flush()
      this.#restartCount = restartCount ?? this.#restartCount
      this.#current = undefined
      const { timestamps, stream } = this.#request.options
      this.#decoder = new LogDecoder({ timestamps, stream })
    }
  }

  /** Reads the rest of the open file, then continues with its successor. */
  async *#finish(next: NextFile): AsyncGenerator<Buffer, void> {
    let kept: FileHandle | undefined = next.handle
    try {
      if (next.handle !== undefined) await this.#settle()
      yield* this.#drain()
      await this.close()
      kept = undefined
      yield* this.#turnTo(next)
    } finally {
      await kept?.close()
    }
  }

  async #settle(): Promise<void> {
    if (this.#current?.handle !== undefined) await this.#settled()
  }

  async *flush(): AsyncGenerator<Buffer, void> {
    const rest = this.#decoder.end()
    if (rest.length > 0) yield rest
  }

  /** Whether the last line has no end yet. */
  get isWithinLine(): boolean {
    return this.#decoder.isWithinLine
  }

  /** What there is of that line. */
  *passOn(): Generator<Buffer, void> {
    const part = this.#decoder.passOn()
    if (part.length > 0) yield part
  }

  /** Closes what is open; the order of what has been read is kept. */
  async close(): Promise<void> {
    const current = this.#current
    if (current === undefined) return
    const order = await currentOrder(current)
    this.#current = { handle: undefined, order, offsetBytes: current.offsetBytes }
    await current.handle?.close()
  }

  async *#begin(): AsyncGenerator<Buffer, void> {
    this.#begun = true
    const { directory, options } = this.#request
    const files = await openLog(directory, this.#restartCount)
    const newest = files.at(-1)
    try {
      const plan = await planLogRead(files, options)
      this.#decoder.skip(plan.surplusLines)
      for (const part of plan.parts) {
        const { handle, order } = part.file
        // Kept open from here on; `#drain` reads it, now and later.
        if (part.file === newest) this.#current = { handle, order, offsetBytes: part.offset }
        if (part.file !== newest || handle === undefined) yield* decodeChunks(this.#decoder, readPart(part))
      }
    } finally {
      await closeLog(this.#current === undefined ? files : files.slice(0, -1))
    }
  }

  async *#turnTo({ file, handle }: NextFile): AsyncGenerator<Buffer, void> {
    const path = join(this.#request.directory, file.name)
    if (file.compressed) {
      yield* decodeChunks(this.#decoder, readCompressed(path))
      this.#current = { handle: undefined, order: file.order, offsetBytes: 0 }
      return
    }
    // If it was compressed meanwhile, the next call finds it under its new name.
    const found = handle ?? (await ifThere(open(path)))
    if (found !== undefined) this.#current = { handle: found, order: file.order, offsetBytes: 0 }
  }

  async *#drain(): AsyncGenerator<Buffer, void> {
    const current = this.#current
    if (current?.handle === undefined) return
    const { size } = await current.handle.stat()
    // A file that became shorter was truncated in place.
    if (current.offsetBytes > size) current.offsetBytes = 0
    for await (const chunk of readFrom(current.handle, current.offsetBytes)) {
      current.offsetBytes += chunk.length
      const out = this.#decoder.write(chunk)
      if (out.length > 0) yield out
    }
  }

  /** The file after the open one, if rotation has renamed that. */
  async #successor(): Promise<NextFile | undefined> {
    for (;;) {
      const file = await this.#nextName()
      if (file?.order !== liveOrder) return file && { file, handle: undefined }
      const handle = await ifThere(open(join(this.#request.directory, file.name)))
      // A file renamed before it was opened would be skipped.
      const isSame = (await this.#nextName())?.name === file.name
      if (handle !== undefined && isSame) return { file, handle }
      await handle?.close()
    }
  }

  async #nextName(): Promise<LogFileName | undefined> {
    const { directory } = this.#request
    const files = await listLogFiles(directory, this.#restartCount)
    const current = this.#current
    if (current === undefined) return files[0]
    const order = await currentOrder(current)
    const next = files.find((file) => (order === liveOrder ? file.order === order : file.order > order))
    if (next?.order !== liveOrder) return next
    const found = await ifThere(stat(join(directory, next.name)))
    // The runtime creates the file first, and writes to the previous one until it has switched.
    if (found === undefined || found.size === 0) return undefined
    return found.ino === (await current.handle?.stat())?.ino ? undefined : next
  }

  async #nextInstance(): Promise<number | undefined> {
    const instances = await listLogInstances(this.#request.directory)
    return instances.find((restartCount) => restartCount > this.#restartCount)
  }
}

/**
 * Which of the log's files the open one is by now: the kernel knows the name, also the last one of a file that has
 * been removed since (proc_pid_fd(5)).
 */
async function currentOrder({ handle, order }: ReadFile): Promise<string> {
  if (handle === undefined) return order
  const path = await readlink(`/proc/self/fd/${handle.fd}`)
  return readLogFileName(basename(path.replace(/ \(deleted\)$/u, '')))?.order ?? order
}

/** Watches a directory as soon as it exists. */
class LogDirectoryWatch {
  readonly #path: string
  readonly #wake: () => void
  #watcher: ReturnType<typeof watch> | undefined

  constructor(path: string, wake: () => void) {
    this.#path = path
    this.#wake = wake
  }

  /** Throws PoddError LOG_WATCH where the kernel refuses another watch. */
  ensure(): void {
    if (this.#watcher !== undefined) return
    try {
      const watcher = watch(this.#path, this.#wake)
      watcher.on('error', () => this.#wake())
      this.#watcher = watcher
    } catch (error) {
      // The pod's status changes once its container starts, and then the directory exists.
      if (errorCode(error) === 'ENOENT') return
      throw watchRefused(this.#path, error)
    }
  }

  [Symbol.dispose](): void {
    this.#watcher?.close()
  }
}

/**
 * Checks that a log can be followed, before the response begins: watches the directory, or its nearest existing parent,
 * for a moment. Throws PoddError LOG_WATCH.
 */
export function checkLogWatch(directory: string): void {
  let path = directory
  while (!existsSync(path) && dirname(path) !== path) path = dirname(path)
  using probe = new LogDirectoryWatch(path, () => {})
  probe.ensure()
}

/** The exhausted resource, by the errors of inotify_init1(2) and inotify_add_watch(2). */
const limits: Readonly<Record<string, string>> = {
  EMFILE: 'inotify instances (fs.inotify.max_user_instances)',
  ENOSPC: 'inotify watches (fs.inotify.max_user_watches)',
}

function watchRefused(path: string, error: unknown): PoddError {
  const limit = limits[errorCode(error) ?? '']
  const why = limit === undefined ? errorMessage(error) : `this host has no more ${limit}`
  return new PoddError('LOG_WATCH', `cannot watch ${path} for changes: ${why}`, {
    cause: error,
    hint: 'Raise fs.inotify.max_user_instances and fs.inotify.max_user_watches with sysctl. Without -f the log can be read all the same.',
  })
}
