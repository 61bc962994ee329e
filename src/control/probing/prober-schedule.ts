import type { Clock, Timer } from '../../base/clock.ts'

interface Entry<T> {
  readonly dueMs: number
  readonly order: number
  readonly item: T
}

/**
 * When each of many items is due, on one timer. An item has at most one due time; a new one replaces the old. Items
 * that are due at the same moment come in the order of their insertion.
 */
export class ProberSchedule<T extends object> {
  readonly #clock: Clock
  readonly #onDue: (item: T, dueMs: number) => void
  /** A binary heap, the earliest first. Replaced and removed entries stay in it until they are due. */
  readonly #heap: Entry<T>[] = []
  readonly #current = new Map<T, Entry<T>>()
  #order = 0
  #timer: { readonly dueMs: number; readonly timer: Timer } | undefined

  constructor(clock: Clock, onDue: (item: T, dueMs: number) => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /** In monotonic milliseconds. */
  set(item: T, dueMs: number): void {
    if (this.#current.get(item)?.dueMs === dueMs) return
    this.#order += 1
    const entry = { dueMs, order: this.#order, item }
    this.#current.set(item, entry)
    this.#push(entry)
    this.#arm()
  }

  delete(item: T): void {
    this.#current.delete(item)
  }

  get size(): number {
    return this.#current.size
  }

  clear(): void {
    this.#current.clear()
    this.#heap.length = 0
    this.#timer?.timer.cancel()
    this.#timer = undefined
  }

  #fire(): void {
    this.#timer = undefined
    const nowMs = this.#clock.monotonicMs()
    for (let first = this.#heap[0]; first !== undefined && first.dueMs <= nowMs; first = this.#heap[0]) {
      this.#pop()
      if (this.#current.get(first.item) !== first) continue
      this.#current.delete(first.item)
      this.#onDue(first.item, first.dueMs)
    }
    this.#arm()
  }

  #arm(): void {
    let first = this.#heap[0]
    while (first !== undefined && this.#current.get(first.item) !== first) {
      this.#pop()
      first = this.#heap[0]
    }
    if (first?.dueMs === this.#timer?.dueMs) return
    this.#timer?.timer.cancel()
    this.#timer = undefined
    if (first === undefined) return
    const delayMs = first.dueMs - this.#clock.monotonicMs()
    this.#timer = { dueMs: first.dueMs, timer: this.#clock.startTimer(delayMs, () => this.#fire()) }
  }

  #push(entry: Entry<T>): void {
    const heap = this.#heap
    let at = heap.push(entry) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = heap[parent]
      if (above === undefined || !isBefore(entry, above)) break
      heap[at] = above
      at = parent
    }
    heap[at] = entry
  }

  #pop(): void {
    const heap = this.#heap
    const moved = heap.pop()
    if (moved === undefined || heap.length === 0) return
    let at = 0
    for (;;) {
      const left = heap[2 * at + 1]
      const right = heap[2 * at + 2]
      const rightFirst = left !== undefined && right !== undefined && isBefore(right, left)
      const below = rightFirst ? right : left
      if (below === undefined || !isBefore(below, moved)) break
      heap[at] = below
      at = 2 * at + (rightFirst ? 2 : 1)
    }
    heap[at] = moved
  }
}

function isBefore(a: Entry<unknown>, b: Entry<unknown>): boolean {
  return a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.order < b.order)
}
