import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { errorCode } from '../base/errors.ts'
import { parseLogFileName } from '../translate/log-path.ts'
import { findTail } from './find-tail.ts'
import { LogDecoder } from './log-decoder.ts'
import type { LogFile } from './log-files.ts'
import { listLogFiles } from './log-files.ts'

export interface ReadLogOptions {
  /** Only the last so many lines. */
  readonly tailLines?: number | undefined
  /**
   * Look for the last lines in no more than so many bytes at the log's end, and in no compressed file: where
   * they reach further back, fewer come, and the first may be cut.
   */
  readonly searchBytes?: number | undefined
  /** Only what was written at this wall time or later. */
  readonly sinceMs?: number | undefined
  /** Put each line's time before it. */
  readonly timestamps: boolean
  /** Only what was written to this one; not together with `tailLines`, which count the lines of both. */
  readonly stream?: 'stdout' | 'stderr' | undefined
}

/** Which file of a log has been read how far; a follower goes on from there. */
export interface LogPosition {
  readonly inode: number
  readonly offsetBytes: number
}

const chunkBytes = 64 * 1024

/**
 * What one instance of a container wrote, from the oldest file that rotation has kept to the end of the live one as
 * it is now. Gives nothing where there is no log. `decoder` and `onPosition` are for a follower, who goes on with
 * the same decoder from where this stopped. Throws what the file system throws.
 */
export async function* readLog(
  directory: string,
  restartCount: number,
  options: ReadLogOptions,
  follower?: { readonly decoder: LogDecoder; readonly onPosition: (position: LogPosition) => void },
): AsyncGenerator<Buffer, void> {
  const files = (await listLogFiles(directory, restartCount)).filter(
    (file) => options.sinceMs === undefined || file.modifiedMs >= options.sinceMs,
  )
  const plan =
    options.tailLines === undefined
      ? { parts: files.map((file) => ({ file, offset: 0 })), surplusLines: 0 }
      : await planTail(files, options.tailLines, options.searchBytes)
  const decoder = follower?.decoder ?? new LogDecoder(options)
  decoder.skip(plan.surplusLines)
  for (const { file, offset } of plan.parts) {
    let offsetBytes = offset
    for await (const chunk of file.compressed ? readCompressed(file.path) : readPlain(file, offset)) {
      offsetBytes += chunk.length
      const out = decoder.write(chunk)
      if (out.length > 0) yield out
    }
    follower?.onPosition({ inode: file.inode, offsetBytes })
  }
  if (follower !== undefined) return
  const rest = decoder.end()
  if (rest.length > 0) yield rest
}

interface TailPlan {
  readonly parts: readonly { readonly file: LogFile; readonly offset: number }[]
  /** How many lines of the parts come before the tail. */
  readonly surplusLines: number
}

/** Goes back through the files until there are lines enough. */
async function planTail(
  files: readonly LogFile[],
  wanted: number,
  searchBytes = Number.POSITIVE_INFINITY,
): Promise<TailPlan> {
  const parts: { file: LogFile; offset: number }[] = []
  let lines = 0
  let leftBytes = searchBytes
  for (const file of [...files].reverse()) {
    const isLive = parts.length === 0
    if (!isLive && (lines >= wanted || leftBytes <= 0)) break
    // Its end can't be had without all that stands before.
    if (file.compressed && leftBytes !== Number.POSITIVE_INFINITY) break
    const tail = file.compressed
      ? { offset: 0, lines: await countCompressed(file.path) }
      : await findTailOf(file, wanted - lines, leftBytes)
    parts.unshift({ file, offset: tail.offset })
    lines += tail.lines
    leftBytes -= file.sizeBytes - tail.offset
  }
  return { parts, surplusLines: Math.max(0, lines - wanted) }
}

async function findTailOf(
  file: LogFile,
  wanted: number,
  searchBytes: number,
): Promise<{ offset: number; lines: number }> {
  const handle = await openSame(file)
  if (handle === undefined) return { offset: 0, lines: 0 }
  try {
    const { size } = await handle.stat()
    return await findTail(handle, size, wanted, Math.max(0, size - searchBytes))
  } finally {
    await handle.close()
  }
}

async function countCompressed(path: string): Promise<number> {
  const counter = new LogDecoder({ timestamps: false })
  for await (const chunk of readCompressed(path)) counter.write(chunk)
  counter.end()
  return counter.completedLines
}

async function* readPlain(file: LogFile, offset: number): AsyncGenerator<Buffer, void> {
  const handle = await openSame(file)
  if (handle === undefined) return
  try {
    yield* readFrom(handle, offset)
  } finally {
    await handle.close()
  }
}

/** All that stands in the file from `offset` on, in chunks whose memory is used again for the next one. */
export async function* readFrom(handle: FileHandle, offset: number): AsyncGenerator<Buffer, void> {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes)
  for (let position = offset; ;) {
    const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position)
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** A compressed file that a power cut left short gives what it has. */
async function* readCompressed(path: string): AsyncGenerator<Buffer, void> {
  const handle = await openIfThere(path)
  if (handle === undefined) return
  const unzipped = createGunzip()
  pipeline(handle.createReadStream(), unzipped, () => {})
  try {
    for await (const chunk of unzipped) if (Buffer.isBuffer(chunk)) yield chunk
  } catch (error) {
    if (errorCode(error) !== 'Z_BUF_ERROR') throw error
  }
}

/** The file that was listed, also where rotation has renamed it since; undefined where it is gone or compressed. */
async function openSame(file: LogFile): Promise<FileHandle | undefined> {
  const handle = await openIfThere(file.path)
  if (handle !== undefined && (await handle.stat()).ino === file.inode) return handle
  await handle?.close()
  const restartCount = parseLogFileName(basename(file.path))
  if (restartCount === undefined) return undefined
  const renamed = (await listLogFiles(dirname(file.path), restartCount)).find(
    (other) => other.inode === file.inode,
  )
  return renamed === undefined ? undefined : openIfThere(renamed.path)
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}
