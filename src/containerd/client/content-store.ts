import type { Clock } from '../../base/clock.ts'
import { isJsonObject } from '../../base/json.ts'
import type { Blob, Ingest } from '../../decide/node/pull-progress.ts'
import type { WireMethod } from '../../grpc/load-proto.ts'
import { criHeaders, methodOf, objectsIn, withDeadline } from './containerd-calls.ts'
import type { CallChannel, ServiceDefinitions } from './containerd-calls.ts'

export interface ContentStoreOptions {
  readonly channel: CallChannel
  /** proto/containerd-content.proto. */
  readonly definitions: ServiceDefinitions
  readonly clock: Clock
}

const callMs = 10_000
/**
 * The label of each pulled blob: the key ends with the registry's host, the value lists the repositories, separated by
 * commas.
 */
const sourceLabel = 'containerd.io/distribution.source.'
const digestPattern = /sha256:[0-9a-f]{64}$/u
const partPattern = /^(?:layer|config)-/u

/** containerd's content store, while images are pulled into it. The errors are the channel's. */
export class ContentStore {
  readonly #channel: CallChannel
  readonly #clock: Clock
  readonly #list: WireMethod
  readonly #read: WireMethod
  readonly #listStatuses: WireMethod

  constructor({ channel, definitions, clock }: ContentStoreOptions) {
    this.#channel = channel
    this.#clock = clock
    const service = definitions.service('containerd.services.content.v1.Content')
    this.#list = methodOf(service, 'List')
    this.#read = methodOf(service, 'Read')
    this.#listStatuses = methodOf(service, 'ListStatuses')
  }

  /** The blobs that are being written. */
  async listIngests(): Promise<readonly Ingest[]> {
    const reply = await this.#bounded('ListStatuses', (signal) =>
      this.#channel.unary(this.#listStatuses, {}, signal, criHeaders),
    )
    return objectsIn(reply, 'statuses').flatMap(({ ref, offset }) => {
      if (typeof ref !== 'string' || typeof offset !== 'number') return []
      // `layer-sha256:…` (core/remotes/handlers.go, MakeRefKey)
      const digest = digestPattern.exec(ref)?.[0]
      return digest === undefined ? [] : [{ digest, offsetBytes: offset, isPart: partPattern.test(ref) }]
    })
  }

  /** The blobs that were pulled for a repository of a registry, both as an image's name has them. */
  async listBlobs(registry: string, repository: string): Promise<readonly Blob[]> {
    const blobs: Blob[] = []
    const take = (message: object): void => {
      for (const { digest, size, createdAt } of objectsIn(message, 'info')) {
        const seconds: unknown = isJsonObject(createdAt) ? createdAt['seconds'] : undefined
        const nanos: unknown = isJsonObject(createdAt) ? createdAt['nanos'] : undefined
        if (typeof digest !== 'string' || typeof size !== 'number' || typeof seconds !== 'number') continue
        const millis = typeof nanos === 'number' ? nanos / 1e6 : 0
        blobs.push({ digest, sizeBytes: size, createdAtMs: seconds * 1000 + millis })
      }
    }
    const inList = `(^|,)${repository.replaceAll('.', '[.]')}(,|$)`
    // Without its port (core/remotes/docker/handler.go, AppendDistributionSourceLabel).
    const host = registry.replace(/:\d+$/u, '').replace(/^\[(.*)\]$/u, '$1')
    const filters = [`labels.${JSON.stringify(sourceLabel + host)}~=${JSON.stringify(inList)}`]
    await this.#bounded('List', (signal) =>
      this.#channel.stream(this.#list, { filters }, take, signal, criHeaders),
    )
    return blobs
  }

  /** The bytes of a blob, which is held in memory as a whole. */
  async readBlob(digest: string): Promise<Buffer> {
    const chunks: Buffer[] = []
    const take = (message: object): void => {
      const data: unknown = isJsonObject(message) ? message['data'] : undefined
      if (Buffer.isBuffer(data)) chunks.push(data)
    }
    await this.#bounded('Read', (signal) =>
      this.#channel.stream(this.#read, { digest }, take, signal, criHeaders),
    )
    return Buffer.concat(chunks)
  }

  #bounded<T>(name: string, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withDeadline({ clock: this.#clock, name, callMs }, call)
  }
}
