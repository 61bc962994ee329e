const newline = 0x0a
const space = 0x20
/** An RFC 3339 time with nanoseconds and a zone is shorter. */
const mostTimeBytes = 64

/**
 * The position in a log with times: selects the bytes to print, and after a reconnection only those that were not
 * printed yet. Lines have no numbers: a line is identified by its time, and by the count of lines with that time.
 */
export class LogPosition {
  readonly #showsTimes: boolean
  /**
   * The lines of the newest millisecond, by their full times; `fresh` counts those that the connection still has to
   * repeat.
   */
  #printed = new Map<string, number>()
  #repeats = new Map<string, number>()
  #newestTime: string | undefined
  /** The printed part of the newest, incomplete line. */
  #openBytes = 0
  #isOpen = false
  /** How much of the current line is still to be skipped; Infinity: all of it. */
  #skipBytes = 0
  #head: Buffer | undefined = Buffer.alloc(0)

  constructor(showsTimes: boolean) {
    this.#showsTimes = showsTimes
  }

  /** The time from which to resume; undefined before the first line. */
  get time(): string | undefined {
    return this.#newestTime
  }

  /** The next bytes begin at that time, with a complete line. */
  resume(): void {
    this.#repeats = new Map(this.#printed)
    this.#head = Buffer.alloc(0)
    this.#skipBytes = 0
  }

  push(chunk: Uint8Array): Buffer {
    const parts: Uint8Array[] = []
    for (let at = 0; at < chunk.length;) {
      if (this.#head === undefined) at = this.#takeBody(chunk, at, parts)
      else at = this.#takeHead(chunk, at, parts, this.#head)
    }
    return Buffer.concat(parts)
  }

  /** The time before a line; a line without one, such as an error within the log, is printed unchanged. */
  #takeHead(chunk: Uint8Array, at: number, parts: Uint8Array[], held: Buffer): number {
    const end = chunk.indexOf(space, at)
    const lineEnd = chunk.indexOf(newline, at)
    const stop = end === -1 ? chunk.length : end
    const head = Buffer.concat([held, chunk.subarray(at, stop)])
    if (head.length > mostTimeBytes || (lineEnd !== -1 && lineEnd < stop)) {
      this.#head = undefined
      this.#skipBytes = 0
      parts.push(held)
      return at
    }
    if (end === -1) {
      this.#head = head
      return chunk.length
    }
    this.#head = undefined
    this.#begin(head.toString('latin1'), parts)
    return end + 1
  }

  #begin(time: string, parts: Uint8Array[]): void {
    const repeats = this.#repeats.get(time) ?? 0
    if (repeats > 0) {
      this.#repeats.set(time, repeats - 1)
      const isOpenLine = this.#isOpen && repeats === 1 && time === this.#newestTime
      this.#skipBytes = isOpenLine ? this.#openBytes : Number.POSITIVE_INFINITY
      return
    }
    this.#skipBytes = 0
    // The incomplete line did not continue: this is another one.
    if (this.#isOpen) parts.push(Buffer.from('\n'))
    if (millisecondOf(time) !== millisecondOf(this.#newestTime ?? '')) this.#printed = new Map()
    this.#printed.set(time, (this.#printed.get(time) ?? 0) + 1)
    this.#newestTime = time
    this.#isOpen = true
    this.#openBytes = 0
    if (this.#showsTimes) parts.push(Buffer.from(`${time} `))
  }

  #takeBody(chunk: Uint8Array, at: number, parts: Uint8Array[]): number {
    const lineEnd = chunk.indexOf(newline, at)
    const end = lineEnd === -1 ? chunk.length : lineEnd + 1
    const skipped = Math.min(this.#skipBytes, end - at)
    this.#skipBytes -= skipped
    const rest = chunk.subarray(at + skipped, end)
    if (rest.length > 0) {
      parts.push(rest)
      this.#openBytes += rest.length
    }
    if (lineEnd !== -1) {
      if (rest.length > 0) this.#isOpen = false
      this.#head = Buffer.alloc(0)
    }
    return end
  }
}

/** The first three digits behind the seconds, with all before them. */
function millisecondOf(time: string): string {
  const [, seconds = time, fraction = '', zone = ''] = /^([^.Z+]+)(?:\.(\d+))?(.*)$/u.exec(time) ?? []
  return `${seconds}.${fraction.padEnd(3, '0').slice(0, 3)}${zone}`
}
