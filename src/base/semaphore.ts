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
