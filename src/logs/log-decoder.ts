/* Records of the CRI log format, joined to lines. */

/** What of a log is read, and how it is shown. */
export interface ReadLogOptions {
  /** Put each line's time before it. */
  readonly timestamps: boolean
  /** Only what was written at this wall time or later. */
  readonly sinceMs?: number | undefined
  /** Only lines of this stream; not together with `tailLines`, which count the lines of both. */
  readonly stream?: 'stdout' | 'stderr' | undefined
  /** Only the last so many lines. */
  readonly tailLines?: number | undefined
  /**
   * Search the last lines in at most this many bytes at the log's end, and in no compressed file: where they reach
   * further back, fewer are returned, and the first may be cut.
   */
  readonly searchBytes?: number | undefined
}

type DecoderOptions = Pick<ReadLogOptions, 'timestamps' | 'sinceMs' | 'stream'>

/** A longer line is returned in pieces instead of being kept until it is complete. */
const maxKeptBytes = 256 * 1024

/** A record longer than this is read in pieces. */
const longestRecordBytes = 1024 * 1024

/** Of an open line, before they are joined. */
const maxParts = 1024

const newline = 0x0a
const lineEnd = Buffer.from('\n')

type Stream = LogRecord['stream']

interface OpenLine {
  /** Pending output, with the time where requested. */
  parts: Buffer[]
  keptBytes: number
  /** Whether it belongs to a line that is left out. */
  readonly dropped: boolean
  /** Whether its beginning was returned already. */
  shown: boolean
}

/** A record whose newline has not arrived yet. */
interface LongRecord {
  readonly stream: Stream
  readonly partial: boolean
  readonly open: OpenLine
}

/**
 * Decodes CRI log text, in arbitrary chunks, to the container's output. Partial records are joined, for each stream
 * separately. Malformed records are left out (`k8s.io/cri-client/pkg/logs` ReadLogs, 1.36).
 */
export class LogDecoder {
  readonly #options: DecoderOptions
  readonly #open = new Map<Stream, OpenLine>()
  #skipLines = 0
  #startsWithin = false
  #completedLines = 0
  /** The pieces of a record whose newline has not arrived yet. */
  #rest: Buffer[] = []
  #restBytes = 0
  #long: LongRecord | 'left out' | undefined
  #out: Buffer[] = []

  constructor(options: DecoderOptions) {
    this.#options = options
  }

  /** The number of complete lines so far, including those left out by `skip`. */
  get completedLines(): number {
    return this.#completedLines
  }

  /** Leaves out the next `lines` lines. */
  skip(lines: number): void {
    this.#skipLines += lines
  }

  /** The next chunk begins within a record: the rest of that record is returned unchanged. */
  startWithin(): void {
    this.#startsWithin = true
  }

  /** Whether `passOn` has something to return. */
  get isWithinLine(): boolean {
    return this.#skipLines === 0 && [...this.#open.values()].some(({ parts }) => parts.length > 0)
  }

  /** Returns what there is of incomplete lines, without waiting for their ends. */
  passOn(): Buffer {
    for (const [stream, open] of this.#open) if (open.parts.length > 0) this.#show(stream, open)
    return this.#take()
  }

  /** Returns the output completed by this chunk; the chunk's memory may be reused afterwards. */
  write(chunk: Buffer): Buffer {
    const fresh = this.#long === undefined ? chunk : this.#continueLong(this.#long, chunk)
    if (fresh.indexOf(newline) === -1) {
      this.#keepRest(fresh)
      return this.#take()
    }
    const text = this.#rest.length === 0 ? fresh : Buffer.concat([...this.#rest, fresh])
    this.#rest = []
    this.#restBytes = 0
    let start = 0
    for (let end = text.indexOf(newline); end !== -1; end = text.indexOf(newline, start)) {
      this.#line(text, start, end + 1)
      start = end + 1
    }
    if (start < text.length) this.#keepRest(text.subarray(start))
    return this.#take()
  }

  /** Returns the pending output: lines whose last part or newline never arrived. */
  end(): Buffer {
    if (this.#long !== undefined) this.#endLong(this.#long)
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

  /** Keeps what has no newline yet, up to the longest record that is read as one. */
  #keepRest(piece: Buffer): void {
    if (piece.length === 0) return
    this.#rest.push(Buffer.from(piece))
    this.#restBytes += piece.length
    if (this.#restBytes <= longestRecordBytes) return
    const text = Buffer.concat(this.#rest)
    this.#rest = []
    this.#restBytes = 0
    const record = this.#readRecord(text, 0, text.length)
    if (record === undefined) {
      this.#long = 'left out'
      return
    }
    const { stream, partial } = record
    const open = this.#openLine(text, 0, record)
    this.#open.set(stream, open)
    this.#long = { stream, partial, open }
    if (!open.dropped) this.#keep(stream, open, text.subarray(record.textStart))
  }

  /** Returns the offset after the record. */
  #continueLong(long: LongRecord | 'left out', chunk: Buffer): Buffer {
    const found = chunk.indexOf(newline)
    const end = found === -1 ? chunk.length : found
    if (long !== 'left out' && !long.open.dropped && end > 0)
      this.#keep(long.stream, long.open, chunk.subarray(0, end))
    if (found !== -1) this.#endLong(long)
    return chunk.subarray(Math.min(end + 1, chunk.length))
  }

  #endLong(long: LongRecord | 'left out'): void {
    this.#long = undefined
    if (long === 'left out' || long.partial) return
    this.#open.delete(long.stream)
    this.#complete(long.stream, long.open.dropped ? [] : [...long.open.parts, lineEnd])
  }

  #take(): Buffer {
    const out = Buffer.concat(this.#out)
    this.#out = []
    return out
  }

  /** Undefined also for a stream that isn't requested. */
  #readRecord(text: Buffer, start: number, textEnd: number): LogRecord | undefined {
    const record = parseLogRecord(text, start, textEnd)
    const wanted = this.#options.stream
    return wanted === undefined || record?.stream === wanted ? record : undefined
  }

  /** The line that a record goes on with, or begins. */
  #openLine(text: Buffer, start: number, record: LogRecord): OpenLine {
    const found = this.#open.get(record.stream)
    if (found !== undefined) return found
    const { sinceMs, timestamps } = this.#options
    // Each record is examined, since times decrease where the clock was set back.
    const dropped = sinceMs !== undefined && recordTimeMs(text, start, record.timeEnd) < sinceMs
    const parts = timestamps && !dropped ? [fixedWidthTime(text, start, record.timeEnd)] : []
    return { parts, keptBytes: 0, dropped, shown: false }
  }

  /** One physical line; `end` lies after its newline, if it has one. */
  #line(text: Buffer, start: number, end: number): void {
    const textEnd = text[end - 1] === newline ? end - 1 : end
    const record = this.#readRecord(text, start, textEnd)
    if (record === undefined) {
      if (this.#startsWithin) this.#complete(undefined, [text.subarray(start, textEnd), lineEnd])
      this.#startsWithin = false
      return
    }
    this.#startsWithin = false
    const open = this.#openLine(text, start, record)
    if (record.partial) {
      this.#open.set(record.stream, open)
      if (!open.dropped) this.#keep(record.stream, open, text.subarray(record.textStart, textEnd))
      return
    }
    this.#open.delete(record.stream)
    const rest = text.subarray(record.textStart, end)
    const lastParts = end > textEnd ? [rest] : [rest, lineEnd]
    this.#complete(record.stream, open.dropped ? [] : [...open.parts, ...lastParts])
  }

  #complete(stream: Stream | undefined, parts: readonly Buffer[]): void {
    this.#completedLines += 1
    if (this.#skipLines > 0) this.#skipLines -= 1
    else this.#emit(stream, parts)
  }

  /**
   * A line of the other stream whose beginning stands in the output ends there, and what follows of it is a line of its
   * own: each line begins with its time.
   */
  #emit(stream: Stream | undefined, parts: readonly Buffer[]): void {
    if (parts.length === 0) return
    for (const [other, open] of this.#open) {
      if (other === stream || !open.shown) continue
      this.#out.push(...open.parts, lineEnd)
      open.parts = []
      open.keptBytes = 0
      open.shown = false
      // The rest of a record that has begun still belongs to it.
      const hasBegun = this.#long !== undefined && this.#long !== 'left out' && this.#long.open === open
      if (!hasBegun) this.#open.delete(other)
    }
    this.#out.push(...parts)
  }

  #show(stream: Stream, open: OpenLine): void {
    if (this.#skipLines === 0) {
      this.#emit(stream, open.parts)
      open.shown = true
    }
    open.parts = []
    open.keptBytes = 0
  }

  #keep(stream: Stream, open: OpenLine, part: Buffer): void {
    open.keptBytes += part.length
    if (open.keptBytes <= maxKeptBytes) {
      // Copied, since the chunk's memory is reused; joined from time to time, since parts may be tiny.
      open.parts.push(Buffer.from(part))
      if (open.parts.length >= maxParts) open.parts = [Buffer.concat(open.parts)]
      return
    }
    open.parts.push(part)
    this.#show(stream, open)
  }
}

/** One physical line of a CRI log: `<time> stdout|stderr P|F <text>`, as offsets into the buffer it stands in. */
interface LogRecord {
  readonly stream: 'stdout' | 'stderr'
  /** Whether the line continues in the stream's next record. */
  readonly partial: boolean
  /** The time is the text from the record's start to here. */
  readonly timeEnd: number
  readonly textStart: number
}

/** Up to the tag, which is `P` or `F`; what follows of it, and other tags behind colons, count for nothing. */
const recordHead = /^([^ ]{10}T[^ ]{9,52}) (stdout|stderr) ([PF])/u
const longestHeadBytes = 80
const space = 0x20

/**
 * Reads the head of the record that stands in `buffer` from `start` to `end` (its newline not included);
 * undefined where it is no such record (CRI's log format, kubernetes design-proposals `kubelet-cri-logging`).
 */
export function parseLogRecord(buffer: Buffer, start: number, end: number): LogRecord | undefined {
  const head = recordHead.exec(buffer.toString('latin1', start, Math.min(end, start + longestHeadBytes)))
  if (head === null) return undefined
  const [text, time = '', stream, tag] = head
  const tagStart = start + text.length
  const toSpace = buffer.subarray(tagStart, end).indexOf(space)
  return {
    stream: stream === 'stdout' ? 'stdout' : 'stderr',
    partial: tag === 'P',
    timeEnd: start + time.length,
    textStart: toSpace < 0 ? end : tagStart + toSpace + 1,
  }
}

/** Wall milliseconds of a record's time (RFC 3339 with nanoseconds); NaN where it is none. */
function recordTimeMs(buffer: Buffer, start: number, timeEnd: number): number {
  return Date.parse(buffer.toString('latin1', start, timeEnd))
}

/**
 * A record's time with all nine digits of its nanoseconds, and a space: what stands before a line
 * (`k8s.io/cri-client/pkg/logs`, RFC3339NanoFixed, 1.36).
 */
function fixedWidthTime(buffer: Buffer, start: number, timeEnd: number): Buffer {
  const text = buffer.toString('latin1', start, timeEnd)
  const parts = /^(.{19})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/u.exec(text)
  if (parts === null) return Buffer.from(`${text} `, 'latin1')
  const [, seconds = '', fraction = '', zone = ''] = parts
  return Buffer.from(`${seconds}.${fraction.padEnd(9, '0')}${zone} `, 'latin1')
}
