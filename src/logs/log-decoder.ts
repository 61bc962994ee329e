import { parseLogRecord, recordTimeMs } from './log-record.ts'

export interface DecoderOptions {
  /** Put each line's time before it. */
  readonly timestamps: boolean
  /** Leave out lines written before this wall time. */
  readonly sinceMs?: number | undefined
  /** Only what was written to this one; what is no CRI record is left out then. */
  readonly stream?: 'stdout' | 'stderr' | undefined
}

/** A line longer than this is given out in pieces instead of being held until it is whole. */
const longestHeldBytes = 256 * 1024

/** Of an open line, before they are joined. */
const mostParts = 1024

const newline = 0x0a

interface OpenLine {
  /** Not given out yet; with the time, where that is wanted. */
  parts: Buffer[]
  heldBytes: number
  /** Belongs to a line that is left out. */
  readonly dropped: boolean
}

/**
 * Turns CRI log text, in chunks cut anywhere, into what the container wrote. Partial records are joined,
 * each stream on its own. Lines that are no CRI records are given out as they are.
 */
export class LogDecoder {
  readonly #options: DecoderOptions
  readonly #open = new Map<'stdout' | 'stderr', OpenLine>()
  #skipLines = 0
  #completedLines = 0
  /** Times only grow: the first line that is new enough ends the comparing. */
  #sinceMs: number | undefined
  /** The pieces of a record whose newline hasn't come. */
  #rest: Buffer[] = []
  #restBytes = 0
  #out: Buffer[] = []

  constructor(options: DecoderOptions) {
    this.#options = options
    this.#sinceMs = options.sinceMs
  }

  /** How many whole lines have come by, those left out by `skip` included. */
  get completedLines(): number {
    return this.#completedLines
  }

  /** Leaves out the next `lines` lines. */
  skip(lines: number): void {
    this.#skipLines += lines
  }

  /** What has become readable with this chunk; the chunk's memory may be used again afterwards. */
  write(chunk: Buffer): Buffer {
    if (chunk.indexOf(newline) === -1) {
      this.#holdRest(chunk)
      return this.#take()
    }
    const text = this.#rest.length === 0 ? chunk : Buffer.concat([...this.#rest, chunk])
    this.#rest = []
    this.#restBytes = 0
    let start = 0
    for (let end = text.indexOf(newline); end !== -1; end = text.indexOf(newline, start)) {
      this.#line(text, start, end + 1)
      start = end + 1
    }
    if (start < text.length) this.#holdRest(text.subarray(start))
    return this.#take()
  }

  /** What was held back: lines whose last part, or whose newline, never came. */
  end(): Buffer {
    const rest = Buffer.concat(this.#rest)
    this.#rest = []
    this.#restBytes = 0
    if (rest.length > 0) this.#line(rest, 0, rest.length)
    for (const open of this.#open.values()) {
      if (!open.dropped) this.#out.push(...open.parts)
    }
    this.#open.clear()
    return this.#take()
  }

  /** Keeps what has no newline yet; gives it out as it is once it is longer than any record. */
  #holdRest(piece: Buffer): void {
    this.#rest.push(Buffer.from(piece))
    this.#restBytes += piece.length
    if (this.#restBytes <= longestHeldBytes * 4) return
    if (this.#options.stream === undefined) this.#out.push(...this.#rest)
    this.#rest = []
    this.#restBytes = 0
  }

  #take(): Buffer {
    const out = Buffer.concat(this.#out)
    this.#out = []
    return out
  }

  /** One physical line; `end` lies after its newline, if it has one. */
  #line(text: Buffer, start: number, end: number): void {
    const textEnd = text[end - 1] === newline ? end - 1 : end
    const record = parseLogRecord(text, start, textEnd)
    const wanted = this.#options.stream
    if (wanted !== undefined && record?.stream !== wanted) return
    if (record === undefined) {
      this.#complete([text.subarray(start, textEnd), Buffer.from('\n')])
      return
    }
    let open = this.#open.get(record.stream)
    const isNew = open === undefined
    open ??= { parts: [], heldBytes: 0, dropped: this.#isOld(text, start, record.timeEnd) }
    if (!record.partial) this.#open.delete(record.stream)
    else if (isNew) this.#open.set(record.stream, open)
    if (open.dropped) {
      if (!record.partial) this.#complete([])
      return
    }
    if (isNew && this.#options.timestamps) {
      const time = text.subarray(start, record.timeEnd + 1)
      open.parts.push(record.partial ? Buffer.from(time) : time)
    }
    if (record.partial) {
      this.#hold(open, text.subarray(record.textStart, textEnd))
      return
    }
    this.#complete(
      end > textEnd
        ? [...open.parts, text.subarray(record.textStart, end)]
        : [...open.parts, text.subarray(record.textStart, textEnd), Buffer.from('\n')],
    )
  }

  #complete(parts: readonly Buffer[]): void {
    this.#completedLines += 1
    if (this.#skipLines > 0) this.#skipLines -= 1
    else this.#out.push(...parts)
  }

  #hold(open: OpenLine, part: Buffer): void {
    open.heldBytes += part.length
    if (open.heldBytes <= longestHeldBytes) {
      // Copied, for the chunk's memory is used again; joined now and then, for parts may be tiny.
      open.parts.push(Buffer.from(part))
      if (open.parts.length >= mostParts) open.parts = [Buffer.concat(open.parts)]
      return
    }
    if (this.#skipLines === 0) this.#out.push(...open.parts, part)
    open.parts = []
    open.heldBytes = 0
  }

  #isOld(text: Buffer, start: number, timeEnd: number): boolean {
    if (this.#sinceMs === undefined) return false
    if (recordTimeMs(text, start, timeEnd) < this.#sinceMs) return true
    this.#sinceMs = undefined
    return false
  }
}
