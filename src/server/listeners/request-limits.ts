import type { Clock } from '../../base/clock.ts'
import { ApiError } from '../requests/api-error.ts'

/** How many requests one client may send at once, and per second afterwards. kubectl itself keeps below 300 and 50. */
const burst = 1000
const perSecond = 200

/** The most clients that are tracked at a time; the least recently active is dropped first. */
const mostClients = 1000

interface Bucket {
  tokens: number
  atMs: number
}

/** Counts the requests of each client over the network. */
export class RequestLimits {
  readonly #clock: Clock
  readonly #buckets = new Map<string, Bucket>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Counts a request of a client. Throws ApiError TooManyRequests. */
  take(client: string): void {
    const now = this.#clock.monotonicMs()
    const bucket = this.#buckets.get(client) ?? { tokens: burst, atMs: now }
    this.#buckets.delete(client)
    this.#buckets.set(client, bucket)
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.atMs) / 1000) * perSecond)
    bucket.atMs = now
    if (bucket.tokens < 1)
      throw new ApiError(429, `too many requests: ${client} may send ${perSecond} in a second`, undefined, {
        retryAfterSeconds: 1,
      })
    bucket.tokens -= 1
    const [oldest] = this.#buckets.keys()
    if (this.#buckets.size > mostClients && oldest !== undefined) this.#buckets.delete(oldest)
  }
}
