import { ApiError } from '../requests/api-error.ts'

/** The most bytes that the bodies of all requests of one listener may hold in memory at a time. */
const mostBytes = 64 * 1024 * 1024

/** Counts the bytes of request bodies in memory. */
export class BodyBudget {
  #heldBytes = 0

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Throws ApiError TooManyRequests where there is no room. */
  take(bytes: number): void {
    if (this.#heldBytes + bytes > mostBytes)
      throw new ApiError(429, 'too many large requests at a time: try again', undefined, {
        retryAfterSeconds: 1,
      })
    this.#heldBytes += bytes
  }

  give(bytes: number): void {
    this.#heldBytes -= bytes
  }
}
