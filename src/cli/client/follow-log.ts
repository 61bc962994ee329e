import { sleepUnlessAborted } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import { errorCode } from '../../base/errors.ts'
import type { ApiClient } from './client.ts'

/** How long a restarting daemon may be unavailable, and the interval of retries. */
const awayMs = 60_000
const againMs = 500

/** The responses of a daemon that is stopping or starting. */
const away: readonly (string | undefined)[] = [
  'DAEMON_GONE',
  'DAEMON_NOT_RUNNING',
  'DAEMON_SILENT',
  'API_ServiceUnavailable',
]

/**
 * Follows a log over restarts of the daemon: each line is printed once, and no kept line is lost. Throws the daemon's
 * errors, and PoddError where the daemon is unavailable for a minute.
 */
export async function* followLog(
  client: Pick<ApiClient, 'stream'>,
  clock: Clock,
  path: string,
  query: URLSearchParams,
  signal: AbortSignal,
  notify: (line: string) => void,
): AsyncGenerator<Uint8Array, void> {
  const position = new LogPosition(query.has('timestamps'))
  const asked = new URLSearchParams(query)
  asked.set('timestamps', 'true')
  let goneMs: number | undefined
  for (;;) {
    try {
      for await (const chunk of client.stream(`${path}?${asked.toString()}`, signal)) {
        goneMs = undefined
        const bytes = position.push(chunk)
        if (bytes.length > 0) yield bytes
      }
      return
    } catch (error) {
      const nowMs = clock.monotonicMs()
      // Before the first output an error is thrown at once.
      const isFirst =
        goneMs === undefined && position.time === undefined && errorCode(error) !== 'DAEMON_GONE'
      if (isFirst || signal.aborted || !away.includes(errorCode(error))) throw error
      if (goneMs === undefined) notify('podd is unavailable; waiting for it to return')
      goneMs ??= nowMs
      if (nowMs - goneMs >= awayMs) throw error
    }
    await sleepUnlessAborted(clock, againMs, signal)
    if (signal.aborted) return
    position.resume()
    if (position.time === undefined) continue
    for (const name of ['tailLines', 'sinceSeconds']) asked.delete(name)
    asked.set('sinceTime', position.time)
  }
}

const newline = 0x0a
const space = 0x20
/** An RFC 3339 time with nanoseconds and a zone is shorter. */
const maxTimeBytes = 64

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
    if (head.length > maxTimeBytes || (lineEnd !== -1 && lineEnd < stop)) {
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

interface PrefixedStream {
  readonly prefix: string
  readonly chunks: AsyncIterable<Uint8Array>
}

/** Merges streams by whole lines, one after the other with `inTurn`; fails when one fails. */
export async function* mergeLines(
  streams: readonly PrefixedStream[],
  { inTurn }: { readonly inTurn: boolean },
): AsyncGenerator<Uint8Array, void> {
  if (inTurn) {
    for (const stream of streams) yield* prefixLines(stream)
    return
  }
  const iterators = streams.map((stream) => prefixLines(stream))
  const next = async (index: number) => ({ index, step: await iterators[index]?.next() })
  const pending = new Map(iterators.map((_, index) => [index, next(index)]))
  try {
    while (pending.size > 0) {
      const { index, step } = await Promise.race(pending.values())
      if (step === undefined || step.done === true) {
        pending.delete(index)
        continue
      }
      pending.set(index, next(index))
      yield step.value
    }
  } finally {
    // The readers that still wait end with the call's signal; their results are dropped.
    for (const waiting of pending.values()) waiting.catch(() => {})
  }
}

async function* prefixLines({ prefix, chunks }: PrefixedStream): AsyncGenerator<Uint8Array, void> {
  const head = Buffer.from(prefix)
  let rest: Uint8Array[] = []
  for await (const chunk of chunks) {
    // A line may span many chunks: its pieces are joined once.
    if (chunk.indexOf(newline) === -1) {
      rest.push(chunk)
      continue
    }
    const text = Buffer.concat([...rest, chunk])
    const lines: Buffer[] = []
    let start = 0
    for (let end = text.indexOf(newline); end !== -1; end = text.indexOf(newline, start)) {
      lines.push(head, text.subarray(start, end + 1))
      start = end + 1
    }
    rest = start < text.length ? [text.subarray(start)] : []
    if (lines.length > 0) yield Buffer.concat(lines)
  }
  if (rest.length > 0) yield Buffer.concat([head, ...rest, Buffer.from('\n')])
}
