import type { PortOption } from '../../api/routes.ts'
import { PoddError, errorMessage } from '../../base/errors.ts'
import { formatAddress } from '../../config/api-options.ts'
import type { ListenAddress } from '../../config/api-options.ts'

/** A port at which podd listens, or tries to. */
export interface ServedPort {
  readonly option: PortOption
  readonly address: ListenAddress
  /** Why podd doesn't listen there: what the last attempt failed with. Undefined where it listens, or didn't try yet. */
  readonly problem: string | undefined
  /**
   * Listens; does nothing where podd does already, or is stopping.
   * @throws PoddError SOCKET_FAILED, or the system's error for files that are needed; it can be called again
   */
  open(): Promise<void>
}

export interface OpenPort {
  close(graceMs: number): Promise<void>
}

/** Opens a port once, however often it is asked to: only an attempt that failed is repeated. */
export class PortOpener<T extends OpenPort> {
  readonly #listen: () => Promise<T>
  #opening: Promise<T> | undefined
  #isClosed = false
  #problem: string | undefined

  constructor(listen: () => Promise<T>) {
    this.#listen = listen
  }

  /** What the last attempt failed with. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Throws what `listen` throws. */
  async open(): Promise<void> {
    if (this.#isClosed) return
    this.#opening ??= this.#listen()
    const opening = this.#opening
    try {
      await opening
      this.#problem = undefined
    } catch (error) {
      this.#problem = errorMessage(error)
      if (this.#opening === opening) this.#opening = undefined
      throw error
    }
  }

  async close(graceMs: number): Promise<void> {
    this.#isClosed = true
    // An attempt may be in flight; one that failed has left nothing.
    const port = await this.#opening?.catch(() => undefined)
    await port?.close(graceMs)
  }
}

export function cannotListen(address: ListenAddress, option: PortOption, cause: unknown): PoddError {
  return new PoddError(
    'SOCKET_FAILED',
    `cannot listen at ${formatAddress(address)}: ${errorMessage(cause)}`,
    { cause, hint: `See which process has the port (ss -ltnp), or choose another address with ${option}.` },
  )
}
