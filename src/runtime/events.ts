import type { Clock } from '../base/clock.ts'
import { isJsonObject } from '../base/json.ts'
import { KeptStream } from '../base/keep-open.ts'
import { newUuid } from '../base/random.ts'
import { loadProto } from '../grpc/load-proto.ts'
import type { WireMethod } from '../grpc/load-proto.ts'
import type { ProcessExit, RuntimeEvent } from '../pod/state/observed.ts'
import { criHeaders, criNamespace, methodOf } from './containerd/records.ts'
import type { ContainerdChannel } from './containerd/records.ts'

/** What each topic means, and where its payload has the container's id. */
const topics = {
  '/containers/create': { message: 'ContainerCreate', idField: 'id', kind: 'created' },
  '/containers/delete': { message: 'ContainerDelete', idField: 'id', kind: 'deleted' },
  '/tasks/start': { message: 'TaskStart', idField: 'containerId', kind: 'started' },
  '/tasks/exit': { message: 'TaskExit', idField: 'containerId', kind: 'exited' },
  '/tasks/delete': { message: 'TaskDelete', idField: 'containerId', kind: 'exited' },
  '/tasks/oom': { message: 'TaskOOM', idField: 'containerId', kind: 'oom' },
} as const

type Topic = keyof typeof topics

function isTopic(topic: unknown): topic is Topic {
  return typeof topic === 'string' && Object.hasOwn(topics, topic)
}

const packageName = 'containerd.services.events.v1'

/** The interval and number of attempts to find that the subscription is in force. */
const markerRetryMs = 20
const markerTries = 50

/**
 * containerd's own event stream: served on its socket by every release, and a millisecond behind the kernel. It reports
 * an exit before CRI's status shows it: first when the process ended, and again when its task was deleted, right before
 * CRI records it. After the first event CRI may have to be asked twice. (CRI's GetContainerEvents is no other way to the
 * same: containerd 1.7 gives each event to one of its listeners only, and CRI-O serves it only where it is told to.)
 */
export class ContainerdEvents extends KeptStream<RuntimeEvent> {
  readonly #channel: ContainerdChannel
  readonly #service: Readonly<Record<string, WireMethod>>
  readonly #decoders: ReadonlyMap<string, (bytes: Buffer) => object>

  constructor(channel: ContainerdChannel, clock: Clock) {
    super(clock)
    this.#channel = channel
    const proto = loadProto('containerd-events.proto')
    this.#service = proto.service(`${packageName}.Events`)
    const messages = Object.values(topics).map(({ message }) => message)
    this.#decoders = new Map(messages.map((name) => [name, proto.decoder(`${packageName}.${name}`)]))
  }

  /**
   * The protocol doesn't tell when a subscription is in force, and earlier events are never sent. So podd publishes an
   * event of its own until the stream delivers it: from then on no event is missed.
   */
  protected async open(
    onEvent: (event: RuntimeEvent) => void,
    opened: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#channel.ready(signal)
    const marker = `/podd/${newUuid()}`
    const inForce = new AbortController()
    const ended = new AbortController()
    const onEnvelope = (envelope: object): void => {
      if (!isJsonObject(envelope)) return
      if (envelope['topic'] === marker) inForce.abort()
      const event = this.#readEvent(envelope)
      if (event !== undefined) onEvent(event)
    }
    const filters = [...Object.keys(topics), marker].map(
      (topic) => `namespace=="${criNamespace}",topic=="${topic}"`,
    )
    const subscribe = methodOf(this.#service, 'Subscribe')
    const stream = this.#channel.stream(subscribe, { filters }, onEnvelope, signal)
    // `await stream` below throws it.
    stream.catch(() => undefined).finally(() => ended.abort())
    await this.#mark(marker, AbortSignal.any([inForce.signal, ended.signal, signal]))
    if (!ended.signal.aborted && !signal.aborted) opened()
    await stream
  }

  /** Publishes the marker until `stop`; gives up after a second, or where publishing is not allowed. */
  async #mark(topic: string, stop: AbortSignal): Promise<void> {
    const request = { topic, event: { typeUrl: 'google.protobuf.Empty', value: Buffer.alloc(0) } }
    try {
      for (let tries = 0; tries < markerTries && !stop.aborted; tries += 1) {
        await this.#channel.unary(methodOf(this.#service, 'Publish'), request, stop, criHeaders)
        await this.clock.sleep(markerRetryMs, stop)
      }
    } catch {
      // The stream itself reports what is wrong.
    }
  }

  #readEvent(envelope: Readonly<Record<string, unknown>>): RuntimeEvent | undefined {
    const { topic, event } = envelope
    if (!isTopic(topic) || !isJsonObject(event)) return undefined
    const { message, idField, kind } = topics[topic]
    const bytes: unknown = event['value']
    const payload = Buffer.isBuffer(bytes) ? this.#decoders.get(message)?.(bytes) : undefined
    if (!isJsonObject(payload)) return undefined
    const containerId = payload[idField]
    if (typeof containerId !== 'string') return undefined
    const { id: execId } = payload
    const ofExec = idField !== 'id' && typeof execId === 'string' && execId !== '' && execId !== containerId
    if (ofExec) return undefined
    return kind === 'exited' ? { kind, containerId, exit: readExit(payload) } : { kind, containerId }
  }
}

/** TaskExit has the time at which the process ended; TaskDelete, which follows, does not. */
function readExit({ exitStatus, exitedAt }: Readonly<Record<string, unknown>>): ProcessExit | undefined {
  if (typeof exitStatus !== 'number' || !isJsonObject(exitedAt)) return undefined
  const { seconds, nanos } = exitedAt
  if (typeof seconds !== 'number' || typeof nanos !== 'number') return undefined
  return { exitCode: exitStatus, atMs: seconds * 1000 + nanos / 1e6 }
}
