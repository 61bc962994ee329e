import type { IncomingMessage } from 'node:http'
import { ApiError } from '../requests/api-error.ts'
import type { BodyBudget } from './body-budget.ts'

/** The same limit as an API server's (`apiserver/pkg/server/config.go`, MaxRequestBodyBytes, 1.36). */
const mostBodyBytes = 3 * 1024 * 1024

/** The body of a request. Nothing is read from the connection before the handler asks for it. */
export class RequestBody {
  readonly #request: IncomingMessage
  readonly #budget: BodyBudget
  #isTaken = false
  #heldBytes = 0

  constructor(request: IncomingMessage, budget: BodyBudget) {
    this.#request = request
    this.#budget = budget
  }

  /** Throws ApiError RequestEntityTooLarge where its Content-Length is too large. */
  refuseLarge(): void {
    if (Number(this.#request.headers['content-length'] ?? 0) > mostBodyBytes) throw tooLarge()
  }

  /**
   * Reads the whole body; call it once. Rejects with ApiError RequestEntityTooLarge, TooManyRequests, or with the
   * connection's error.
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

  /** Releases the body's memory budget. */
  release(): void {
    this.#budget.give(this.#heldBytes)
    this.#heldBytes = 0
  }

  /**
   * Reads and drops an unread body, so that the client gets to read the response. Cuts off a client that sends too
   * much.
   */
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
