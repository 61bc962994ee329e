import type { Clock } from '../base/clock.ts'
import { isJsonObject } from '../base/json.ts'
import { KeptStream } from '../base/keep-open.ts'
import { newUuid } from '../base/random.ts'
import type * as cri from '../cri-types/cri-v1.ts'
import { loadProto } from '../grpc/load-proto.ts'
import type { WireMethod } from '../grpc/load-proto.ts'
import type { ProcessExit, RuntimeEvent, RuntimeEvents } from '../pod/state/observed.ts'
import { criHeaders, criNamespace, methodOf } from './containerd/records.ts'
import type { ContainerdChannel } from './containerd/records.ts'
import type { CriClient } from './cri-client.ts'
import { CriError } from './cri-runtime.ts'

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

  constructor(client: CriClient, clock: Clock) {
    super(clock)
    this.#client = client
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

/** A stream of events that a runtime may or may not have. */
export interface EventsCandidate extends RuntimeEvents {
  /** Rejects where the runtime can't be asked. */
  isServed(signal?: AbortSignal): Promise<boolean>
}

/**
 * The first of the candidates that the runtime serves, best first; undefined when it has none of them, and has to be
 * polled. Rejects where the runtime can't be asked.
 */
export async function pickRuntimeEvents<Candidate extends EventsCandidate>(
  candidates: readonly Candidate[],
  signal?: AbortSignal,
): Promise<Candidate | undefined> {
  for (const candidate of candidates) {
    if (await candidate.isServed(signal)) return candidate
  }
  return undefined
}

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
 * CRI records it. After the first event CRI may have to be asked twice.
 */
export class ContainerdEvents extends KeptStream<RuntimeEvent> implements RuntimeEvents {
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
