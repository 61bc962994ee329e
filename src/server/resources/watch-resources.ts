import type { ResourceChange, ResourceObject } from '../../api/resource.ts'
import type { RoutedKind } from '../../api/served-kind.ts'
import type { Clock } from '../../base/clock.ts'
import { PoddError } from '../../base/errors.ts'
import { ApiError, toStatusObject } from '../requests/api-error.ts'
import type { ResourceReader } from '../requests/readers.ts'
import type { WatchOptions } from './list-options.ts'
import type { Bookmark, Representation } from './representation.ts'

/**
 * A watcher with this many unread bytes is cut off; it may resume where it stopped. Many changes can come at once,
 * before any client had time to read: with more than `muchBytes` it has `muchForMs`.
 */
const maxWaitingBytes = 8 * 1024 * 1024
const muchBytes = 1024 * 1024
const muchForMs = 1000

/** The interval of bookmarks, for watchers that request them (as in an API server's watch cache). */
const bookmarkPeriodMs = 60_000

interface Watcher {
  readonly form: Representation
  readonly signal: AbortSignal
  /** Cuts the client off, whatever is still unsent. */
  readonly cutOff: () => void
}

/**
 * The lines of a watch: the existing objects, or the changes since a revision, then each change. Ends with the signal
 * or its timeout. Fails with CLIENT_GONE, and has the client cut off, once too much is unread. Unread changes are kept
 * as the objects and lines that all watchers share.
 */
export async function* watchResources(
  kind: RoutedKind,
  reader: ResourceReader<ResourceObject>,
  options: WatchOptions & { readonly timeoutSeconds: number },
  { form, signal, cutOff }: Watcher,
  lines: WatchLines,
  clock: Clock,
): AsyncGenerator<Uint8Array, void> {
  const { accepts, revision, sendInitialEvents, bookmarks, timeoutSeconds } = options
  const begun = reader.revision
  const missed = revision === undefined || sendInitialEvents === true ? [] : reader.changesAfter(revision)
  // The list would be older than requested (apimachinery, NewTooLargeResourceVersionError).
  const isFuture = sendInitialEvents === true && revision !== undefined && revision > begun
  if (missed === undefined || isFuture) {
    const error = isFuture
      ? new ApiError(504, `Too large resource version: ${revision}, current: ${begun}`)
      : new ApiError(410, `too old resource version: ${revision} (${begun})`)
    yield encodeLine({ type: 'ERROR', object: toStatusObject(error) })
    return
  }
  const showsAll = sendInitialEvents ?? revision === undefined
  const listed = showsAll ? reader.list().filter((object) => accepts(object)) : []
  const encoder = new EventEncoder(form, lines)
  const backlog = new Backlog(clock, signal, cutOff)
  const take = (change: ResourceChange<ResourceObject>): void => {
    // A watch from a future revision is silent until then.
    if (change.revision <= (revision ?? 0)) return
    const line = lineFor(change, accepts, encoder)
    if (line !== undefined) backlog.push(line)
  }
  for (const change of missed) take(change)
  const unsubscribe = reader.subscribe(take)
  const periods = bookmarks
    ? startPeriods(clock, bookmarkPeriodMs, () => backlog.wake('bookmark'))
    : undefined
  const end = clock.startTimer(timeoutSeconds * 1000, () => backlog.wake('end'))
  try {
    for (const object of listed) yield encoder.encode('ADDED', object)
    if (bookmarks && sendInitialEvents === true) yield encoder.encodeBookmark(bookmark(kind, begun, true))
    for (;;) {
      const next = await backlog.next()
      if (next === 'end') return
      if (next !== 'bookmark') yield next
      else if (reader.revision >= (revision ?? 0))
        yield encoder.encodeBookmark(bookmark(kind, reader.revision, false))
    }
  } finally {
    unsubscribe()
    periods?.cancel()
    end.cancel()
    backlog.close()
  }
}

/** The change as this watcher sees it: for it, an object exists while it meets the selectors. */
function lineFor(
  change: ResourceChange<ResourceObject>,
  accepts: (object: ResourceObject) => boolean,
  encoder: EventEncoder,
): Uint8Array | undefined {
  const { type, object, previous } = change
  const was = previous !== undefined && accepts(previous)
  const is = type !== 'DELETED' && accepts(object)
  if (!was && !is) return undefined
  const seen = was ? (is ? 'MODIFIED' : 'DELETED') : 'ADDED'
  if (seen === type) return encoder.encodeChange(change)
  if (seen !== 'DELETED' || previous === undefined) return encoder.encode(seen, object)
  // The object as it was before, at the revision of the change.
  const { resourceVersion = '' } = object.metadata
  return encoder.encode(seen, { ...previous, metadata: { ...previous.metadata, resourceVersion } })
}

function bookmark(kind: RoutedKind, revision: number, endsInitialEvents: boolean): Bookmark {
  const annotations = endsInitialEvents ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}
  const metadata = { resourceVersion: String(revision), ...annotations }
  return { kind: kind.kind, apiVersion: kind.apiVersion, metadata }
}

function startPeriods(clock: Clock, periodMs: number, fire: () => void): { cancel(): void } {
  let timer = clock.startTimer(periodMs, tick)
  function tick(): void {
    fire()
    timer = clock.startTimer(periodMs, tick)
  }
  return { cancel: () => timer.cancel() }
}

/** The unsent changes of one watcher. */
class Backlog {
  readonly #clock: Clock
  readonly #signal: AbortSignal
  readonly #tellCutOff: () => void
  readonly #lines: Uint8Array[] = []
  #waitingBytes = 0
  #wanted: 'bookmark' | 'end' | undefined
  #overrun = false
  #wake: (() => void) | undefined
  /** Runs while too much is unread. */
  #much: ReturnType<Clock['startTimer']> | undefined

  constructor(clock: Clock, signal: AbortSignal, cutOff: () => void) {
    this.#clock = clock
    this.#signal = signal
    this.#tellCutOff = cutOff
    signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  readonly #onAbort = (): void => this.wake('end')

  push(line: Uint8Array): void {
    if (this.#overrun) return
    this.#lines.push(line)
    this.#waitingBytes += line.length
    this.#wake?.()
    if (this.#waitingBytes > maxWaitingBytes) this.#cutOff()
    else if (this.#waitingBytes > muchBytes)
      this.#much ??= this.#clock.startTimer(muchForMs, () => {
        this.#much = undefined
        if (this.#waitingBytes > muchBytes) this.#cutOff()
      })
  }

  wake(what: 'bookmark' | 'end'): void {
    if (this.#wanted !== 'end') this.#wanted = what
    this.#wake?.()
  }

  /** The next line, or the next due bookmark while no line waits. Throws PoddError CLIENT_GONE. */
  async next(): Promise<Uint8Array | 'bookmark' | 'end'> {
    for (;;) {
      if (this.#overrun) throw new PoddError('CLIENT_GONE', 'the client does not read what it watches')
      if (this.#signal.aborted) return 'end'
      const line = this.#lines.shift()
      if (line !== undefined) {
        this.#waitingBytes -= line.length
        return line
      }
      const due = this.#wanted
      this.#wanted = undefined
      if (due !== undefined) return due
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#wake = undefined
    }
  }

  close(): void {
    this.#much?.cancel()
    this.#signal.removeEventListener('abort', this.#onAbort)
  }

  #cutOff(): void {
    this.#overrun = true
    this.#lines.length = 0
    this.#wake?.()
    this.#tellCutOff()
  }
}

/** Writes the events of one watch in the form that its client asked for. */
class EventEncoder {
  readonly #form: Representation
  readonly #lines: WatchLines
  #hasColumns = false

  constructor(form: Representation, lines: WatchLines) {
    this.#form = form
    this.#lines = lines
  }

  encodeChange(change: ResourceChange<ResourceObject>): Uint8Array {
    return this.#form.isPlain ? this.#lines.lineOf(change) : this.encode(change.type, change.object)
  }

  encode(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: ResourceObject): Uint8Array {
    const shown = this.#form.single(object)
    const further = this.#isFurtherTable(shown) ? { ...shown, columnDefinitions: null } : shown
    return encodeLine({ type, object: further })
  }

  encodeBookmark(bookmark: Bookmark): Uint8Array {
    return encodeLine({ type: 'BOOKMARK', object: this.#form.bookmark(bookmark) })
  }

  /** Only the first table of a watch has the column definitions. */
  #isFurtherTable(shown: unknown): shown is { readonly columnDefinitions: unknown } {
    if (typeof shown !== 'object' || shown === null || !('columnDefinitions' in shown)) return false
    const isFurther = this.#hasColumns
    this.#hasColumns = true
    return isFurther
  }
}

/** The lines of watches: all clients of a change share its bytes while any of them waits for it. */
export class WatchLines {
  readonly #lines = new WeakMap<ResourceChange<unknown>, Uint8Array>()

  /** The line of a change; the same bytes for each client. */
  lineOf(change: ResourceChange<unknown>): Uint8Array {
    const known = this.#lines.get(change)
    if (known !== undefined) return known
    const line = encodeLine({ type: change.type, object: change.object })
    this.#lines.set(change, line)
    return line
  }
}

/** A watch's line, in memory of its own: one in a buffer of Node's pool would keep the whole pool alive. */
function encodeLine(line: { readonly type: string; readonly object: unknown }): Uint8Array {
  return new TextEncoder().encode(`${JSON.stringify(line)}\n`)
}
