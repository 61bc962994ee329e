import type { Clock } from '../base/clock.ts'
import { canOpen, keepOpen } from '../base/keep-open.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import type { RuntimeEvent, RuntimeEvents } from '../pod/state/runtime-event.ts'
import type { CriClient } from './cri-client.ts'
import { CriError } from './cri-error.ts'

const kinds = {
  CONTAINER_CREATED_EVENT: 'created',
  CONTAINER_STARTED_EVENT: 'started',
  CONTAINER_STOPPED_EVENT: 'exited',
  CONTAINER_DELETED_EVENT: 'deleted',
} as const satisfies Record<cri.ContainerEventType, RuntimeEvent['kind']>

/** How much later than an answered call a refused stream may show that it is. */
const settleMs = 20

/**
 * The CRI's own event stream (GetContainerEvents): for runtimes that aren't containerd. containerd 1.7
 * gives each event to one of its listeners only, so this is for when there is no better one.
 */
export class CriEvents implements RuntimeEvents {
  readonly #client: CriClient
  readonly #clock: Clock

  constructor(options: { readonly client: CriClient; readonly clock: Clock }) {
    this.#client = options.client
    this.#clock = options.clock
  }

  /** Whether the runtime has this stream. Rejects where it can't be asked. */
  isServed(signal?: AbortSignal): Promise<boolean> {
    return canOpen((opened, until) => this.#open(() => {}, opened, until), {
      refusal: 'RUNTIME_UNSUPPORTED',
      signal,
    })
  }

  run(onEvent: (event: RuntimeEvent) => void, signal: AbortSignal): Promise<void> {
    return keepOpen({
      clock: this.#clock,
      signal,
      open: (opened) => this.#open(onEvent, opened, signal),
      onOpened: () => onEvent({ kind: 'opened' }),
      onLost: (reason) => onEvent({ kind: 'lost', reason }),
      firstDelayMs: 50,
      longestDelayMs: 5000,
    })
  }

  /**
   * The stream says nothing until something happens, or at once that there is no such thing. It counts as
   * open when it has outlived a call that was sent after it.
   */
  async #open(
    onEvent: (event: RuntimeEvent) => void,
    opened: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { connection, proto, runtime } = this.#client
    await connection.ready(signal)
    const method = proto.service('runtime.v1.RuntimeService')['GetContainerEvents']
    if (method === undefined) throw new CriError('RUNTIME_UNSUPPORTED', 'GetContainerEvents is not defined')
    const onMessage = (message: cri.ContainerEventResponse): void =>
      onEvent({ kind: kinds[message.containerEventType], containerId: message.containerId })
    let ended = false
    const stream = connection.stream(method, {}, onMessage, signal).finally(() => {
      ended = true
    })
    const settled = async (): Promise<void> => {
      await runtime.version({}, { signal })
      await this.#clock.sleep(settleMs, signal)
    }
    await Promise.race([stream, settled()])
    if (!ended) opened()
    await stream
  }
}
