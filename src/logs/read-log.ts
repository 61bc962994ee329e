/* Reading a container's log from a time, or its last lines. */
import type { FileHandle } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { errorCode, ifThere } from '../base/errors.ts'
import { LogDecoder, parseLogRecord } from './log-decoder.ts'
import type { ReadLogOptions } from './log-decoder.ts'
import { closeLog, openLog } from './log-files.ts'
import type { LogFile } from './log-files.ts'
import { open } from 'node:fs/promises'

const chunkBytes = 64 * 1024

/**
 * Reads the output of one instance of a container, from the oldest kept file to the end that the live one has now: what is
 * written meanwhile would be more lines than were asked for, or have no end. Yields nothing without a log. Throws what the
 * file system throws.
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
    const newest = plan.parts.at(-1)
    // One that has just been rotated may get the runtime's last lines, which come before those of the newest.
    for (const part of plan.parts)
      yield* decodeChunks(decoder, readPart(part, part === newest ? part.file.sizeBytes : undefined))
    const rest = decoder.end()
    if (rest.length > 0) yield rest
  } finally {
    await closeLog(files)
  }
}

/** The text of a part of a log, as it stands in its file; of one that isn't compressed, up to `endOffset`. */
export function readPart(
  { file, offset }: LogReadPlan['parts'][number],
  endOffset?: number,
): AsyncGenerator<Buffer, void> {
  return file.handle === undefined ? readCompressed(file.path) : readFrom(file.handle, offset, endOffset)
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
export async function* readFrom(
  handle: FileHandle,
  offset: number,
  endOffset: number = Infinity,
): AsyncGenerator<Buffer, void> {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes)
  for (let position = offset; position < endOffset;) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(chunkBytes, endOffset - position), position)
    if (bytesRead === 0) return
    position += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** Which parts of a log have to be read. The log's newest file is always among them. */
interface LogReadPlan {
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
  { tailLines, searchBytes, sinceMs }: Omit<ReadLogOptions, 'timestamps'>,
): Promise<LogReadPlan> {
  const wanted = files.filter(
    ({ modifiedMs }, index) =>
      sinceMs === undefined || modifiedMs >= sinceMs - clockSlackMs || index === files.length - 1,
  )
  if (tailLines !== undefined) return planTail(wanted, tailLines, searchBytes)
  return { parts: wanted.map((file) => ({ file, offset: 0 })), surplusLines: 0, startsWithin: false }
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
  const handle = await ifThere(open(path))
  if (handle === undefined) return
  const unzipped = createGunzip()
  pipeline(handle.createReadStream(), unzipped, () => {})
  try {
    for await (const chunk of unzipped) if (Buffer.isBuffer(chunk)) yield chunk
  } catch (error) {
    if (errorCode(error) !== 'Z_BUF_ERROR') throw error
  }
}

const newline = 0x0a

/** From `offset` to the end of the file there are `lines` lines. */
export interface Tail {
  readonly offset: number
  readonly lines: number
}

const blockBytes = 64 * 1024
/** Far longer than the runtime's records; of a longer one only the first part is kept. */
const maxRecordBytes = 1024 * 1024

/**
 * Where the last `wanted` lines of the first `endOffset` bytes begin, or the whole file where it has fewer. Reads
 * blocks from the end. Partial records count once, as the line they make; the tail may hold a few lines more than
 * wanted where the two streams' partial records stand interleaved. Never reads before `floorOffset`: where the lines
 * reach further back, the tail begins there, possibly within a line.
 */
export async function findTail(
  handle: FileHandle,
  endOffset: number,
  wanted: number,
  floorOffset = 0,
): Promise<Tail> {
  if (wanted === 0) return { offset: endOffset, lines: 0 }
  const finder = new TailFinder(wanted, endOffset)
  let carried: Buffer = Buffer.alloc(0)
  for (let blockEnd = endOffset; blockEnd > floorOffset;) {
    const blockStart = Math.max(floorOffset, blockEnd - blockBytes)
    const block = Buffer.allocUnsafe(blockEnd - blockStart)
    await readFully(handle, block, blockStart)
    const text = Buffer.concat([block, carried])
    let end = text.length
    for (let start = recordStart(text, end); start > 0 && end > 0; start = recordStart(text, end)) {
      const cut = finder.visit(text, start, end, blockStart + start)
      if (cut !== undefined) return cut
      end = start
    }
    carried = text.subarray(0, end)
    blockEnd = blockStart
    if (carried.length < maxRecordBytes) continue
    const cut = finder.visit(carried, 0, carried.length, blockStart)
    if (cut !== undefined) return cut
    carried = Buffer.alloc(0)
  }
  if (carried.length > 0) {
    const cut = finder.visit(carried, 0, carried.length, floorOffset)
    if (cut !== undefined) return cut
  }
  return finder.everything()
}

/** Where the record begins that ends at `end`, its newline included; 0 where the buffer may hold only its rest. */
function recordStart(text: Buffer, end: number): number {
  return end < 2 ? 0 : text.lastIndexOf(newline, end - 2) + 1
}

/** Visits records from the last to the first, and tells when it has enough. */
class TailFinder {
  readonly #wanted: number
  #lines = 0
  #start: number
  #sawAny = false
  /** Before the record that closes at `stream`, the tail could be cut, unless another stream's line is open there. */
  #cut: { readonly tail: Tail; readonly stream: string } | undefined

  constructor(wanted: number, endOffset: number) {
    this.#wanted = wanted
    this.#start = endOffset
  }

  visit(text: Buffer, start: number, end: number, offset: number): Tail | undefined {
    const textEnd = text[end - 1] === newline ? end - 1 : end
    const record = parseLogRecord(text, start, textEnd)
    // Readers leave out what is no record.
    if (record === undefined) {
      this.#start = offset
      return undefined
    }
    const { partial, stream } = record
    if (partial) {
      if (this.#cut !== undefined && this.#cut.stream !== stream) this.#cut = undefined
      // A line whose end was never written.
      if (!this.#sawAny) this.#lines += 1
    } else {
      if (this.#cut !== undefined) return this.#cut.tail
      if (this.#lines >= this.#wanted)
        this.#cut = { tail: { offset: this.#start, lines: this.#lines }, stream }
      this.#lines += 1
    }
    this.#sawAny = true
    this.#start = offset
    return undefined
  }

  everything(): Tail {
    return this.#cut?.tail ?? { offset: this.#start, lines: this.#lines }
  }
}

/** Bytes after the file's end are zeros. */
async function readFully(handle: FileHandle, buffer: Buffer, position: number): Promise<void> {
  let done = 0
  while (done < buffer.length) {
    const { bytesRead } = await handle.read(buffer, done, buffer.length - done, position + done)
    if (bytesRead === 0) {
      buffer.fill(0, done)
      return
    }
    done += bytesRead
  }
}
