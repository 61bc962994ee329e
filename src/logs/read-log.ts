import type { FileHandle } from 'node:fs/promises'
import { LogDecoder } from './log-decoder.ts'
import { closeLog, openLog } from './open-log.ts'
import type { LogReadOptions, LogReadPlan } from './plan-log-read.ts'
import { planLogRead, readCompressed } from './plan-log-read.ts'

export interface ReadLogOptions extends LogReadOptions {
  /** Put each line's time before it. */
  readonly timestamps: boolean
  /** Only lines of this stream; not together with `tailLines`, which count the lines of both. */
  readonly stream?: 'stdout' | 'stderr' | undefined
}

const chunkBytes = 64 * 1024

/**
 * Reads the output of one instance of a container, from the oldest kept file to the current end of the live one. Yields
 * nothing without a log. Throws what the file system throws.
 */
export async function* readLog(
  directory: string,
  restartCount: number,
  options: ReadLogOptions,
): AsyncGenerator<Buffer, void> {
  const files = await openLog(directory, restartCount)
  try {
    const plan = await planLogRead(files, options)
    const decoder = new LogDecoder(options)
    decoder.skip(plan.surplusLines)
    if (plan.startsWithin) decoder.startWithin()
    for (const part of plan.parts) yield* decodeChunks(decoder, readPart(part))
    const rest = decoder.end()
    if (rest.length > 0) yield rest
  } finally {
    await closeLog(files)
  }
}

/** The text of a part of a log, as it stands in its file. */
export function readPart({ file, offset }: LogReadPlan['parts'][number]): AsyncGenerator<Buffer, void> {
  return file.handle === undefined ? readCompressed(file.path) : readFrom(file.handle, offset)
}

export async function* decodeChunks(
  decoder: LogDecoder,
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer, void> {
  for await (const chunk of chunks) {
    const out = decoder.write(chunk)
    if (out.length > 0) yield out
  }
}

/** The file from `offset` on, in chunks whose memory is reused. */
export async function* readFrom(handle: FileHandle, offset: number): AsyncGenerator<Buffer, void> {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes)
  for (let position = offset; ;) {
    const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
