import type { ServerResponse } from 'node:http'
import type { WatchEvent } from '../api/resource.ts'
import type { Timer } from '../base/clock.ts'
import type { Unsubscribe } from './readers.ts'
import type { Patience } from './respond.ts'
import { encodeLine } from './watch-lines.ts'
import type { WatchLines } from './watch-lines.ts'

/**
 * A watcher for which so many bytes of changes wait is cut off; it may ask again and gets the present state. Many
 * changes can come at once, before any client has had the time to read: with `muchBytes` it gets `muchForMs`.
 */
const mostWaitingBytes = 8 * 1024 * 1024
const muchBytes = 1024 * 1024
const muchForMs = 1000

export interface WatchSource<T> {
  list(): readonly T[]
  /** Each change is one object, the same for all listeners. */
  watch(listener: (change: WatchEvent<T>) => void): Unsubscribe
  /** Whether the client asked for this one. */
  accepts(object: T): boolean
}

export interface WatchRequest<T> extends Patience {
  readonly source: WatchSource<T>
  readonly lines: WatchLines
  readonly signal: AbortSignal
}

/**
 * What is there as ADDED lines, then each change, until the signal cuts it off. Takes the next line only when the
 * client has room for it: what waits is kept as the objects and lines that all watchers share.
 */
export function respondWatch<T>(response: ServerResponse, request: WatchRequest<T>): Promise<void> {
  const { source, signal } = request
  response.writeHead(200, { 'content-type': 'application/json;stream=watch' })
  response.flushHeaders()
  const backlog = new WatchBacklog(response, request)
  const unsubscribe = source.watch((change) => backlog.push(change))
  backlog.sendOn()
  return new Promise((resolve) => {
    const end = (): void => {
      unsubscribe()
      backlog.close()
      response.destroy()
      resolve()
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  })
}

/** What one client has still to be sent. */
class WatchBacklog<T> {
  readonly #response: ServerResponse
  readonly #request: WatchRequest<T>
  /** What was there at the beginning, the last one first. */
  readonly #listed: T[]
  readonly #changes: Uint8Array[] = []
  #waitingBytes = 0
  /** Runs while the client has no room. */
  #unread: Timer | undefined
  /** Runs while much waits. */
  #much: Timer | undefined

  constructor(response: ServerResponse, request: WatchRequest<T>) {
    this.#response = response
    this.#request = request
    this.#listed = request.source
      .list()
      .filter((object) => request.source.accepts(object))
      .reverse()
    response.on('drain', () => {
      this.#unread?.cancel()
      this.#unread = undefined
      this.sendOn()
    })
  }

  push(change: WatchEvent<T>): void {
    const { source, lines, clock } = this.#request
    if (!source.accepts(change.object)) return
    const line = lines.lineOf(change)
    this.#changes.push(line)
    this.#waitingBytes += line.length
    this.sendOn()
    if (this.#waitingBytes > mostWaitingBytes) this.#response.destroy()
    if (this.#waitingBytes > muchBytes) this.#much ??= clock.startTimer(muchForMs, () => this.#judge())
  }

  /** Sends what the client has room for. */
  sendOn(): void {
    const { clock, unreadMs } = this.#request
    while (this.#unread === undefined && !this.#response.destroyed) {
      const line = this.#next()
      if (line === undefined) return
      if (!this.#response.write(line))
        this.#unread = clock.startTimer(unreadMs, () => this.#response.destroy())
    }
  }

  close(): void {
    this.#unread?.cancel()
    this.#much?.cancel()
  }

  #judge(): void {
    this.#much = undefined
    if (this.#waitingBytes > muchBytes) this.#response.destroy()
  }

  #next(): Uint8Array | undefined {
    const object = this.#listed.pop()
    if (object !== undefined) return encodeLine({ type: 'ADDED', object })
    const line = this.#changes.shift()
    this.#waitingBytes -= line?.length ?? 0
    return line
  }
}
