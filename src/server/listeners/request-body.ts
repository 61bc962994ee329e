import type { IncomingMessage } from 'node:http'
import { ApiError } from '../requests/api-error.ts'
import type { BodyBudget } from './body-budget.ts'

/** As much as an API server takes (`apiserver/pkg/server/config.go`, MaxRequestBodyBytes, 1.36). */
const mostBodyBytes = 3 * 1024 * 1024

/** What a client sends along with a request: nothing of it is taken from the connection before somebody asks. */
export class RequestBody {
  readonly #request: IncomingMessage
  readonly #budget: BodyBudget
  #isTaken = false
  #heldBytes = 0

  constructor(request: IncomingMessage, budget: BodyBudget) {
    this.#request = request
    this.#budget = budget
  }

  /** Throws ApiError RequestEntityTooLarge where it is said to be too large. */
  refuseLarge(): void {
    if (Number(this.#request.headers['content-length'] ?? 0) > mostBodyBytes) throw tooLarge()
  }

  /**
   * All of it; to be called once. Rejects with ApiError RequestEntityTooLarge, TooManyRequests, or with the connection's
   * error.
   */
  async read(): Promise<Buffer> {
    this.#isTaken = true
    const chunks: Buffer[] = []
    let receivedBytes = 0
    for await (const chunk of this.#request) {
      if (!Buffer.isBuffer(chunk)) continue
      receivedBytes += chunk.length
      if (receivedBytes > mostBodyBytes) throw tooLarge()
      this.#budget.take(chunk.length)
      this.#heldBytes += chunk.length
      chunks.push(chunk)
    }
    return Buffer.concat(chunks)
  }

  /** It is in use no more. */
  release(): void {
    this.#budget.give(this.#heldBytes)
    this.#heldBytes = 0
  }

  /** Reads and drops what was not asked for, so that the client gets to read the answer; too much cuts it off. */
  drop(): void {
    if (this.#isTaken || this.#request.destroyed) return
    let droppedBytes = 0
    this.#request.on('data', (chunk: Buffer) => {
      droppedBytes += chunk.length
      if (droppedBytes > mostBodyBytes) this.#request.destroy()
    })
  }
}

function tooLarge(): ApiError {
  return new ApiError(413, `the request body is larger than ${mostBodyBytes} bytes`)
}
