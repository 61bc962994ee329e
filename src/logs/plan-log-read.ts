import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { errorCode } from '../base/errors.ts'
import { findSince } from './find-since.ts'
import { findTail } from './find-tail.ts'
import { LogDecoder } from './log-decoder.ts'
import type { LogFile } from './open-log.ts'
import { openIfThere } from './open-log.ts'

export interface LogReadOptions {
  /** Only the last so many lines. */
  readonly tailLines?: number | undefined
  /**
   * Search the last lines in at most this many bytes at the log's end, and in no compressed file: where they reach
   * further back, fewer are returned, and the first may be cut.
   */
  readonly searchBytes?: number | undefined
  /** Only what was written at this wall time or later. */
  readonly sinceMs?: number | undefined
}

/** Which parts of a log have to be read. The log's newest file is always among them. */
export interface LogReadPlan {
  readonly parts: readonly { readonly file: LogFile; readonly offset: number }[]
  /** How many lines of the parts precede the requested ones. */
  readonly surplusLines: number
  /** The first part may begin within a record. */
  readonly startsWithin: boolean
}

/** A file's time comes from a clock that is read some milliseconds late, and may have been set back a little. */
const clockSlackMs = 60_000

/** Finds what has to be read, reading little itself. Throws what the file system throws. */
export async function planLogRead(
  files: readonly LogFile[],
  { tailLines, searchBytes, sinceMs }: LogReadOptions,
): Promise<LogReadPlan> {
  const wanted = files.filter(
    ({ modifiedMs }, index) =>
      sinceMs === undefined || modifiedMs >= sinceMs - clockSlackMs || index === files.length - 1,
  )
  if (tailLines !== undefined) return planTail(wanted, tailLines, searchBytes)
  const parts: { file: LogFile; offset: number }[] = []
  for (const file of wanted) {
    const { handle } = file
    const offset =
      sinceMs === undefined || handle === undefined ? 0 : await findSince(handle, file.sizeBytes, sinceMs)
    parts.push({ file, offset })
  }
  return { parts, surplusLines: 0, startsWithin: false }
}

/** Goes back through the files until there are enough lines. */
async function planTail(
  files: readonly LogFile[],
  wanted: number,
  searchBytes = Number.POSITIVE_INFINITY,
): Promise<LogReadPlan> {
  const parts: { file: LogFile; offset: number }[] = []
  let lines = 0
  let leftBytes = searchBytes
  let startsWithin = false
  for (const file of files.toReversed()) {
    const isNewest = parts.length === 0
    if (!isNewest && (lines >= wanted || leftBytes <= 0)) break
    const { handle, sizeBytes } = file
    // The end of a compressed file can't be read without everything before it.
    if (handle === undefined && leftBytes !== Number.POSITIVE_INFINITY) break
    const floorOffset = Math.max(0, sizeBytes - leftBytes)
    const tail =
      handle === undefined
        ? { offset: 0, lines: await countCompressed(file.path) }
        : await findTail(handle, sizeBytes, wanted - lines, floorOffset)
    startsWithin = floorOffset > 0 && tail.offset === floorOffset
    parts.unshift({ file, offset: tail.offset })
    lines += tail.lines
    leftBytes -= sizeBytes - tail.offset
  }
  return { parts, surplusLines: Math.max(0, lines - wanted), startsWithin }
}

async function countCompressed(path: string): Promise<number> {
  const counter = new LogDecoder({ timestamps: false })
  for await (const chunk of readCompressed(path)) counter.write(chunk)
  counter.end()
  return counter.completedLines
}

/** The content of a compressed file; of a truncated one what it has, of a missing one nothing. */
export async function* readCompressed(path: string): AsyncGenerator<Buffer, void> {
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
