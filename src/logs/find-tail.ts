import type { FileHandle } from 'node:fs/promises'
import { parseLogRecord } from './log-record.ts'

/** From `offset` to the end of the file there are `lines` lines. */
export interface Tail {
  readonly offset: number
  readonly lines: number
}

const blockBytes = 64 * 1024
/** Far longer than the runtime's records; of a longer one only the first part is kept. */
const mostRecordBytes = 1024 * 1024
const newline = 0x0a

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
    if (carried.length < mostRecordBytes) continue
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
export async function readFully(handle: FileHandle, buffer: Buffer, position: number): Promise<void> {
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
