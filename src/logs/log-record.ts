/** One physical line of a CRI log: `<time> stdout|stderr P|F <text>`, as offsets into the buffer it stands in. */
export interface LogRecord {
  readonly stream: 'stdout' | 'stderr'
  /** Whether the line continues in the stream's next record. */
  readonly partial: boolean
  /** The time is the text from the record's start to here. */
  readonly timeEnd: number
  readonly textStart: number
}

const space = 0x20
const letterT = 0x54
const letterZ = 0x5a
/** Longer than any time. */
const longestTime = 64
/** `2026-01-31T09:30:00` */
const secondsLength = 19

/**
 * Reads the head of the record that stands in `buffer` from `start` to `end` (its newline not included);
 * undefined where it is no such record (CRI's log format, kubernetes design-proposals `kubelet-cri-logging`).
 */
export function parseLogRecord(buffer: Uint8Array, start: number, end: number): LogRecord | undefined {
  const timeEnd = findSpace(buffer, start, Math.min(end, start + longestTime))
  // `stdout` and `stderr` have six letters; a tag, or tags joined by colons, and a space follow.
  const streamEnd = timeEnd + 7
  if (timeEnd - start <= secondsLength || buffer[start + 10] !== letterT) return undefined
  if (streamEnd + 2 > end || buffer[streamEnd] !== space) return undefined
  const stream = streamName(buffer, timeEnd + 1)
  if (stream === undefined) return undefined
  const tag = buffer[streamEnd + 1]
  if (tag !== 0x50 && tag !== 0x46) return undefined
  const found = findSpace(buffer, streamEnd + 1, end)
  const tagEnd = found < 0 ? end : found
  return { stream, partial: tag === 0x50, timeEnd, textStart: Math.min(tagEnd + 1, end) }
}

/** Never reads beyond `end`, where other records follow. */
function findSpace(buffer: Uint8Array, start: number, end: number): number {
  for (let at = start; at < end; at += 1) if (buffer[at] === space) return at
  return -1
}

function streamName(buffer: Uint8Array, start: number): 'stdout' | 'stderr' | undefined {
  if (buffer[start] !== 0x73 || buffer[start + 1] !== 0x74 || buffer[start + 2] !== 0x64) return undefined
  const rest = String.fromCharCode(...buffer.subarray(start + 3, start + 6))
  if (rest === 'out') return 'stdout'
  return rest === 'err' ? 'stderr' : undefined
}

/** Wall milliseconds of a record's time (RFC 3339 with nanoseconds); NaN where it is none. */
export function recordTimeMs(buffer: Buffer, start: number, timeEnd: number): number {
  return Date.parse(buffer.toString('latin1', start, timeEnd))
}

/**
 * A record's time with all nine digits of its nanoseconds, and a space: what stands before a line
 * (`k8s.io/cri-client/pkg/logs`, RFC3339NanoFixed, 1.36).
 */
export function fixedWidthTime(buffer: Buffer, start: number, timeEnd: number): Buffer {
  const text = buffer.toString('latin1', start, timeEnd)
  const parts = /^(.{19})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/u.exec(text)
  if (parts === null) return Buffer.from(`${text} `, 'latin1')
  const [, seconds = '', fraction = '', zone = ''] = parts
  return Buffer.from(`${seconds}.${fraction.padEnd(9, '0')}${zone} `, 'latin1')
}

/** The last moment that has a year of four digits. */
const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

/** Whether a record is older than a moment; usually decided by comparing bytes. */
export class RecordAge {
  readonly #sinceMs: number
  readonly #sinceSeconds: Buffer

  /** @param sinceMs wall milliseconds */
  constructor(sinceMs: number) {
    this.#sinceMs = Math.min(Math.max(sinceMs, 0), lastMs)
    this.#sinceSeconds = Buffer.from(new Date(this.#sinceMs).toISOString().slice(0, secondsLength))
  }

  /** Examines each record separately, since times decrease where the clock was set back. */
  isOld(buffer: Buffer, start: number, timeEnd: number): boolean {
    if (buffer[timeEnd - 1] === letterZ) {
      const order = buffer.compare(this.#sinceSeconds, 0, secondsLength, start, start + secondsLength)
      if (order !== 0) return order < 0
    }
    return recordTimeMs(buffer, start, timeEnd) < this.#sinceMs
  }
}
