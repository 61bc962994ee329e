import type { Clock } from '../base/clock.ts'
import { KeptStream } from '../base/keep-open.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import type { RuntimeEvent, RuntimeEvents } from '../pod/state/observed.ts'
import type { CriClient } from './cri-client.ts'
import { CriError } from './cri-error.ts'

const kinds = {
  CONTAINER_CREATED_EVENT: 'created',
  CONTAINER_STARTED_EVENT: 'started',
  CONTAINER_STOPPED_EVENT: 'exited',
  CONTAINER_DELETED_EVENT: 'deleted',
} as const satisfies Record<cri.ContainerEventType, RuntimeEvent['kind']>

/** How long after an answered call the refusal of a stream may arrive. */
const settleMs = 20

/**
 * The CRI's own event stream (GetContainerEvents): for runtimes that aren't containerd. containerd 1.7 gives each event
 * to one of its listeners only, so it is used only where there is no better one.
 */
export class CriEvents extends KeptStream<RuntimeEvent> implements RuntimeEvents {
  readonly #client: CriClient

  constructor(options: { readonly client: CriClient; readonly clock: Clock }) {
    super(options.clock)
    this.#client = options.client
  }

  /**
   * The stream is silent until the first event, or fails at once where the runtime lacks it. It counts as open when it
   * has outlived a call that was sent after it.
   */
  protected async open(
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
      await this.clock.sleep(settleMs, signal)
    }
    await Promise.race([stream, settled()])
    if (!ended) opened()
    await stream
  }
}
