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
  #rest: Buffer = Buffer.alloc(0)
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
    const text = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let start = 0
    for (let end = text.indexOf(newline); end !== -1; end = text.indexOf(newline, start)) {
      this.#line(text, start, end + 1)
      start = end + 1
    }
    const rest = text.subarray(start)
    if (rest.length > longestHeldBytes * 4) {
      if (this.#options.stream === undefined) this.#out.push(rest)
      this.#rest = Buffer.alloc(0)
    } else {
      this.#rest = Buffer.from(rest)
    }
    return this.#take()
  }

  /** What was held back: lines whose last part, or whose newline, never came. */
  end(): Buffer {
    const rest = this.#rest
    this.#rest = Buffer.alloc(0)
    if (rest.length > 0) this.#line(rest, 0, rest.length)
    for (const open of this.#open.values()) {
      if (!open.dropped) this.#out.push(...open.parts)
    }
    this.#open.clear()
    return this.#take()
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
    if (isNew && this.#options.timestamps) open.parts.push(text.subarray(start, record.timeEnd + 1))
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
    open.parts.push(part)
    open.heldBytes += part.length
    if (open.heldBytes <= longestHeldBytes) {
      open.parts = [Buffer.concat(open.parts)]
      return
    }
    if (this.#skipLines === 0) this.#out.push(...open.parts)
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
