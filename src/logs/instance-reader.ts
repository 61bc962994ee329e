import { readlink } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { LogDecoder } from './log-decoder.ts'
import { listLogFiles, listLogInstances, liveOrder, readLogFileName } from './log-files.ts'
import type { LogFileName } from './log-files.ts'
import { closeLog, openIfThere, openLog, statIfThere } from './open-log.ts'
import { planLogRead, readCompressed } from './plan-log-read.ts'
import { decodeChunks, readFrom, readPart } from './read-log.ts'
import type { ReadLogOptions } from './read-log.ts'

export interface InstanceReaderOptions {
  /** The container's log directory; it may not exist yet. */
  readonly directory: string
  /** The instance to begin with. */
  readonly restartCount: number
  readonly options: ReadLogOptions
  /** Waits until the runtime has written pending data of a file that it has switched away from. */
  readonly settle: () => Promise<void>
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
export class InstanceReader {
  readonly #request: InstanceReaderOptions
  #restartCount: number
  #decoder: LogDecoder
  #current: ReadFile | undefined
  #begun = false

  constructor(request: InstanceReaderOptions) {
    this.#request = request
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
    if (this.#current?.handle !== undefined) await this.#request.settle()
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
    const found = handle ?? (await openIfThere(path))
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
      const handle = await openIfThere(join(this.#request.directory, file.name))
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
    const found = await statIfThere(join(directory, next.name))
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
