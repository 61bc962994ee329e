import type { WireMethod } from '../grpc/load-proto.ts'
import type { CallChannel } from './call-runtime.ts'
import type { RuntimeConnection } from './runtime-connection.ts'

/**
 * A second connection to the runtime, for calls that the runtime is not to cancel when podd is killed. It counts as
 * connected while the first one is: what is known of the runtime is known of that.
 */
export class KeptChannel implements CallChannel {
  readonly #main: RuntimeConnection
  readonly #kept: RuntimeConnection

  constructor(main: RuntimeConnection, kept: RuntimeConnection) {
    this.#main = main
    this.#kept = kept
  }

  get connections(): number {
    return this.#main.connections
  }

  get isReady(): boolean {
    return this.#main.isReady && this.#kept.isReady
  }

  async ready(signal?: AbortSignal): Promise<void> {
    await this.#main.ready(signal)
    await this.#kept.ready(signal)
  }

  unary<Request, Reply>(
    method: WireMethod<Request, Reply>,
    request: Request,
    signal: AbortSignal,
  ): Promise<Reply> {
    return this.#kept.unary(method, request, signal)
  }

  suspect(): void {
    this.#kept.suspect()
  }
}
