import { type Clock, sleepUnlessAborted } from '../../base/clock.ts'
import { errorMessage } from '../../base/errors.ts'
import type { Logger } from '../../base/logger.ts'
import { ContainerdEvents, CriEvents, pickRuntimeEvents } from '../../runtime/events.ts'
import type { CriClient } from '../../runtime/cri-client.ts'
import { loadProto } from '../../grpc/load-proto.ts'
import type { EventsCandidate } from '../../runtime/events.ts'
import type { RuntimeEventSource } from './runtime-observer.ts'

/** The delay before an event stream that failed is opened again. */
const eventsRetryMs = 500

/** The best event stream that a runtime has; chosen when it is first listened to, for then the runtime is there. */
export function createEventSource(options: {
  readonly client: CriClient
  readonly clock: Clock
  readonly logger: Logger
}): RuntimeEventSource {
  const { client, clock, logger } = options
  return {
    async run(onEvent, signal) {
      const native = new ContainerdEvents({
        channel: client.connection,
        definitions: loadProto('containerd-events.proto'),
        clock,
      })
      let failure: string | undefined
      const candidates = [native, new CriEvents({ client, clock })]
      while (!signal.aborted) {
        try {
          const chosen = await pickRuntimeEvents<EventsCandidate>(candidates, signal)
          if (chosen === undefined) return onEvent({ kind: 'unserved' })
          return await chosen.run(onEvent, signal)
        } catch (error) {
          if (signal.aborted) return
          const message = errorMessage(error)
          if (message !== failure) logger.warn({ err: error }, 'cannot listen to the events of the runtime')
          failure = message
          await sleepUnlessAborted(clock, eventsRetryMs, signal)
        }
      }
    },
  }
}
