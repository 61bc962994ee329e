import { once } from 'node:events'
import { sleepUnlessAborted } from './clock.ts'
import type { Clock } from './clock.ts'

/** Admits at most `limit` callers at a time, first come first served. */
export class Semaphore {
  #free: number
  readonly #waiting = new Set<() => void>()

  constructor(limit: number) {
    this.#free = limit
  }

  /**
   * Runs `work` when a slot is free, and frees the slot however it ends. Throws the signal's reason where it is aborted
   * before that: the caller leaves the queue, and `work` isn't begun.
   */
  async run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    signal?.throwIfAborted()
    if (this.#free > 0) this.#free -= 1
    else await waitInQueue(this.#waiting, signal)
    try {
      signal?.throwIfAborted()
      return await work()
    } finally {
      const [next] = this.#waiting
      if (next === undefined) this.#free += 1
      else {
        this.#waiting.delete(next)
        next()
      }
    }
  }
}

/**
 * Waits in a queue until whoever takes the entry out of it calls it, with what is resolved. Throws the signal's reason
 * where it is aborted before that, and leaves the queue.
 */
export function waitInQueue<Turn>(queue: Set<(turn: Turn) => void>, signal?: AbortSignal): Promise<Turn> {
  return new Promise((resolve, reject) => {
    const enter = (turn: Turn): void => {
      signal?.removeEventListener('abort', leave)
      resolve(turn)
    }
    const leave = (): void => {
      if (queue.delete(enter)) reject(signal?.reason)
    }
    queue.add(enter)
    signal?.addEventListener('abort', leave, { once: true })
  })
}

/**
 * Does the work for each of these, for so many at a time (32, where it waits for the disk), and gives what it gave in their
 * order. Throws what it throws first.
 */
export async function mapBounded<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
  atOnce = 32,
): Promise<Result[]> {
  const results: Result[] = []
  const left = items.entries()
  const take = async (): Promise<void> => {
    for (const [at, item] of left) results[at] = await work(item)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, take))
  return results
}

/**
 * Work that reads what there is and replaces what was made of it: one run at a time, so that none overwrites what a later one
 * made. Those who ask while one is in flight share the next, which sees all that was there when they asked.
 */
export class JoinedRuns {
  readonly #work: () => Promise<void>
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(work: () => Promise<void>) {
    this.#work = work
  }

  /** Throws what the work throws. */
  run(): Promise<void> {
    if (this.#running === undefined) return this.#begin()
    this.#next ??= this.#running.then(
      () => this.#begin(),
      // Whoever asked for that run is told.
      () => this.#begin(),
    )
    return this.#next
  }

  #begin(): Promise<void> {
    this.#next = undefined
    const running = this.#work().finally(() => {
      if (this.#running === running) this.#running = undefined
    })
    this.#running = running
    return running
  }
}

/**
 * Wakes one waiter for many senders. Calls before the waiter runs count as one: it reads the newest facts, so a queue
 * would only repeat work.
 */
export class WakeSlot {
  #knocked = false
  #resolve: (() => void) | undefined

  wake(): void {
    this.#knocked = true
    const resolve = this.#resolve
    this.#resolve = undefined
    resolve?.()
  }

  /** Resolves at the next wake, or at once if there was one since the last wait. One waiter at a time. */
  async wait(): Promise<void> {
    if (!this.#knocked) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve
      })
    }
    this.#knocked = false
  }
}

/** Waits for `work` or for the signal, whichever comes first; `work` itself is not cancelled. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  signal?.throwIfAborted()
  const aborted = Promise.withResolvers<never>()
  const onAbort = (): void => aborted.reject(signal?.reason)
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    return await Promise.race([work, aborted.promise])
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
}

/** Resolves once the signal is aborted. */
export async function whenAborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** Waits for all; returns their results, or throws the error of the first in the list that failed. */
export async function settleAll<T>(work: readonly Promise<T>[]): Promise<T[]> {
  // The list may grow meanwhile: only its current entries are awaited.
  return Promise.allSettled(work).then((results) =>
    results.map((result) => {
      if (result.status === 'rejected') throw result.reason
      return result.value
    }),
  )
}

/**
 * Tells all who wait for a condition that what they look at may have changed: each looks again then, and at no other time.
 * Whoever changes the state notes it afterwards.
 */
export class Changes {
  readonly #waiting = new Set<() => void>()

  /** Wakes all that wait now. */
  note(): void {
    for (const wake of this.#waiting) wake()
  }

  /** Resolves at the next change, or after `timeoutMs`. Rejects with the signal's reason. */
  async next(clock: Clock, timeoutMs: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    const woken = new AbortController()
    const wake = (): void => woken.abort()
    this.#waiting.add(wake)
    const ends = signal === undefined ? woken.signal : AbortSignal.any([woken.signal, signal])
    await sleepUnlessAborted(clock, timeoutMs, ends)
    this.#waiting.delete(wake)
    signal?.throwIfAborted()
  }

  /**
   * Resolves with true as soon as something holds, and with false after `timeoutMs`. Rejects with the signal's reason, and with
   * what `holds` throws.
   */
  async until(holds: () => boolean, clock: Clock, timeoutMs: number, signal?: AbortSignal): Promise<boolean> {
    const endMs = clock.monotonicMs() + timeoutMs
    for (;;) {
      if (holds()) return true
      const leftMs = endMs - clock.monotonicMs()
      if (leftMs <= 0) return false
      await this.next(clock, leftMs, signal)
    }
  }
}

/** Tokens that come back at a steady rate, up to `burst` of them. */
export class TokenBucket {
  readonly #perSecond: number
  readonly #burst: number
  #tokens: number
  #filledAtMs: number

  constructor(perSecond: number, burst: number, nowMs: number) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#tokens = burst
    this.#filledAtMs = nowMs
  }

  /** Takes one. Returns in how many milliseconds it is there: 0 where it is now. */
  take(nowMs: number): number {
    const filled = this.#tokens + ((nowMs - this.#filledAtMs) / 1000) * this.#perSecond
    this.#filledAtMs = nowMs
    this.#tokens = Math.min(this.#burst, filled) - 1
    return Math.max(0, (-this.#tokens / this.#perSecond) * 1000)
  }

  /** Takes one where it is there now, and else none. */
  takeNow(nowMs: number): boolean {
    const isThere = this.take(nowMs) === 0
    if (!isThere) this.giveBack()
    return isThere
  }

  /** Of one that was taken and isn't used. */
  giveBack(): void {
    this.#tokens += 1
  }
}
